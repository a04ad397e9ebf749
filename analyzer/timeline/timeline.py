"""One timeline of all ranks on one clock, for Perfetto: streams, steps, the four terms, arrows, findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.intervals import Intervals
from analyzer.matching.clock import Clock, clock
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.waits import GroupWaits, waits
from analyzer.model.events import ABSENT
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.schema.report import FindingRow
from analyzer.stats.arrays import Integers
from analyzer.steps.steps import RankSteps, steps
from analyzer.timeline import trace_events as form
from analyzer.units import duration

STEPS, TERMS, FINDINGS, STREAMS = 1, 10, 20, 100
"""First number of each sort of track; they stand in this order."""
_CAUSES = {
    Cause.PEER_WAIT: "waiting for peers",
    Cause.HOST_LAUNCH: "not yet launched",
    Cause.HOST_SYNC: "host blocked in a sync call",
    Cause.STREAM_WAIT: "waiting on the device",
    Cause.QUEUE: "between steps",
    Cause.UNRECORDED: "nothing recorded: another process, or lost records",
    Cause.UNKNOWN: "unknown",
}
_TRACKS = {Kind.COMPUTE: "compute", Kind.COMMUNICATION: "communication", Kind.MOVEMENT: "movement", Kind.SYNC: "idle"}


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """What to show.

    Attributes:
        ranks: those shown, () for all.
        from_ns: after the start of the timeline.
        to_ns: None for its end.
    """

    ranks: tuple[int, ...] = ()
    from_ns: int = 0
    to_ns: int | None = None


def is_chosen(window: TimeWindow, rank: int) -> bool:
    """Whether the window shows the rank."""
    return not window.ranks or rank in window.ranks


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run on one clock.

    Attributes:
        run: whose timeline.
        window: what is shown.
        common: the clock, None where ranks share no collective.
        origin_ns: time on that clock at which the timeline starts.
        notes: what a reader of it must know.
        tracks: for each shown trace int64[n], track of each activity; ABSENT where it is not shown.
    """

    run: Run
    window: TimeWindow
    common: Clock | None
    origin_ns: int
    notes: tuple[str, ...]
    tracks: dict[int, Integers] = field(default_factory=dict)

    def at(self, trace: int, times_ns: Integers) -> Integers:
        """int64[n]: a trace's own times as times of the timeline."""
        if self.common is None:
            return times_ns - self.origin_ns
        return np.rint(self.common.to_reference(trace, times_ns)).astype(np.int64) - self.origin_ns

    def is_shown(self, start_ns: Integers, end_ns: Integers) -> Integers:
        """Rows of the spans that lie in the window, at least in part."""
        until = np.iinfo(np.int64).max if self.window.to_ns is None else self.window.to_ns
        return np.flatnonzero((start_ns < until) & (end_ns > self.window.from_ns))


def timeline(run: Run, window: TimeWindow | None = None) -> Timeline:
    """The run on one clock, ready to be written.

    Raises:
        UsageError: a rank to show that the run does not have, or a window after its end.
    """
    chosen = window or TimeWindow()
    strange = sorted(set(chosen.ranks) - set(run.ranks))
    if strange:
        raise UsageError(f"{run.label} has no rank {strange[0]}; its ranks are {', '.join(map(str, run.ranks))}")
    drawn = _on_one_clock(run, chosen)
    ends = [
        drawn.at(trace_index, trace.activities.end_ns).max(initial=0) for trace_index, trace in enumerate(run.traces)
    ]
    if chosen.from_ns >= max(ends, default=0) > 0:
        raise UsageError(
            f"nothing to show from {duration(chosen.from_ns)} on: the timeline of {run.label} is "
            f"{duration(int(max(ends)))} long; start earlier"
        )
    return drawn


def _on_one_clock(run: Run, window: TimeWindow) -> Timeline:
    try:
        common = clock(run)
    except MissingEvidenceError as lack:
        reason = f"clocks were not compared ({lack.missing}): ranks stand as recorded"
        first_ns = min((int(trace.activities.start_ns[0]) for trace in run.traces if len(trace.activities)), default=0)
        return Timeline(run, window, None, first_ns, (reason,) if len(run.traces) > 1 else ())
    starts = [
        common.to_reference(trace_index, trace.activities.start_ns[:1]) for trace_index, trace in enumerate(run.traces)
    ]
    origin_ns = int(np.floor(min(float(start[0]) for start in starts if start.size)))
    apart = [trace.rank for trace_index, trace in enumerate(run.traces) if not common.is_common(trace_index)]
    notes = [f"{common.method}, error {common.error_ns:,} ns"]
    if apart:
        notes.append(f"ranks {', '.join(map(str, apart))} share no collective with the others: they stand as recorded")
    return Timeline(run, window, common, origin_ns, tuple(notes))


def events(drawn: Timeline, findings: Sequence[FindingRow] = ()) -> Iterator[str]:
    """Every event as a JSON object, in text."""
    breakdowns, all_steps = breakdown(drawn.run), steps(drawn.run)
    shown = [trace_index for trace_index, trace in enumerate(drawn.run.traces) if is_chosen(drawn.window, trace.rank)]
    for trace_index in shown:
        trace = drawn.run.traces[trace_index]
        clock_note = "" if drawn.common is None or drawn.common.is_common(trace_index) else ", clock of its own"
        device = trace.origin.device_name or trace.origin.device
        yield from form.name_process(trace.rank, f"rank {trace.rank} ({device}{clock_note})")
        yield from _steps(drawn, trace_index, all_steps[trace_index])
        yield from _terms(drawn, trace_index, breakdowns[trace_index])
        yield from _streams(drawn, trace_index)
    yield from _arrows(drawn)
    yield from _findings(drawn, findings)


def document(drawn: Timeline, findings: Sequence[FindingRow] = ()) -> Iterator[str]:
    """The file, in pieces."""
    about = json.dumps({"made by": "shardscope timeline", "run": drawn.run.label, "notes": list(drawn.notes)})
    yield f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n'
    for number, event in enumerate(events(drawn, findings)):
        yield f",\n{event}" if number else event
    yield "\n]}\n"


def _steps(drawn: Timeline, trace_index: int, rank_steps: RankSteps) -> Iterator[str]:
    start, end = drawn.at(trace_index, rank_steps.start_ns), drawn.at(trace_index, rank_steps.end_ns)
    rows = drawn.is_shown(start, end)
    rows = rows[np.argsort(start[rows], kind="stable")]
    tracks = STEPS + form.packed(start[rows], end[rows])
    for track in np.unique(tracks).tolist():
        yield from form.name_track(rank_steps.rank, track, "steps")
    stated = {"tokens": rank_steps.tokens, "requests": rank_steps.requests}
    texts = []
    for row in rows.tolist():
        args: dict[str, str | int] = {"annotation": rank_steps.name[row], "found by": rank_steps.source.value}
        args |= {word: int(column[row]) for word, column in stated.items() if column[row] != ABSENT}
        args |= {"not in statistics": rank_steps.left_out[row]} if rank_steps.left_out[row] else {}
        texts.append(f'"cat":"step","name":{json.dumps(rank_steps.phase[row])},"args":{json.dumps(args)}')
    yield from form.slices(rank_steps.rank, tracks.tolist(), start[rows], end[rows], texts)


def _terms(drawn: Timeline, trace_index: int, rank_times: Breakdown) -> Iterator[str]:
    """A track a term; idle time is named by its cause. They tile the window."""
    for offset, (kind, name) in enumerate(_TRACKS.items()):
        yield from form.name_track(rank_times.rank, TERMS + offset, f"term: {name}")
        held = {_CAUSES[cause]: time for cause, time in rank_times.causes.items()} if kind is Kind.SYNC else {}
        for word, time in (held or {name: rank_times.term(kind)}).items():
            yield from _instants(drawn, trace_index, time, (rank_times.rank, TERMS + offset, word))


def _instants(drawn: Timeline, trace_index: int, time: Intervals, where: tuple[int, int, str]) -> Iterator[str]:
    process, track, word = where
    start, end = drawn.at(trace_index, time.start_ns), drawn.at(trace_index, time.end_ns)
    rows = drawn.is_shown(start, end)
    texts = [f'"cat":"term","name":{json.dumps(word)}'] * rows.size
    yield from form.slices(process, [track] * rows.size, start[rows], end[rows], texts)


def _streams(drawn: Timeline, trace_index: int) -> Iterator[str]:
    """Tracks of activities, more than one a stream where they overlap."""
    trace = drawn.run.traces[trace_index]
    work = trace.activities
    start, end = drawn.at(trace_index, work.start_ns), drawn.at(trace_index, work.end_ns)
    shown = drawn.is_shown(start, end)
    tracks = np.full(len(work), ABSENT, np.int64)
    kinds = [pattern.subclass if pattern else "other" for pattern in work.patterns]
    texts = np.array(
        [
            f'"cat":{json.dumps(kind)},"name":{json.dumps(name)}'
            for kind, name in zip(kinds, work.name.values, strict=True)
        ],
        dtype=object,
    )
    lanes = np.stack((work.process[shown], work.lane[shown]), axis=1)
    first = STREAMS
    for process, lane in np.unique(lanes, axis=0).tolist():
        rows = shown[(lanes[:, 0] == process) & (lanes[:, 1] == lane)]
        places = form.packed(start[rows], end[rows])
        tracks[rows] = first + places
        title = f"thread {lane}" if trace.origin.device == "cpu" else f"stream {lane}"
        for level in range(int(places.max()) + 1):
            yield from form.name_track(trace.rank, first + level, title)
        yield from form.slices(
            trace.rank, tracks[rows].tolist(), start[rows], end[rows], texts[work.name.codes[rows]].tolist()
        )
        first += int(places.max()) + 1
    drawn.tracks[trace_index] = tracks


def _arrows(drawn: Timeline) -> Iterator[str]:
    """From the last rank of each collective to each rank that still waits when it arrives."""
    try:
        groups = waits(drawn.run).groups
    except MissingEvidenceError:
        return
    number = 0
    for group_waits in groups:
        if drawn.common is None or not drawn.common.is_common(*group_waits.group.traces):
            continue
        for begin, end in _pairs(drawn, group_waits):
            number += 1
            yield from form.arrow(number, begin, end)


def _pairs(drawn: Timeline, group_waits: GroupWaits) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Ends of the arrows of one group, each as (rank, track, time)."""
    shape = group_waits.group.row.shape
    start, end, track = (np.full(shape, ABSENT, np.int64) for _ in range(3))
    for member, trace_index in enumerate(group_waits.group.traces):
        if trace_index not in drawn.tracks:
            continue
        has = np.flatnonzero(group_waits.group.row[:, member] != ABSENT)
        rows, work = group_waits.group.row[has, member], drawn.run.traces[trace_index].activities
        start[has, member], end[has, member] = (
            drawn.at(trace_index, work.start_ns[rows]),
            drawn.at(trace_index, work.end_ns[rows]),
        )
        track[has, member] = drawn.tracks[trace_index][rows]
    is_there = track != ABSENT
    last = np.argmax(np.where(is_there, start, ABSENT), axis=1)
    calls = np.arange(shape[0])
    arrived = start[calls, last]
    waiting = is_there & (start <= arrived[:, None]) & (end > arrived[:, None])
    waiting[calls, last] = False
    for call, member in zip(*(column.tolist() for column in np.nonzero(waiting)), strict=True):
        source = int(last[call])
        moment = int(arrived[call])
        yield (
            (group_waits.group.ranks[source], int(track[call, source]), moment),
            (group_waits.group.ranks[member], int(track[call, member]), moment),
        )


def _findings(drawn: Timeline, findings: Sequence[FindingRow]) -> Iterator[str]:
    """A mark for each finding at the worst place shown of the rank it is about; at the rank's start where it has none.

    What is about the whole run is marked on the first rank. What lies outside of the window is not marked.
    """
    first_ns = min(
        (int(trace.activities.start_ns[0]) for trace in drawn.run.traces if len(trace.activities)), default=0
    )
    shown = {
        trace.rank: trace_index
        for trace_index, trace in enumerate(drawn.run.traces)
        if is_chosen(drawn.window, trace.rank)
    }
    named: set[int] = set()
    for row in findings:
        rank = next((rank for rank in row.evidence.ranks or shown if rank in shown), None)
        if rank is None:
            continue
        trace_index = shown[rank]
        places = np.array(row.evidence.spans, np.int64).reshape(-1, 2) + first_ns
        start, end = drawn.at(trace_index, places[:, 0]), drawn.at(trace_index, places[:, 1])
        rows = drawn.is_shown(start, np.maximum(end, start + 1))
        if start.size and not rows.size:
            continue
        window = drawn.run.traces[trace_index].window
        begin = int(start[rows[0]]) if rows.size else int(drawn.at(trace_index, window.start_ns[:1])[0])
        if rank not in named:
            named.add(rank)
            yield from form.name_track(rank, FINDINGS, "findings")
        args = json.dumps({"message": row.message, "advice": row.advice, "basis": row.basis, "severity": row.severity})
        text = f'"cat":"finding","name":{json.dumps(f"{row.rule} {row.name}")},"args":{args}'
        yield form.marker(rank, FINDINGS, max(begin, drawn.window.from_ns), text)
