"""Whether the windows of the ranks compare: recorded for as long, and in one unit of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import EVERYTHING, OF_OTHER_TIMES, Note, Trace
from analyzer.units import duration

LONGER = 5.0
"""Longest window over the shortest, from which on shares of windows do not compare."""

OTHER_UNIT = 100.0
"""The same of what a kernel takes: times in ns among times in µs."""


def uneven_windows(run: Run) -> Iterator[Note]:
    """Ranks of which one was recorded much longer than another, or counts in another unit.

    Asked of windows that begin and end with work that belongs to them: a rank that waits for the recording of another
    to begin was not recorded for longer.
    """
    timed = [trace for trace in run.traces if trace.window.total_ns]
    if len(timed) < 2:  # noqa: PLR2004 (one differs from none)
        return
    longest = max(timed, key=lambda trace: trace.window.total_ns)
    shortest = min(timed, key=lambda trace: trace.window.total_ns)
    if longest.window.total_ns < LONGER * shortest.window.total_ns:
        return
    windows = (
        f"rank {longest.rank} was recorded for {duration(longest.window.total_ns)}, rank {shortest.rank} for "
        f"{duration(shortest.window.total_ns)}"
    )
    if _kernel_ns(longest) >= OTHER_UNIT * _kernel_ns(shortest):
        yield Note(f"{windows}, and each kernel takes as many times longer: another unit of time", doubts=EVERYTHING)
    else:
        yield Note(f"{windows}: shares of such windows do not compare", doubts=OF_OTHER_TIMES)


def _kernel_ns(trace: Trace) -> float:
    """Median duration of what computes, or of everything where nothing does."""
    durations = trace.activities.duration_ns
    computing = durations[trace.activities.kind == Kind.COMPUTE]
    return float(np.median(computing if computing.size else durations))
