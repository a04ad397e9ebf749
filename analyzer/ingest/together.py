"""Whether traces put together are ranks of one job, recorded over the same time; and one file under two names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from analyzer.model.trace import OF_OTHER_TIMES, Note, Trace
from analyzer.units import count, duration

APART_NS = 1_000_000_000
"""Between the windows of two ranks: clocks of hosts differ by some ms, and profilers of one job start together."""

ABSOLUTE_FROM_NS = 10**18
"""September 2001: stamps from here on count from the epoch, others from when a host was started."""


def distinct(traces: list[Trace]) -> tuple[list[Trace], tuple[Note, ...]]:
    """The traces without those that hold the same records as one before, as one file under two names does."""
    kept: list[Trace] = []
    for trace in traces:
        if not any(_is_same(trace, other) for other in kept):
            kept.append(trace)
    left = len(traces) - len(kept)
    text = "file that holds the same records as another, left out: one recording under two names"
    return kept, (Note(text, left),) if left else ()


def _is_same(trace: Trace, other: Trace) -> bool:
    """Whether both are one recording. Ranks that state different numbers may run alike to the nanosecond when drawn."""
    mine, its = trace.activities, other.activities
    return (
        trace.origin.recorded_rank == other.origin.recorded_rank
        and len(mine) == len(its)
        and len(trace.calls) == len(other.calls)
        and bool(np.array_equal(mine.start_ns, its.start_ns) and np.array_equal(mine.end_ns, its.end_ns))
        and bool(np.array_equal(mine.process, its.process) and np.array_equal(mine.lane, its.lane))
        and bool(np.array_equal(trace.calls.process, other.calls.process))
        and mine.name.tolist() == its.name.tolist()
    )


def misfits(traces: tuple[Trace, ...]) -> Iterator[Note]:
    """Why these traces are no ranks of one job over one time."""
    timed = [trace for trace in traces if trace.window.total_ns]
    yield from _worlds(traces)
    yield from _hours(timed)


def _worlds(traces: tuple[Trace, ...]) -> Iterator[Note]:
    """Ranks that state worlds of different sizes. Instances that number their ranks alike have worlds of their own."""
    stated = Counter(trace.origin.world_size for trace in traces if trace.origin.world_size is not None)
    ranks = [trace.origin.recorded_rank for trace in traces if trace.origin.recorded_rank is not None]
    if len(stated) > 1 and len(set(ranks)) == len(ranks):
        sizes = " and ".join(f"{size:,}" for size in sorted(stated))
        yield Note(f"the traces state worlds of {sizes} ranks: they are of different jobs", doubts=OF_OTHER_TIMES)


def _hours(traces: list[Trace]) -> Iterator[Note]:
    """Ranks whose windows lie apart in time, though their clocks count from one epoch."""
    ordered = sorted((int(trace.window.start_ns[0]), int(trace.window.end_ns[-1])) for trace in traces)
    if not ordered or ordered[0][0] < ABSOLUTE_FROM_NS:
        return
    start, end = (np.array(column, np.int64) for column in zip(*ordered, strict=True))
    gaps = start[1:] - np.maximum.accumulate(end)[:-1]
    if np.any(gaps > APART_NS):
        sets = count(1 + int(np.count_nonzero(gaps > APART_NS)), "set")
        yield Note(
            f"the traces are {sets} recorded at other times, up to {duration(int(gaps.max()))} apart: different runs, "
            "or clocks that are wrong by as much",
            doubts=OF_OTHER_TIMES,
        )
