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


def is_chosen(cut: TimeWindow, rank: int) -> bool:
    """Whether the cut shows the rank."""
    return not cut.ranks or rank in cut.ranks


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run on one clock.

    Attributes:
        run: whose timeline.
        cut: what is shown.
        common: the clock, None where ranks share no collective.
        origin_ns: time on that clock at which the timeline starts.
        notes: what a reader of it must know.
        tracks: for each shown trace int64[n], track of each activity; ABSENT where it is not shown.
    """

    run: Run
    cut: TimeWindow
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
        """Rows of the spans that lie in the cut, at least in part."""
        until = np.iinfo(np.int64).max if self.cut.to_ns is None else self.cut.to_ns
        return np.flatnonzero((start_ns < until) & (end_ns > self.cut.from_ns))


def timeline(run: Run, cut: TimeWindow | None = None) -> Timeline:
    """The run on one clock, ready to be written.

    Raises:
        UsageError: a rank to show that the run does not have, or a cut after its end.
    """
    chosen = cut or TimeWindow()
    strange = sorted(set(chosen.ranks) - set(run.ranks))
    if strange:
        raise UsageError(f"{run.label} has no rank {strange[0]}; its ranks are {', '.join(map(str, run.ranks))}")
    line = _on_one_clock(run, chosen)
    ends = [line.at(at, trace.activities.end_ns).max(initial=0) for at, trace in enumerate(run.traces)]
    if chosen.from_ns >= max(ends, default=0) > 0:
        raise UsageError(
            f"nothing to show from {duration(chosen.from_ns)} on: the timeline of {run.label} is "
            f"{duration(int(max(ends)))} long; start earlier"
        )
    return line


def _on_one_clock(run: Run, chosen: TimeWindow) -> Timeline:
    try:
        common = clock(run)
    except MissingEvidenceError as lack:
        reason = f"clocks were not compared ({lack.missing}): ranks stand as recorded"
        first_ns = min((int(trace.activities.start_ns[0]) for trace in run.traces if len(trace.activities)), default=0)
        return Timeline(run, chosen, None, first_ns, (reason,) if len(run.traces) > 1 else ())
    starts = [common.to_reference(at, trace.activities.start_ns[:1]) for at, trace in enumerate(run.traces)]
    origin_ns = int(np.floor(min(float(part[0]) for part in starts if part.size)))
    apart = [trace.rank for at, trace in enumerate(run.traces) if not common.is_common(at)]
    notes = [f"{common.method}, error {common.error_ns:,} ns"]
    if apart:
        notes.append(f"ranks {', '.join(map(str, apart))} share no collective with the others: they stand as recorded")
    return Timeline(run, chosen, common, origin_ns, tuple(notes))


def events(line: Timeline, findings: Sequence[FindingRow] = ()) -> Iterator[str]:
    """Every event as a JSON object, in text."""
    parts, found = breakdown(line.run), steps(line.run)
    shown = [at for at, trace in enumerate(line.run.traces) if is_chosen(line.cut, trace.rank)]
    for at in shown:
        trace = line.run.traces[at]
        own = "" if line.common is None or line.common.is_common(at) else ", clock of its own"
        device = trace.origin.device_name or trace.origin.device
        yield from form.name_process(trace.rank, f"rank {trace.rank} ({device}{own})")
        yield from _steps(line, at, found[at])
        yield from _terms(line, at, parts[at])
        yield from _streams(line, at)
    yield from _arrows(line)
    yield from _findings(line, findings)


def document(line: Timeline, findings: Sequence[FindingRow] = ()) -> Iterator[str]:
    """The file, in pieces."""
    about = json.dumps({"made by": "shardscope timeline", "run": line.run.label, "notes": list(line.notes)})
    yield f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n'
    for place, event in enumerate(events(line, findings)):
        yield f",\n{event}" if place else event
    yield "\n]}\n"


def _steps(line: Timeline, at: int, found: RankSteps) -> Iterator[str]:
    start, end = line.at(at, found.start_ns), line.at(at, found.end_ns)
    rows = line.is_shown(start, end)
    rows = rows[np.argsort(start[rows], kind="stable")]
    tracks = STEPS + form.packed(start[rows], end[rows])
    for track in np.unique(tracks).tolist():
        yield from form.name_track(found.rank, track, "steps")
    stated = {"tokens": found.tokens, "requests": found.requests}
    texts = []
    for row in rows.tolist():
        args: dict[str, str | int] = {"annotation": found.name[row], "found by": found.source.value}
        args |= {word: int(column[row]) for word, column in stated.items() if column[row] != ABSENT}
        args |= {"not in statistics": found.left_out[row]} if found.left_out[row] else {}
        texts.append(f'"cat":"step","name":{json.dumps(found.phase[row])},"args":{json.dumps(args)}')
    yield from form.slices(found.rank, tracks.tolist(), start[rows], end[rows], texts)


def _terms(line: Timeline, at: int, part: Breakdown) -> Iterator[str]:
    """A track a term; idle time is named by its cause. They tile the window."""
    for place, (kind, name) in enumerate(_TRACKS.items()):
        yield from form.name_track(part.rank, TERMS + place, f"term: {name}")
        held = {_CAUSES[cause]: time for cause, time in part.causes.items()} if kind is Kind.SYNC else {}
        for word, time in (held or {name: part.term(kind)}).items():
            yield from _instants(line, at, time, (part.rank, TERMS + place, word))


def _instants(line: Timeline, at: int, time: Intervals, place: tuple[int, int, str]) -> Iterator[str]:
    process, track, word = place
    start, end = line.at(at, time.start_ns), line.at(at, time.end_ns)
    rows = line.is_shown(start, end)
    texts = [f'"cat":"term","name":{json.dumps(word)}'] * rows.size
    yield from form.slices(process, [track] * rows.size, start[rows], end[rows], texts)


def _streams(line: Timeline, at: int) -> Iterator[str]:
    """Tracks of activities, more than one a stream where they overlap."""
    trace = line.run.traces[at]
    work = trace.activities
    start, end = line.at(at, work.start_ns), line.at(at, work.end_ns)
    shown = line.is_shown(start, end)
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
        for place in range(int(places.max()) + 1):
            yield from form.name_track(trace.rank, first + place, title)
        yield from form.slices(
            trace.rank, tracks[rows].tolist(), start[rows], end[rows], texts[work.name.codes[rows]].tolist()
        )
        first += int(places.max()) + 1
    line.tracks[at] = tracks


def _arrows(line: Timeline) -> Iterator[str]:
    """From the last rank of each collective to each rank that still waits when it arrives."""
    try:
        groups = waits(line.run).groups
    except MissingEvidenceError:
        return
    number = 0
    for part in groups:
        if line.common is None or not line.common.is_common(*part.group.traces):
            continue
        for begin, end in _pairs(line, part):
            number += 1
            yield from form.arrow(number, begin, end)


def _pairs(line: Timeline, part: GroupWaits) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Ends of the arrows of one group, each as (rank, track, time)."""
    shape = part.group.row.shape
    start, end, track = (np.full(shape, ABSENT, np.int64) for _ in range(3))
    for place, at in enumerate(part.group.traces):
        if at not in line.tracks:
            continue
        has = np.flatnonzero(part.group.row[:, place] != ABSENT)
        rows, work = part.group.row[has, place], line.run.traces[at].activities
        start[has, place], end[has, place] = line.at(at, work.start_ns[rows]), line.at(at, work.end_ns[rows])
        track[has, place] = line.tracks[at][rows]
    is_there = track != ABSENT
    last = np.argmax(np.where(is_there, start, ABSENT), axis=1)
    calls = np.arange(shape[0])
    arrived = start[calls, last]
    waiting = is_there & (start <= arrived[:, None]) & (end > arrived[:, None])
    waiting[calls, last] = False
    for call, place in zip(*(column.tolist() for column in np.nonzero(waiting)), strict=True):
        source = int(last[call])
        moment = int(arrived[call])
        yield (
            (part.group.ranks[source], int(track[call, source]), moment),
            (part.group.ranks[place], int(track[call, place]), moment),
        )


def _findings(line: Timeline, findings: Sequence[FindingRow]) -> Iterator[str]:
    """A mark for each finding at the worst place shown of the rank it is about; at the rank's start where it has none.

    What is about the whole run is marked on the first rank. What lies outside of the cut is not marked.
    """
    first_ns = min((int(trace.activities.start_ns[0]) for trace in line.run.traces if len(trace.activities)), default=0)
    shown = {trace.rank: at for at, trace in enumerate(line.run.traces) if is_chosen(line.cut, trace.rank)}
    named: set[int] = set()
    for row in findings:
        rank = next((rank for rank in row.evidence.ranks or shown if rank in shown), None)
        if rank is None:
            continue
        at = shown[rank]
        places = np.array(row.evidence.spans, np.int64).reshape(-1, 2) + first_ns
        start, end = line.at(at, places[:, 0]), line.at(at, places[:, 1])
        rows = line.is_shown(start, np.maximum(end, start + 1))
        if start.size and not rows.size:
            continue
        window = line.run.traces[at].window
        begin = int(start[rows[0]]) if rows.size else int(line.at(at, window.start_ns[:1])[0])
        if rank not in named:
            named.add(rank)
            yield from form.name_track(rank, FINDINGS, "findings")
        args = json.dumps({"message": row.message, "advice": row.advice, "basis": row.basis, "severity": row.severity})
        text = f'"cat":"finding","name":{json.dumps(f"{row.rule} {row.name}")},"args":{args}'
        yield form.marker(rank, FINDINGS, max(begin, line.cut.from_ns), text)
