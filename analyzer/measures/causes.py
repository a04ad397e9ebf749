"""Why the device did nothing: what one rank can tell by itself.

Each idle stretch ends where the next activity starts. If that activity was launched inside the stretch, the time before
the launch is the host's: it was blocked in a synchronizing call, or between steps, or had not got there yet. If it
was launched before, the stretch is the device's own: another stream, an event, the queue, a dependency inside a graph.
Where it is longer than any queue takes and nothing that is recorded holds the activity back, something ran that is not
recorded: another process on the device, or work whose records were lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT
from analyzer.model.kind import Cause, Kind
from analyzer.model.subclass import SETUP
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.launches import launch_rows
from analyzer.steps.steps import working_annotations

LAUNCH_LATENCY_NS = 10_000
"""From the end of a launch call to its kernel's start on an idle device: 4 to 10 µs. Beyond it the kernel waits."""

DISPATCH_NS = 100_000
"""From launch to start on a device that runs nothing, at most: of 64 recorded devices the slowest takes 86 µs (MI300X,
a GEMM behind a GEMM), all but six less than 50 µs. Time slices of a shared device last 1 to 3 ms."""

HOLDS_BACK = re.compile(
    r"^(cuda|hip|cu)StreamWait(Event|Value)|^(cuda|hip|cu)LaunchHostFunc|^(cuda|hip|cu)StreamAddCallback"
    r"|^(cu|hip)StreamBatchMemOp|^aclrt(StreamWaitEvent|LaunchCallback)|^cnrtQueueWaitNotifier|^cnrtInvokeHostFunc"
)
"""Calls after which a stream waits for an event, for a host function, or for a value that a peer writes."""

BLOCKING_CALL = re.compile(
    r"^(cuda|hip)(Stream|Event|Device)Synchronize|^cuCtxSynchronize|^cu(Stream|Event)Synchronize"
    r"|^(cuda|hip)Memcpy$|^hipMemcpyWithStream|^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|HostMalloc)$"
    r"|^aclrtSynchronize|^(synchronize|synchronizeStream)$|^cnrt(Queue|Device)Sync|Stream Sync|Context Sync"
)
"""Calls that return only when the device has caught up. MemcpyAsync is not: it blocks for pageable memory alone."""


@dataclass(frozen=True, slots=True, eq=False)
class _Gaps:
    """Idle stretches with the launch of what ended each.

    Attributes:
        start_ns, end_ns: int64[m].
        launch_ns, launched_ns: int64[m], begin and end of the launch call.
        thread: int64[m], which launched.
        known: bool[m], a launch call is recorded.
        same_launch: bool[m], the activity before came from the same launch (a graph).
        activity: int64[m], row of what ended each.
    """

    start_ns: Integers
    end_ns: Integers
    launch_ns: Integers
    launched_ns: Integers
    thread: Integers
    known: Mask
    same_launch: Mask
    activity: Integers


def causes(trace: Trace, idle: Intervals) -> dict[Cause, Intervals]:
    """A partition of `idle` over every cause but PEER_WAIT, which takes all ranks to tell."""
    if trace.origin.device == "cpu":
        return _without_device(trace, idle)
    waiting_entries = trace.activities.busy(Kind.SYNC) & idle
    gaps = _gaps(trace, idle - waiting_entries)
    own_launch = gaps.known & ~gaps.same_launch
    unlaunched_until = np.clip(gaps.launch_ns, gaps.start_ns, gaps.end_ns)
    launching_until = np.clip(gaps.launched_ns + LAUNCH_LATENCY_NS, unlaunched_until, gaps.end_ns)
    lost = own_launch & _unexplained(trace, gaps)
    queued = own_launch & ~lost
    device = Intervals.from_arrays(launching_until[queued], gaps.end_ns[queued]) | Intervals.from_arrays(
        gaps.start_ns[gaps.same_launch], gaps.end_ns[gaps.same_launch]
    )
    launching = Intervals.from_arrays(unlaunched_until[own_launch], launching_until[own_launch])
    blocked, between, late = _host_side(trace, gaps, own_launch, unlaunched_until)
    unknown = Intervals.from_arrays(gaps.start_ns[~gaps.known], gaps.end_ns[~gaps.known])
    return {
        Cause.HOST_SYNC: blocked,
        Cause.HOST_LAUNCH: launching | late,
        Cause.STREAM_WAIT: device | waiting_entries,
        Cause.QUEUE: between,
        Cause.UNRECORDED: Intervals.from_arrays(launching_until[lost], gaps.end_ns[lost]),
        Cause.UNKNOWN: unknown,
    }


def _unexplained(trace: Trace, gaps: _Gaps) -> Mask:
    """bool[m]: stretches whose activity was launched longer ago than a queue takes, with no wait recorded before it.

    The device runs nothing, so that no stream of it can be what the activity waits for. A wait that was put on its
    stream is recorded between the launch of the stream's activity before and its own, on the thread that launched.
    """
    late = _late(gaps)
    rows = np.flatnonzero(late)
    holding = trace.calls.take(trace.calls.name.where(lambda name: HOLDS_BACK.search(name) is not None))
    if rows.size == 0 or len(holding) == 0:
        return late
    since = _launch_before(trace)[gaps.activity[rows]]
    held = np.zeros(rows.size, np.bool_)
    for thread in np.unique(gaps.thread[rows]):
        begins = holding.start_ns[holding.lane == thread]
        latest = np.searchsorted(begins, gaps.launch_ns[rows], side="right")
        held |= (gaps.thread[rows] == thread) & (latest > np.searchsorted(begins, since, side="left"))
    late[rows[held]] = False
    return late


def _launch_before(trace: Trace) -> Integers:
    """int64[m]: when the activity before each on its stream was launched; long ago where none is known."""
    work, call_of = trace.activities, launch_rows(trace)
    launched = np.where(call_of == ABSENT, np.iinfo(np.int64).min, _at(trace.calls.start_ns, call_of))
    order = np.lexsort((work.start_ns, work.lane, work.process))
    process, lane = work.process[order], work.lane[order]
    follows = (process[1:] == process[:-1]) & (lane[1:] == lane[:-1])
    before = np.full(len(work), np.iinfo(np.int64).min)
    before[order[1:]] = np.where(follows, launched[order[:-1]], before[order[1:]])
    return before


def started_late(trace: Trace, idle: Intervals) -> Intervals:
    """Stretches before activities that start later on an idle device than any queue takes, whatever they waited for.

    At the ends of a recording an event wait explains nothing: the work that it was for may not be recorded.
    """
    gaps = _gaps(trace, idle)
    late = _late(gaps) & ~gaps.same_launch
    return Intervals.from_arrays(np.maximum(gaps.launched_ns, gaps.start_ns)[late], gaps.end_ns[late])


def _late(gaps: _Gaps) -> Mask:
    """bool[m]: launched longer ago than a queue takes, on a device that has done nothing for as long."""
    late: Mask = gaps.known & (gaps.end_ns - np.maximum(gaps.launched_ns, gaps.start_ns) > DISPATCH_NS)
    return late


def _host_side(
    trace: Trace, gaps: _Gaps, own_launch: Mask, until_ns: Integers
) -> tuple[Intervals, Intervals, Intervals]:
    """Time before the launch: blocked in a call, between steps, and the rest, by the thread that launched."""
    blocking = trace.calls.take(trace.calls.name.where(lambda name: BLOCKING_CALL.search(name) is not None))
    steps = working_annotations(trace)
    inside = steps.union()
    blocked = between = late = Intervals.empty()
    for thread in np.unique(gaps.thread[own_launch]):
        rows = own_launch & (gaps.thread == thread)
        before = Intervals.from_arrays(gaps.start_ns[rows], until_ns[rows])
        in_call = before & blocking.take(blocking.lane == thread).union()
        rest = before - in_call
        outside = rest - inside if len(steps) else Intervals.empty()
        blocked, between, late = blocked | in_call, between | outside, late | (rest - outside)
    return blocked, between, late


def _gaps(trace: Trace, idle: Intervals) -> _Gaps:
    working = np.flatnonzero(trace.activities.kind != Kind.SYNC)
    work, call_of = trace.activities.take(working), launch_rows(trace)[working]
    following = np.minimum(np.searchsorted(work.start_ns, idle.end_ns), max(len(work) - 1, 0))
    previous = np.maximum(following - 1, 0)
    call = call_of[following] if len(work) else np.zeros(0, np.int64)
    known = call != ABSENT
    correlation = work.correlation
    linked = (correlation[following] != ABSENT) & (following > 0)
    return _Gaps(
        start_ns=idle.start_ns,
        end_ns=idle.end_ns,
        launch_ns=np.where(known, _at(trace.calls.start_ns, call), idle.end_ns),
        launched_ns=np.where(known, _at(trace.calls.end_ns, call), idle.end_ns),
        thread=np.where(known, _at(trace.calls.lane, call), ABSENT),
        known=known,
        same_launch=known & linked & (correlation[following] == correlation[previous]),
        activity=working[following] if len(work) else following,
    )


def _at(column: Integers, rows: Integers) -> Integers:
    """Values of the rows; anything where the row is absent (the caller masks it)."""
    if column.size == 0:
        return np.zeros(rows.shape, np.int64)
    return column[np.maximum(rows, 0)]


def posting(trace: Trace) -> Intervals:
    """The instants at which a host without an accelerator hands a collective to its backend."""
    activities = trace.activities
    return activities.take(
        (activities.kind == Kind.SYNC) & activities.subclass.where(lambda word: word == SETUP)
    ).union()


def _without_device(trace: Trace, idle: Intervals) -> dict[Cause, Intervals]:
    """No operation runs on any thread: inside a step the host is between operations, outside it has no work.

    Handing a collective to its backend is the launch of it.
    """
    steps = working_annotations(trace)
    activities = trace.activities
    is_recorded = bool(np.any(activities.kind != Kind.SYNC))  # else of a device of which nothing is known
    known = len(steps) > 0 and is_recorded
    inside = idle & ((steps.union() if known else Intervals.empty()) | posting(trace))
    outside = idle - inside
    return {
        Cause.HOST_SYNC: Intervals.empty(),
        Cause.HOST_LAUNCH: inside,
        Cause.STREAM_WAIT: Intervals.empty(),
        Cause.QUEUE: outside if known else Intervals.empty(),
        Cause.UNRECORDED: Intervals.empty(),
        Cause.UNKNOWN: Intervals.empty() if known else outside,
    }
