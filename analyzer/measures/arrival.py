"""What a rank did before it came to a collective, against what the others did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analyzer.matching.clock import clock
from analyzer.measures.breakdown import UNCLASSIFIED, Breakdown, breakdown
from analyzer.measures.causes import BLOCKING_CALL
from analyzer.measures.waits import GroupWaits
from analyzer.model.events import ABSENT, Activities
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Floats, Integers, Mask

NAMES = 5
"""Kernel names that are looked at one by one: those on which the late rank spends most more."""

DOING: dict[str, Callable[[Breakdown], Callable[[Integers, Integers], Integers]]] = {
    "compute": lambda rank_split: rank_split.term(Kind.COMPUTE).within,
    "movement": lambda rank_split: rank_split.term(Kind.MOVEMENT).within,
    "launch": lambda rank_split: rank_split.causes[Cause.HOST_LAUNCH].within,
    "blocked": lambda rank_split: rank_split.causes[Cause.HOST_SYNC].within,
    "stream": lambda rank_split: rank_split.causes[Cause.STREAM_WAIT].within,
    "unrecorded": lambda rank_split: rank_split.causes[Cause.UNRECORDED].within,
}
"""What a rank can do between two collectives: compute, copy, wait for its host to launch or to be unblocked, wait for
another stream, an event or a dependency, or nothing that is recorded."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Something a late rank does longer than the others before it comes.

    Attributes:
        doing: a word of `DOING`; with a name, "compute" or "blocked".
        name: the kernel or the blocking call, "" for all of its sort together.
        work: subclass of the kernel, "" for all together.
        excess_ns: longer than the mean of the others, mean a call.
        share: of how late the rank comes by its own doing; more than 1 where it makes up for some of it.
        correlation: over calls and ranks, of the time so spent with how late a rank comes, both less the mean of the
            call; NaN where either is constant.
        more_calls: kernels more than the mean of the others, mean a call: unequal work rather than slower work.
    """

    doing: str
    name: str
    work: str
    excess_ns: int
    share: float
    correlation: float
    more_calls: float


@dataclass(frozen=True, slots=True, eq=False)
class Approach:
    """The way of p ranks to each of k collectives: from the last collective of any group before it.

    Attributes:
        begin_ns, end_ns: int64[k, p] on each rank's own clock; ABSENT where the rank has no such call.
        begun_ns: float64[k, p], the begin on one clock; NaN where missing.
    """

    begin_ns: Integers
    end_ns: Integers
    begun_ns: Floats


def approach(run: Run, group_waits: GroupWaits) -> Approach:
    """Where each rank's own doing before each collective began and ended."""
    group, common = group_waits.group, clock(run)
    begin = np.full(group.row.shape, ABSENT, np.int64)
    end = np.full(group.row.shape, ABSENT, np.int64)
    begun = np.full(group.row.shape, np.nan)
    for column, trace_index in enumerate(group.traces):
        has = group.row[:, column] != ABSENT
        rows = group.row[has, column]
        end[has, column] = run.traces[trace_index].activities.start_ns[rows]
        begin[has, column] = _last_end(run.traces[trace_index], rows)
        begun[has, column] = common.to_reference(trace_index, begin[has, column])
    return Approach(begin, end, begun)


def _last_end(trace: Trace, rows: Integers) -> Integers:
    """int64[k]: end of the collectives that started before each row, no later than its start; else the first start."""
    activities = trace.activities
    calls = np.flatnonzero(activities.kind == Kind.COMMUNICATION)
    reach = np.maximum.accumulate(activities.end_ns[calls])
    before = np.searchsorted(calls, rows) - 1
    last = np.where(before >= 0, reach[np.maximum(before, 0)], activities.start_ns[0])
    return np.minimum(last, activities.start_ns[rows])


def reasons(run: Run, group_waits: GroupWaits, way: Approach, late: tuple[int, Mask]) -> tuple[Reason, ...]:
    """What the rank of a column does longer than the others, largest excess first: each sort, kernels, and calls.

    Args:
        run: the run.
        group_waits: the group.
        way: its approach.
        late: column of the rank, and bool[k]: the calls it is last in.
    """
    column, mine = late
    whole = np.flatnonzero((group_waits.group.row != ABSENT).all(axis=1))
    chosen = mine[whole]
    if whole.size == 0 or not chosen.any():
        return ()
    view = _View(
        column=column,
        chosen=chosen,
        late=_apart(group_waits.start_ns[whole]),
        begin_ns=way.begin_ns[whole],
        end_ns=way.end_ns[whole],
        own_ns=float(np.mean(_against(group_waits.start_ns[whole] - way.begun_ns[whole], column)[chosen])),
    )
    rank_splits = breakdown(run)
    candidates = []
    for word, of in DOING.items():
        columns = [
            of(rank_splits[trace_index])(view.begin_ns[:, j], view.end_ns[:, j])
            for j, trace_index in enumerate(group_waits.group.traces)
        ]
        candidates.append(_reason(view, (word, "", ""), np.stack(columns, axis=1).astype(np.float64), None))
    candidates += [*_kernels(run, group_waits, view), *_blocking(run, group_waits, view)]
    longer = [reason for reason in candidates if reason.excess_ns > 0]
    return tuple(sorted(longer, key=lambda reason: (-reason.excess_ns, reason.name != "")))


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The calls that all ranks show: whose reasons, in which calls, how late each rank comes, and their approaches."""

    column: int
    chosen: Mask
    late: Floats
    begin_ns: Integers
    end_ns: Integers
    own_ns: float


def _apart(table: Floats) -> Floats:
    """float64[k, p]: less the mean of each call."""
    apart: Floats = table - table.mean(axis=1, keepdims=True)
    return apart


def _against(table: Floats, column: int) -> Floats:
    """float64[k]: one rank less the mean of the others."""
    others = np.delete(table, column, axis=1)
    against: Floats = table[:, column] - others.mean(axis=1)
    return against


def _reason(view: _View, what: tuple[str, str, str], spent: Floats, calls: Floats | None) -> Reason:
    excess = float(np.mean(_against(spent, view.column)[view.chosen]))
    longer = _apart(spent)
    steady = not longer.any() or not view.late.any()
    return Reason(
        doing=what[0],
        name=what[1],
        work=what[2],
        excess_ns=round(excess),
        share=excess / view.own_ns if view.own_ns > 0 else float("nan"),
        correlation=float("nan") if steady else float(np.corrcoef(view.late.ravel(), longer.ravel())[0, 1]),
        more_calls=0.0 if calls is None else float(np.mean(_against(calls, view.column)[view.chosen])),
    )


def _kernels(run: Run, group_waits: GroupWaits, view: _View) -> list[Reason]:
    """The compute kernels on which the late rank spends most more, by name."""
    totals: list[dict[str, int]] = []
    calls_of_rank: list[tuple[Activities, Integers]] = []
    for column, trace_index in enumerate(group_waits.group.traces):
        activities = run.traces[trace_index].activities
        call = _call_of(activities, view.begin_ns[:, column], view.end_ns[:, column])
        inside = np.flatnonzero((call != ABSENT) & (activities.kind == Kind.COMPUTE))
        inside = inside[view.chosen[call[inside]]]
        spent = np.zeros(len(activities.name.values), np.int64)
        np.add.at(spent, activities.name.codes[inside], activities.duration_ns[inside])
        totals.append({activities.name.values[code]: int(spent[code]) for code in np.flatnonzero(spent)})
        calls_of_rank.append((activities, call))
    mine = totals[view.column]
    others = [total for column, total in enumerate(totals) if column != view.column]
    more = {name: ns - sum(total.get(name, 0) for total in others) / len(others) for name, ns in mine.items()}
    names = sorted((name for name in more if more[name] > 0), key=lambda name: -more[name])[:NAMES]
    return [_kernel(view, name, calls_of_rank) for name in names]


def _kernel(view: _View, name: str, calls_of_rank: list[tuple[Activities, Integers]]) -> Reason:
    """One name's time and calls before each collective on each rank."""
    size = len(view.begin_ns)
    spent, calls = np.zeros((size, len(calls_of_rank))), np.zeros((size, len(calls_of_rank)))
    for column, (activities, call) in enumerate(calls_of_rank):
        rows = np.flatnonzero((call != ABSENT) & activities.name.where(lambda value: value == name))
        spent[:, column] = np.bincount(call[rows], activities.duration_ns[rows], size)
        calls[:, column] = np.bincount(call[rows], minlength=size)
    activities, _ = calls_of_rank[view.column]
    pattern = activities.patterns[activities.name.values.index(name)]
    return _reason(view, ("compute", name, UNCLASSIFIED if pattern is None else pattern.subclass), spent, calls)


def _blocking(run: Run, group_waits: GroupWaits, view: _View) -> list[Reason]:
    """The calls in which its host is blocked longer than the others', by name."""
    rank_splits, traces = breakdown(run), [run.traces[trace_index] for trace_index in group_waits.group.traces]
    names = {name for trace in traces for name in trace.calls.name.values if BLOCKING_CALL.search(name)}
    blocking = []
    for name in sorted(names):
        columns = [
            (
                trace.calls.take(trace.calls.name.where(name.__eq__)).union()
                & rank_splits[trace_index].causes[Cause.HOST_SYNC]
            ).within(view.begin_ns[:, column], view.end_ns[:, column])
            for column, (trace_index, trace) in enumerate(zip(group_waits.group.traces, traces, strict=True))
        ]
        blocking.append(_reason(view, ("blocked", name, ""), np.stack(columns, axis=1).astype(np.float64), None))
    return blocking


def _call_of(activities: Activities, begin_ns: Integers, end_ns: Integers) -> Integers:
    """int64[n]: the collective before which each activity started, ABSENT where it started before none."""
    call = np.searchsorted(end_ns, activities.start_ns, side="right")
    inside = call < end_ns.size
    inside[inside] = activities.start_ns[inside] >= begin_ns[call[inside]]
    return np.where(inside, call, ABSENT).astype(np.int64)
