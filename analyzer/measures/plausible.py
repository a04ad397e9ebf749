"""What of a recording cannot be whole, asked before any figure; each fault is counted and says what follows from it.

Launches without kernels, kernels without launches, lost stretches, overlaps, and a profiler that slowed what it
watched. Profilers drop whole buffers of records when they are full, and stop in the middle of the work that is queued.
What is cut off at the two ends of the window is no fault and is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT, Activities, Events
from analyzer.model.run import Run
from analyzer.model.trace import Note, Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.launches import launch_rows
from analyzer.steps.steps import Phase, step_summary
from analyzer.units import count, duration

LAUNCH = re.compile(r"^(cuda|hip|cu)(Ext|Module|Graph)*Launch(?!HostFunc)")
"""Calls that put work on the device. A host function is none."""
BEGIN_CAPTURE = re.compile(r"^(cuda|hip|cu)StreamBeginCapture")
END_CAPTURE = re.compile(r"^(cuda|hip|cu)StreamEndCapture")

LOST_ROW = 32
"""Launches in a row without a kernel that are a lost buffer rather than single lost records."""

OVERLAP_NS = 20_000
"""On one stream: dependent launch starts up to 5 µs early and old clocks count whole µs, so less is no fault."""

SERIAL = frozenset(("cuda", "rocm", "xpu"))
"""Devices whose streams run one entry at a time."""

TOKEN_TIMES = (
    "vllm:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds",
    "sglang:inter_token_latency_seconds",
)
"""Histograms of the engines' metrics; the second is vLLM's older name of the first."""

SLOWED = 1.1
"""Period of decode steps over the engine's own time per token; run-to-run noise stays below."""


def faults(trace: Trace) -> tuple[Note, ...]:
    """What cannot be whole in one trace. Linear in its events."""
    return (*_launches(trace), *_kernels(trace), *_overlaps(trace))


def slowed(run: Run) -> tuple[Note, ...]:
    """Decode steps that follow each other slower than the engine's own time per token.

    `run.json` states it as `reference.itl_median_ns` or `tpot_median_ns`, timed without the profiler; else the engine's
    metrics have its mean over the load of which the recording is a part. Steps that verify drafts make several tokens
    and are not compared.
    """
    decode = next((row for row in step_summary(run) if row.kind == Phase.DECODE.value), None)
    if decode is None or decode.period_ns is None or decode.speculative:
        return ()
    reference = run.workload.reference
    token_ns, where = reference.get("itl_median_ns") or reference.get("tpot_median_ns"), "without the profiler"
    if not token_ns:
        token_ns, where = _counted_ns(run.workload.counters), "over the whole load, by its metrics"
    if not token_ns or decode.period_ns < SLOWED * token_ns:
        return ()
    text = (
        f"decode steps start every {duration(decode.period_ns)} in the trace, the engine gave a token every "
        f"{duration(int(token_ns))} {where}, {decode.period_ns / token_ns:.2f}x less: idle time and what the host does "
        "are overstated by it"
    )
    return (Note(text),)


def _counted_ns(counters: Mapping[str, float]) -> float | None:
    """Mean time per token of all engines, from the sum and count of a histogram; None where none grew."""
    for name in TOKEN_TIMES:
        total, times = (
            sum(value for series, value in counters.items() if series.partition("{")[0] == f"{name}_{suffix}")
            for suffix in ("sum", "count")
        )
        if times:
            return 1e9 * total / times
    return None


def _launches(trace: Trace) -> Iterator[Note]:
    """Launches whose kernels are not there, although those of later launches are."""
    calls = trace.calls
    chosen = np.flatnonzero(_is_launch(calls))
    _, first = np.unique(
        calls.correlation[chosen], return_index=True
    )  # a driver call inside a runtime call is the same
    chosen = np.sort(chosen[first])
    ran = np.isin(calls.correlation[chosen], trace.activities.correlation)
    if not ran.any():
        return
    inside = slice(0, int(np.flatnonzero(ran)[-1]))
    missing, rows = ~ran[inside], chosen[inside]
    begin, end = _rows_of(missing)
    lost = end - begin >= LOST_ROW
    if lost.any():
        stretches = Intervals.from_arrays(calls.start_ns[rows[begin[lost]]], calls.end_ns[rows[end[lost] - 1]])
        yield Note(
            f"{count(int(lost.sum()), 'stretch', 'stretches')} of {duration(stretches.total_ns)} in all in which "
            f"{int((end - begin)[lost].sum()):,} launches in a row have no kernel, a lost buffer of the profiler: what "
            "ran there reads as idle time"
        )
    single = int((end - begin)[~lost].sum())
    if single:
        yield Note("launch without a kernel: what it ran is missing from every sum and reads as idle time", single)


def _is_launch(calls: Events) -> Mask:
    """bool[n]: calls that launch, with a correlation, outside captures: what is captured runs later, if ever."""
    launches: Mask = calls.name.where(lambda name: LAUNCH.match(name) is not None) & (calls.correlation != ABSENT)
    begins = calls.name.where(lambda name: BEGIN_CAPTURE.match(name) is not None)
    if begins.any():
        ends = calls.name.where(lambda name: END_CAPTURE.match(name) is not None)
        opened = np.sort(calls.start_ns[begins])
        closed = np.sort(calls.end_ns[ends])
        before = np.searchsorted(opened, calls.start_ns, side="right") - np.searchsorted(closed, calls.start_ns)
        launches &= before <= 0
    return launches


def _rows_of(flags: Mask) -> tuple[Integers, Integers]:
    """Begins and ends of the runs of True."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int64), [0]]))
    return np.flatnonzero(edges == 1).astype(np.int64), np.flatnonzero(edges == -1).astype(np.int64)


def _kernels(trace: Trace) -> Iterator[Note]:
    """Work whose launch is not there, although that of earlier work on its stream is.

    A stream keeps its order: what follows work that was launched inside the window was launched inside it too.
    """
    work = trace.activities
    launched = launch_rows(trace) != ABSENT
    _, stream = np.unique(np.stack([work.process, work.lane]), axis=1, return_inverse=True)
    first = np.full(int(stream.max(initial=-1)) + 1, len(work))
    np.minimum.at(first, stream.reshape(-1)[launched], np.flatnonzero(launched))
    late = np.arange(len(work)) > first[stream.reshape(-1)]
    missing = int(np.count_nonzero(late & ~launched & (work.correlation != ABSENT)))
    if missing:
        yield Note(
            "device entry without its launch: why the device was idle before it is unknown, and it may be in no step",
            missing,
        )


def _overlaps(trace: Trace) -> Iterator[Note]:
    """Entries that run side by side on one stream, which takes them one by one."""
    if trace.origin.device not in SERIAL or len(trace.activities) == 0:
        return
    over_ns = _overrun(trace.activities)
    overlapping = over_ns > OVERLAP_NS
    if overlapping.any():
        yield Note(
            f"entries of one graph overlap on one stream, {duration(int(over_ns[overlapping].sum()))} in all: branches "
            "recorded as one stream, or wrong durations; an instant counts once in the terms, twice in sums of kernels",
            int(overlapping.sum()),
        )


def _overrun(work: Activities) -> Integers:
    """int64[n-1]: by how much each entry runs into the next on its stream, 0 where it does not."""
    order = np.lexsort((work.start_ns, work.lane, work.process))
    lane, process, start, end = (column[order] for column in (work.lane, work.process, work.start_ns, work.end_ns))
    follows = (lane[1:] == lane[:-1]) & (process[1:] == process[:-1])
    overrun: Integers = np.where(follows, np.minimum(end[:-1], end[1:]) - start[1:], 0).astype(np.int64)
    return np.maximum(overrun, 0)
