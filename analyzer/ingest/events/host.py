"""Traces without a device: the leaf operation that runs at each instant of each thread is the activity."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from analyzer.classify import classify
from analyzer.ingest.events.device import compact, events
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.events import ABSENT, Activities, Events
from analyzer.model.kind import Kind
from analyzer.model.pattern import Pattern
from analyzer.model.subclass import SETUP
from analyzer.stats.arrays import Integers, Mask

OPERATIONS = frozenset(("cpu_op", "operator"))
DEVICE_UNKNOWN = "device_unknown"
CARRIED_OUT = ("gloo:", "mpi:", "ucc:")
"""Annotations that span a collective from when the backend takes it up to its end; they are operations, not marks."""
POSTED = ("c10d::", "_c10d_functional::", "_dtensor::")
"""Operations that hand a collective to its backend. Where the backend's own span is recorded, they are not the call."""
POINT_TO_POINT = ("gloo:send", "gloo:recv")
"""These lie on the caller's thread from post to completion, across its other operations instead of around them."""


def is_operation(raw: RawTrace) -> Mask:
    """bool[n]: operations of the framework, and collectives as their backend carries them out."""
    return raw.category.where(lambda category: category.lower() in OPERATIONS) | is_carried_out(raw)


def is_carried_out(raw: RawTrace) -> Mask:
    """bool[n]: collectives as their backend carries them out."""
    annotated = raw.category.where(lambda category: category == "user_annotation")
    return annotated & raw.name.where(lambda name: name.startswith(CARRIED_OUT))


def leaf_activities(raw: RawTrace) -> tuple[Activities, Integers]:
    """Self time of every operation as activities, and the row in `raw` that each belongs to.

    An operation that calls others is cut by them into several activities. A collective stays whole: what runs inside it
    on its thread is its own packing.
    """
    chosen = np.flatnonzero(is_operation(raw))
    operations = events(raw, chosen)
    rows = chosen[np.lexsort((-raw.duration_ns[chosen], raw.start_ns[chosen]))]
    whole = operations.name.where(lambda name: name.startswith(CARRIED_OUT))
    apart = operations.name.where(lambda name: name.startswith(POINT_TO_POINT))
    operation, start, end = _self_times(operations, np.flatnonzero(~apart), whole)
    operation = np.concatenate((operation, np.flatnonzero(apart)))
    start = np.concatenate((start, operations.start_ns[apart]))
    end = np.concatenate((end, operations.end_ns[apart]))
    order = np.lexsort((end, start))
    operation, start, end = operation[order], start[order], end[order]
    names = compact(operations.name.take(operation))
    nothing = np.full(operation.size, ABSENT, np.int64)
    patterns = _posting_told_apart(names.values) if whole.any() else classify(names.values)
    made = Activities(
        names, start, end, operations.process[operation], operations.lane[operation], nothing, patterns, nothing
    )
    return made, rows[operation]


def not_compute(operations: Activities) -> Activities:
    """Operations of a host whose device was not recorded: what the device did in their time is unknown."""
    unknown = Pattern("", Kind.SYNC, DEVICE_UNKNOWN, ())
    return replace(operations, patterns=(unknown,) * len(operations.name.values))


def _posting_told_apart(names: tuple[str, ...]) -> tuple[Pattern | None, ...]:
    """What names mean where a collective's own span is there: its posting is host time, so that no call counts twice.

    It is no compute either: the host may post on one thread while the collective runs on another.
    """
    return tuple(
        replace(pattern, kind=Kind.SYNC, subclass=SETUP)
        if pattern is not None and pattern.kind is Kind.COMMUNICATION and name.startswith(POSTED)
        else pattern
        for name, pattern in zip(names, classify(names), strict=True)
    )


def _self_times(operations: Events, chosen: Integers, whole: Mask) -> tuple[Integers, Integers, Integers]:
    """Operation, start and end of each stretch in which an operation is the innermost of its thread."""
    stretches: list[tuple[Integers, Integers, Integers]] = [(chosen[:0], chosen[:0], chosen[:0])]
    order = chosen[np.lexsort((operations.lane[chosen], operations.process[chosen]))]
    keys = np.stack((operations.process[order], operations.lane[order]))
    changes = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    edges = [0, *changes.tolist(), order.size] if order.size else []
    for first, last in pairwise(edges):
        thread = np.sort(order[first:last])
        stretches.append(_thread_self_times(operations, _without_inner(operations, thread, whole)))
    operation, start, end = (np.concatenate(parts) for parts in zip(*stretches, strict=True))
    return operation, start, end


def _without_inner(operations: Events, thread: Integers, whole: Mask) -> Integers:
    """The thread's operations without those that start inside a whole one."""
    keepers = thread[whole[thread]]
    if keepers.size == 0:
        return thread
    before = np.searchsorted(keepers, thread, side="left") - 1
    reach = np.maximum.accumulate(operations.end_ns[keepers])[np.maximum(before, 0)]
    inner = (before >= 0) & (operations.start_ns[thread] < reach)
    outer: Integers = thread[~inner]
    return outer


def _thread_self_times(operations: Events, thread: Integers) -> tuple[Integers, Integers, Integers]:
    """Innermost operation between each two neighbouring starts and ends of one thread.

    After each instant, the innermost is the latest start that left the nesting as deep as it is now.
    """
    start, end = operations.start_ns[thread], _nested_ends(operations.start_ns[thread], operations.end_ns[thread])
    instants = np.concatenate((start, end))
    n = thread.size
    # Ends before starts at one instant; of ends the innermost (latest started) first, of starts the outermost.
    order = np.lexsort((np.concatenate((np.arange(n), -np.arange(n))), np.repeat([1, 0], n), instants))
    opens = order < n
    depth = np.cumsum(np.where(opens, 1, -1))
    by_depth = np.lexsort((np.arange(2 * n), depth))
    latest = np.maximum.accumulate(np.where(opens[by_depth], np.arange(2 * n), -1))
    inner = np.empty(2 * n, np.int64)
    inner[by_depth] = order[by_depth][np.maximum(latest, 0)] % n
    begin, until = instants[order][:-1], instants[order][1:]
    kept = (depth[:-1] > 0) & (until > begin)
    return thread[inner[:-1][kept]], begin[kept], until[kept]


def _nested_ends(start: Integers, end: Integers) -> Integers:
    """Ends cut to the end of the enclosing operation, so that a thread's operations nest.

    Clocks of a profiler are read one after another: a child may be recorded as ending a few ns after its parent.
    """
    cut: Integers = end.copy()
    stack: list[int] = []
    for i in range(start.size):
        while stack and cut[stack[-1]] <= start[i]:
            stack.pop()
        if stack and cut[i] > cut[stack[-1]]:
            cut[i] = cut[stack[-1]]
        stack.append(i)
    return cut
