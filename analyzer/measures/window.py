"""The window of a run: from the first to the last recorded work that belongs to it.

What is cut off at the two ends, and said:

- a few activities and then a long stretch in which work that was not recorded ran: what was launched at once started
  late on an empty device, since a step before that the recording lacks still had it;
- work outside the marked steps that lasts longer than several of them: warm-up, or what came after the run;
- the wait in the first collective for a rank whose recording began later: profilers do not start together.

Gaps between steps stay, with their cause. What was cut off is in no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.intervals import Intervals
from analyzer.matching.clock import clock
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.causes import started_late
from analyzer.measures.waits import GroupWaits, waits
from analyzer.model.events import ABSENT
from analyzer.model.kind import Cause
from analyzer.model.run import Run
from analyzer.model.trace import Note, Trace
from analyzer.once import once
from analyzer.stats.arrays import Integers
from analyzer.steps.launches import launch_rows
from analyzer.steps.steps import RankSteps, StepSource, steps
from analyzer.units import duration, ranks

MOSTLY = 0.9
"""Of a stretch that is cut off for lost work: so much of it holds nothing recorded. Heads in public traces: 99.99 %."""
HARDLY = 0.1
"""Of what stays: no more of it may hold nothing recorded, else the device is shared all along and that is no head. And
of the busy time that stays: no more may be cut off."""
WORTH = 0.01
"""Of the window: a shorter end stays, and what is in it keeps its cause."""
BEHIND = 4
"""Marked steps, as long as the longest: work before them that lasts longer is no step that still ran when the recording
began. A device runs behind its host: by 3.2 steps at most in recorded runs."""
STEPS = 3
"""Marked steps that did something, at least: fewer do not tell how long a step is."""
LATE_NS = 1_000_000
"""By which a recording begins after others wait for its rank: less is jitter; profilers start 4 to 300 ms apart."""

LOST = "work that is not recorded ran there"
WARM_UP = "it is outside the marked steps and longer than several of them"
PROFILER = "others wait there in their first collective for a rank whose recording began later"


@dataclass(frozen=True, slots=True)
class _Cut:
    """What is cut off one trace.

    Attributes:
        from_ns, to_ns: what stays.
        why: the reason of the head and of the tail, "" where it stays.
    """

    from_ns: int
    to_ns: int
    why: tuple[str, str] = ("", "")


@once
def windowed(run: Run) -> Run:
    """The run within its window; the same object where nothing is cut off, and where it was cut before."""
    if any(trace.is_cut for trace in run.traces):
        return run
    cuts = [_of_one(*columns) for columns in zip(run.traces, breakdown(run), steps(run), strict=True)]
    if not any(any(cut.why) for cut in cuts):
        cuts = _of_profilers(run, cuts)
    if not any(any(cut.why) for cut in cuts):
        return run
    traces = tuple(_within(trace, cut) if any(cut.why) else trace for trace, cut in zip(run.traces, cuts, strict=True))
    return replace(run, traces=traces, notes=(*_notes(run, cuts), *run.notes))


def _of_one(trace: Trace, rank_split: Breakdown, rank_steps: RankSteps) -> _Cut:
    """Ends of one trace, by its own records."""
    if len(rank_split.window) == 0:
        return _Cut(0, 0)
    whole = _Cut(int(rank_split.window.start_ns[0]), int(rank_split.window.end_ns[-1]))
    if trace.origin.device == "cpu":  # an operation is where it was called: nothing was launched long ago
        return whole
    by_steps = _outside_steps(trace, rank_steps, whole)
    return by_steps if any(by_steps.why) else _unrecorded_ends(trace, rank_split, whole)


def _unrecorded_ends(trace: Trace, rank_split: Breakdown, whole: _Cut) -> _Cut:
    """Without a head and a tail that hold next to nothing but work that was not recorded."""
    idle = rank_split.causes[Cause.UNRECORDED] | rank_split.causes[Cause.STREAM_WAIT]
    length_ns = idle.end_ns - idle.start_ns
    if not np.any(length_ns >= WORTH * MOSTLY * rank_split.window.total_ns):
        return whole
    lost = started_late(trace, rank_split.sync - rank_split.causes[Cause.PEER_WAIT])
    head = _worth(rank_split, lost, np.full(len(lost), whole.from_ns), lost.end_ns)
    tail = _worth(rank_split, lost, lost.start_ns, np.full(len(lost), whole.to_ns))
    from_ns = int(lost.end_ns[head[-1]]) if head.size else whole.from_ns
    to_ns = int(lost.start_ns[tail[0]]) if tail.size else whole.to_ns
    return _Cut(from_ns, to_ns, (LOST if head.size else "", LOST if tail.size else ""))


def _worth(rank_split: Breakdown, lost: Intervals, start_ns: Integers, end_ns: Integers) -> Integers:
    """Which of m stretches are to be cut off: nothing recorded in nearly all of them, and hardly any in what stays."""
    window_ns, length_ns, lost_ns = rank_split.window.total_ns, end_ns - start_ns, lost.within(start_ns, end_ns)
    busy = rank_split.window - rank_split.sync
    busy_ns = busy.within(start_ns, end_ns)
    return np.flatnonzero(
        (length_ns >= WORTH * window_ns)
        & (lost_ns >= MOSTLY * length_ns)
        & (lost.total_ns - lost_ns <= HARDLY * (window_ns - length_ns))
        & (busy_ns <= HARDLY * (busy.total_ns - busy_ns))
    )


def _outside_steps(trace: Trace, rank_steps: RankSteps, whole: _Cut) -> _Cut:
    """Without work before the first and after the last marked step that lasts longer than steps do."""
    inside = np.flatnonzero(rank_steps.step_of != ABSENT)
    works = rank_steps.activities > 0
    if rank_steps.source is not StepSource.ANNOTATION or np.count_nonzero(works) < STEPS:
        return whole
    longest_ns = BEHIND * int(max(rank_steps.span_ns[works].max(), rank_steps.period_ns[works].max()))
    from_ns = int(trace.activities.start_ns[inside[0]])
    to_ns = int(trace.activities.end_ns[inside].max())
    head, tail = from_ns - whole.from_ns > longest_ns, whole.to_ns - to_ns > longest_ns
    return _Cut(
        from_ns if head else whole.from_ns,
        to_ns if tail else whole.to_ns,
        (WARM_UP if head else "", WARM_UP if tail else ""),
    )


def _of_profilers(run: Run, cuts: list[_Cut]) -> list[_Cut]:
    """Without the wait in the first collective of a group for a rank whose recording began later."""
    if len(run.traces) == 1 or any(trace.origin.device == "cpu" for trace in run.traces):
        return cuts
    try:
        groups = waits(run).groups
    except MissingEvidenceError:
        return cuts
    cuts = list(cuts)
    for group_waits in groups:
        arrived = _arrivals(run, cuts, group_waits) if group_waits.is_by_arrival else {}
        for trace_index, from_ns in arrived.items():
            cut = cuts[trace_index]
            cuts[trace_index] = replace(cut, from_ns=max(from_ns, cut.from_ns), why=(PROFILER, ""))
    return cuts


def _arrivals(run: Run, cuts: list[_Cut], group_waits: GroupWaits) -> dict[int, int]:
    """Trace → when the last rank came to the first collective, by its own clock; none where no recording began late.

    The wait must be nearly all that is cut off: what a rank did before it belongs to the window.
    """
    group, common = group_waits.group, clock(run)
    start, wait = group_waits.start_ns[0], group_waits.wait_ns[0]
    rows = group.row[0]
    if np.any(rows == ABSENT):
        return {}
    last = group.traces[int(np.argmax(start))]
    began = common.to_reference(last, np.array([_begin(run.traces[last])], np.int64))[0]
    before_ns = np.clip(began - start, 0, wait)
    own_start = [int(run.traces[at].activities.start_ns[row]) for at, row in zip(group.traces, rows, strict=True)]
    arrival = np.array(own_start, np.int64) + wait
    head_ns = arrival - np.array([cuts[at].from_ns for at in group.traces], np.int64)
    if before_ns.max() < LATE_NS or before_ns.sum() < MOSTLY * head_ns.sum():
        return {}
    return {trace_index: int(from_ns) for trace_index, from_ns in zip(group.traces, arrival, strict=True)}


def _begin(trace: Trace) -> int:
    """When the first record of a trace begins."""
    columns = (trace.activities, trace.calls, trace.ops, trace.annotations)
    return min(int(column.start_ns[0]) for column in columns if len(column))


def _within(trace: Trace, cut: _Cut) -> Trace:
    """The trace with what stays of its activities, of their launches, and of ranges around them."""
    work, calls = trace.activities, trace.calls
    stays = (work.end_ns > cut.from_ns) & (work.start_ns < cut.to_ns)
    kept = work.take(stays)
    kept = replace(kept, start_ns=np.maximum(kept.start_ns, cut.from_ns), end_ns=np.minimum(kept.end_ns, cut.to_ns))
    launches = launch_rows(trace)[stays]
    unused = (calls.correlation != ABSENT) & np.isin(calls.correlation, work.correlation[~stays])
    annotations = trace.annotations
    if cut.why[0] and np.any(launches != ABSENT):
        annotations = annotations.take(annotations.end_ns > calls.start_ns[launches[launches != ABSENT]].min())
    return replace(
        trace,
        activities=kept,
        calls=calls.take(~unused | np.isin(calls.correlation, kept.correlation)),
        annotations=annotations,
        collectives=trace.collectives.kept(np.flatnonzero(stays), len(work)),
        is_cut=True,
    )


def _notes(run: Run, cuts: list[_Cut]) -> Iterator[Note]:
    """A line for each reason at each end."""
    windows = [trace.window for trace in run.traces]
    heads_ns = [cut.from_ns - int(window.start_ns[0]) for cut, window in zip(cuts, windows, strict=True)]
    tails_ns = [int(window.end_ns[-1]) - cut.to_ns for cut, window in zip(cuts, windows, strict=True)]
    for end, where, lengths_ns in ((0, "begins", heads_ns), (1, "ends", tails_ns)):
        for why in dict.fromkeys(cut.why[end] for cut in cuts if cut.why[end]):
            cut_ns = {
                trace.rank: length_ns
                for trace, cut, length_ns in zip(run.traces, cuts, lengths_ns, strict=True)
                if cut.why[end] == why
            }
            several = f" at most, {duration(sum(cut_ns.values()))} in all on ranks {ranks(tuple(cut_ns))}"
            yield Note(
                f"the window {where} {duration(max(cut_ns.values()))} {'later' if end == 0 else 'earlier'} than the "
                f"recording{several if len(cut_ns) > 1 else ''}: {why}; it is in no figure and in no step"
            )
