"""What of a recording cannot be whole, asked before any figure; each fault is counted and says what follows from it.

Missing records, durations that are none, first uses of a kernel, captures, overlaps, and a profiler that slowed what
it watched. A note says which records it makes unreliable: rules that rest on them are not asked, and no bound is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from analyzer.intervals import Intervals
from analyzer.measures.records.lost import captured, launches, launching, missing_records
from analyzer.measures.records.windows import uneven_windows
from analyzer.model.events import ABSENT, Activities
from analyzer.model.run import Run
from analyzer.model.trace import EVERYTHING, Doubt, Note, Trace
from analyzer.once import once
from analyzer.stats.arrays import Integers
from analyzer.steps.launches import graph_launches, launch_rows
from analyzer.steps.steps import Phase, step_summary
from analyzer.units import duration

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


FIRST_USE_NS = 10_000_000
"""A launch call takes 5 µs; one that loads a module or compiles takes from tens of ms to seconds."""

FIRST_USE_SHARE = 0.5
"""Of the idle time in such calls, from which on what is said of launching is said of them."""

CAPTURE_SHARE = 0.9
"""Of launches made while a stream is captured, from which on nothing but a capture was recorded."""


@once
def notes(run: Run) -> tuple[tuple[Note, tuple[int, ...]], ...]:
    """What is wrong with the records, gravest first, and on which ranks; equal notes of several ranks once."""
    noted: dict[str, tuple[Note, tuple[int, ...]]] = {}
    for note in (*slowed(run), *_only_captures(run), *uneven_windows(run), *run.notes):
        noted[note.text] = (note, ())
    for trace in run.traces:
        for note in (*faults(trace), *trace.notes):
            before, where = noted.get(note.text, (replace(note, count=0), ()))
            both = replace(note, count=before.count + note.count, doubts=before.doubts | note.doubts)
            noted[note.text] = (both, (*where, trace.rank))
    return tuple(sorted(noted.values(), key=lambda entry: -len(entry[0].doubts)))


def doubt_of(run: Run, evidence: frozenset[Doubt] = EVERYTHING) -> Note | None:
    """The gravest note that makes this evidence unreliable; None where it can be relied on."""
    return next((note for note, _ in notes(run) if note.doubts & evidence), None)


def faults(trace: Trace) -> tuple[Note, ...]:
    """What cannot be whole in one trace. Linear in its events."""
    return (*_durations(trace), *missing_records(trace), *_first_uses(trace), *_overlaps(trace))


def _durations(trace: Trace) -> Iterator[Note]:
    """Entries none of which lasts any time: durations were not recorded."""
    work = trace.activities
    if len(work) and not np.any(work.end_ns > work.start_ns):
        text = "device entry with a duration of 0, as all have: how long anything ran was not recorded"
        yield Note(text, len(work), EVERYTHING)


def _first_uses(trace: Trace) -> Iterator[Note]:
    """Launch calls of a kernel not used before that last long while the device is idle."""
    calls = trace.calls
    slow = (calls.duration_ns >= FIRST_USE_NS) & launches(calls) & ~graph_launches(trace)
    if not slow.any():
        return
    work, launched_by = trace.activities, launch_rows(trace)
    _, first = np.unique(work.name.codes, return_index=True)
    rows = np.unique(launched_by[first])
    rows = rows[rows != ABSENT]
    rows = rows[slow[rows]]
    idle = trace.window - work.union()
    waited = idle & Intervals.from_arrays(calls.start_ns[rows], calls.end_ns[rows])
    if waited.total_ns < FIRST_USE_NS:
        return
    text = (
        f"first use of a kernel: the device was idle for {duration(waited.total_ns)} while its launch call loaded or "
        "compiled it; warm up before recording"
    )
    is_notable = waited.total_ns >= FIRST_USE_SHARE * idle.total_ns
    yield Note(text, int(rows.size), frozenset((Doubt.LAUNCHES,)) if is_notable else frozenset())


def _only_captures(run: Run) -> Iterator[Note]:
    """A recording of the capture of graphs, in which nothing was served."""
    kinds = {row.kind for row in step_summary(run)} - {Phase.IDLE.value}
    if kinds == {Phase.CAPTURE.value} or (not kinds and all(map(_is_capture, run.traces))):
        text = "nothing but the capture of graphs was recorded: no time of it is one of serving; give the other traces"
        yield Note(text, doubts=EVERYTHING)


def _is_capture(trace: Trace) -> bool:
    """Whether most of what is launched is captured, and nothing replayed."""
    inside = captured(trace.calls)
    if not inside.any() or graph_launches(trace).any():
        return False
    calls = launching(trace.calls)
    return int(np.count_nonzero(calls & inside)) >= CAPTURE_SHARE * int(np.count_nonzero(calls))


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
