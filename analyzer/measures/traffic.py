"""Collectives by kind and group: calls, bytes, time, as each rank sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.measures.breakdown import breakdown
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.stats.arrays import Integers, Mask

Keys = dict[tuple[str, tuple[int, ...], str], Mask]
"""Kind, ranks of the group and its name → bool[n] over the activities of a trace."""

SETUP = ("comm_setup",)
"""Kernels that prepare an exchange; their time is communication, but they are no call of their own."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """All calls of one kind on one group.

    Attributes:
        kind: all_reduce, all_gather, dispatch, …
        group: ranks of the group, () where the trace does not say.
        name: of the process group as recorded, "" where not.
        count: calls of the rank that has most.
        message_bytes: median over calls that record it (the reduced tensor, the gathered output, the scattered input);
            None where no call does.
        median_ns: median duration of a call on a rank, waiting included.
        busy_ns: union of the calls, mean over ranks.
        exposed_ns: the part of it under no compute, mean over ranks, waiting included.
        names: distinct kernel names.
        fused: whether one of these kernels computes as well.
    """

    kind: str
    group: tuple[int, ...]
    name: str
    count: int
    message_bytes: int | None
    median_ns: int
    busy_ns: int
    exposed_ns: int
    names: tuple[str, ...]
    fused: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """One rank's calls of one kind and group."""

    duration_ns: Integers
    message_bytes: Integers
    busy_ns: int
    exposed_ns: int
    names: frozenset[str]
    fused: bool


@once
def traffic(run: Run) -> tuple[Traffic, ...]:
    """Every kind and group of the run, most exposed time first."""
    calls_by_key: dict[tuple[str, tuple[int, ...], str], list[_Calls]] = {}
    for trace, rank_split, keys in zip(run.traces, breakdown(run), call_keys(run), strict=True):
        for key, rows in keys.items():
            activities = trace.activities.take(rows)
            busy = activities.union()
            calls = _Calls(
                activities.duration_ns,
                message_bytes(trace)[rows],
                busy.total_ns,
                (busy - rank_split.compute).total_ns,
                frozenset(activities.name.tolist()),
                bool(activities.blends(Blend.FUSED).any()),
            )
            calls_by_key.setdefault(key, []).append(calls)
    rows_ = [_summary(key, calls) for key, calls in calls_by_key.items()]
    return tuple(sorted(rows_, key=lambda row: (-row.exposed_ns, row.kind, row.group)))


@once
def call_keys(run: Run) -> tuple[Keys, ...]:
    """For each trace, which of its activities are calls of which kind and group; a call has one key."""
    return tuple(map(_keys, run.traces))


def message_bytes(trace: Trace) -> Integers:
    """int64[n] over the trace's activities: bytes of the message of a collective, ABSENT where not recorded.

    The message is the larger of input and output, which is the convention of nccl-tests for every kind.
    """
    column = np.full(len(trace.activities), ABSENT, np.int64)
    records = trace.collectives
    column[records.activity] = np.maximum(records.in_bytes, records.out_bytes)
    return column


def _keys(trace: Trace) -> Keys:
    activities, records = trace.activities, trace.collectives
    kind = activities.subclass.tolist()
    group: list[tuple[tuple[int, ...], str]] = [((), "")] * len(kind)
    recorded = {name.name: name.ranks for name in trace.origin.groups}
    for row, operation, name in zip(
        records.activity.tolist(), records.operation.tolist(), records.group.tolist(), strict=True
    ):
        kind[row] = operation or kind[row]
        group[row] = (recorded.get(name, ()), name)
    is_call = (activities.kind == Kind.COMMUNICATION) & ~activities.subclass.where(lambda word: word in SETUP)
    keys: dict[tuple[str, tuple[int, ...], str], list[int]] = {}
    for row in np.flatnonzero(is_call).tolist():
        keys.setdefault((kind[row], *group[row]), []).append(row)
    masks = {}
    for key, rows in keys.items():
        masks[key] = np.zeros(len(activities), np.bool_)
        masks[key][rows] = True
    return masks


def _summary(key: tuple[str, tuple[int, ...], str], calls: list[_Calls]) -> Traffic:
    kind, group, name = key
    stated = np.concatenate([rank_calls.message_bytes for rank_calls in calls])
    known = stated[stated != ABSENT]
    durations = np.concatenate([rank_calls.duration_ns for rank_calls in calls])
    return Traffic(
        kind=kind,
        group=group,
        name=name,
        count=max(rank_calls.duration_ns.size for rank_calls in calls),
        message_bytes=int(np.median(known)) if known.size else None,
        median_ns=int(np.median(durations)),
        busy_ns=sum(rank_calls.busy_ns for rank_calls in calls) // len(calls),
        exposed_ns=sum(rank_calls.exposed_ns for rank_calls in calls) // len(calls),
        names=tuple(sorted(frozenset().union(*(rank_calls.names for rank_calls in calls)))),
        fused=any(rank_calls.fused for rank_calls in calls),
    )
