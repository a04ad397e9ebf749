"""Records that are missing: launches without kernels, kernels without launches, graph replays that lack kernels.

Profilers drop whole buffers of records when they are full, and stop in the middle of the work that is queued. What is
cut off at the two ends of the window is no fault and is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT, Events
from analyzer.model.trace import Doubt, Note, Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.launches import graph_launches, launch_rows
from analyzer.units import count, duration

LAUNCH = re.compile(r"^(cuda|hip|cu)(Ext|Module|Graph)*Launch(?!HostFunc)")
"""Calls that put work on the device. A host function is none."""
BEGIN_CAPTURE = re.compile(r"^(cuda|hip|cu)StreamBeginCapture")
END_CAPTURE = re.compile(r"^(cuda|hip|cu)StreamEndCapture")

LOST_ROW = 32
"""Launches in a row without a kernel that are a lost buffer rather than single lost records."""

NOTABLE = 0.01
"""Of launches, of kernels or of the window: less that is missing changes no verdict."""

FEWEST_LOST = 2
"""Kernels that a replay lacks; one alone may be a branch of the program."""

HOLE = 0.5
"""Of the time that the missing kernels take elsewhere: a replay that is merely another graph has no hole in it."""

OF_LOST_RECORDS = frozenset((Doubt.IDLE, Doubt.LAUNCHES, Doubt.COMPUTE, Doubt.STEPS))
"""What missing kernels make unreliable: they read as idle time, and nobody knows which they were."""


def missing_records(trace: Trace) -> Iterator[Note]:
    """What of the work and its launches is not in the trace."""
    calls = trace.calls
    chosen = _distinct(calls, launches(calls))
    ran = np.isin(calls.correlation[chosen], trace.activities.correlation)
    if ran.any():
        inside = slice(0, int(np.flatnonzero(ran)[-1]) + 1)  # what is launched behind it is cut off, not lost
        is_graph = graph_launches(trace)[chosen]
        yield from _launches(trace, chosen[inside], ~(ran | is_graph)[inside])
        yield from _replays(trace, chosen[is_graph], int(np.count_nonzero((is_graph & ~ran)[inside])))
    yield from _kernels(trace)


def launches(calls: Events) -> Mask:
    """bool[n]: calls that launch, outside captures: what is captured runs later, if ever."""
    return launching(calls) & ~captured(calls)


def launching(calls: Events) -> Mask:
    """bool[n]: calls that launch, with a correlation, those that are captured among them."""
    chosen: Mask = calls.name.where(lambda name: LAUNCH.match(name) is not None) & (calls.correlation != ABSENT)
    return chosen


def captured(calls: Events) -> Mask:
    """bool[n]: calls made while a stream is captured."""
    begins = calls.name.where(lambda name: BEGIN_CAPTURE.match(name) is not None)
    if not begins.any():
        return np.zeros(len(calls), np.bool_)
    ends = calls.name.where(lambda name: END_CAPTURE.match(name) is not None)
    opened, closed = np.sort(calls.start_ns[begins]), np.sort(calls.end_ns[ends])
    before = np.searchsorted(opened, calls.start_ns, side="right") - np.searchsorted(closed, calls.start_ns)
    inside: Mask = before > 0
    return inside


def _launches(trace: Trace, rows: Integers, missing: Mask) -> Iterator[Note]:
    """Launches whose kernels are not there, although those of later launches are."""
    calls = trace.calls
    begin, end = _rows_of(missing)
    lost = end - begin >= LOST_ROW
    if lost.any():
        stretches = Intervals.from_arrays(calls.start_ns[rows[begin[lost]]], calls.end_ns[rows[end[lost] - 1]])
        is_notable = stretches.total_ns >= NOTABLE * trace.window.total_ns
        yield Note(
            f"{count(int(lost.sum()), 'stretch', 'stretches')} of {duration(stretches.total_ns)} in all in which "
            f"{int((end - begin)[lost].sum()):,} launches in a row have no kernel, a lost buffer of the profiler: what "
            "ran there reads as idle time",
            doubts=OF_LOST_RECORDS if is_notable else frozenset(),
        )
    single = int((end - begin)[~lost].sum())
    if single:
        text = "launch without a kernel: what it ran is missing from every sum and reads as idle time"
        yield Note(text, single, OF_LOST_RECORDS if single >= NOTABLE * rows.size else frozenset())


def _distinct(calls: Events, chosen: Mask) -> Integers:
    """Rows of the chosen calls, one a correlation: a driver call inside a runtime call is the same launch."""
    rows = np.flatnonzero(chosen)
    _, first = np.unique(calls.correlation[rows], return_index=True)
    return np.sort(rows[first])


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


@dataclass(frozen=True, slots=True, eq=False)
class _Replays:
    """r graph replays that hold kernels.

    Attributes:
        codes: kernel names of all replays, one replay after the other.
        first, held: int64[r], where each replay begins in `codes`, and its number of kernels.
        form: int64[r], replays of one form run the same kernels in the same order.
        span_ns: int64[r], from first start to last end.
        hole_ns: int64[r], the longest time inside in which none of its kernels runs.
    """

    codes: Integers
    first: Integers
    held: Integers
    form: Integers
    span_ns: Integers
    hole_ns: Integers

    def names(self, replay: int) -> Integers:
        """Kernel names of one replay."""
        return self.codes[self.first[replay] : self.first[replay] + self.held[replay]]


def _replays(trace: Trace, launched: Integers, empty: int) -> Iterator[Note]:
    """Graph replays without kernels, or with a hole where another replay of the same graph holds kernels.

    Args:
        trace: whose.
        launched: rows of the calls that replay a graph.
        empty: how many of them hold no kernel although later launches do.
    """
    replays = _held(trace, np.sort(trace.calls.correlation[launched]))
    if replays is None:
        if empty:
            yield Note(
                "graph replay without a kernel: what it ran is missing from every sum and reads as idle time",
                empty,
                OF_LOST_RECORDS,
            )
        return
    lacking = _lacking(replays)
    short, missing = int(np.count_nonzero(lacking)) + empty, int(lacking.sum()) + empty * int(replays.held.min())
    if short == 0:
        return
    doubts = OF_LOST_RECORDS if missing >= NOTABLE * len(trace.activities) else frozenset[Doubt]()
    yield Note(
        f"{short:,} of {launched.size:,} graph replays lack kernels that another replay of their graph holds, at least "
        f"{missing:,}: what ran there reads as idle time",
        doubts=doubts,
    )


def _held(trace: Trace, keys: Integers) -> _Replays | None:
    """The kernels of each replay in order of start; None where none holds any."""
    work = trace.activities
    if keys.size == 0:
        return None
    slot = np.minimum(np.searchsorted(keys, work.correlation), keys.size - 1)
    rows = np.flatnonzero(keys[slot] == work.correlation)
    held = np.bincount(slot[rows], minlength=keys.size).astype(np.int64)
    held = held[held > 0]
    if held.size == 0:
        return None
    rows = rows[np.argsort(slot[rows], kind="stable")]
    first = np.cumsum(held) - held
    codes = work.name.codes[rows].astype(np.int64)
    position = (np.arange(rows.size) - np.repeat(first, held)).astype(np.uint64)
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * (position * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1))
    _, form = np.unique(np.add.reduceat(mixed ^ (mixed >> np.uint64(29)), first), return_inverse=True)
    start, end = work.start_ns[rows], work.end_ns[rows]
    span = np.maximum.reduceat(end, first) - np.minimum.reduceat(start, first)
    empty = np.diff(start, append=start[-1:]) - (end - start)  # until the next; of a replay's last there is none
    empty[first + held - 1] = 0
    return _Replays(codes, first, held, form.reshape(-1).astype(np.int64), span, np.maximum.reduceat(empty, first))


def _lacking(replays: _Replays) -> Integers:
    """int64[r]: kernels that each replay lacks."""
    lacking = np.zeros(replays.held.size, np.int64)
    if replays.held.min() == replays.held.max():
        return lacking
    forms, example = np.unique(replays.form, return_index=True)
    longest_first = example[np.argsort(-replays.held[example], kind="stable")]
    for form, shorter in zip(forms.tolist(), example.tolist(), strict=True):
        whole = _whole(replays, shorter, longest_first)
        if whole is None:
            continue
        missing = int(replays.held[whole] - replays.held[shorter])
        elsewhere_ns = replays.span_ns[whole] * missing / replays.held[whole]
        rows = (replays.form == form) & (replays.hole_ns >= HOLE * elsewhere_ns)
        lacking[rows] = missing
    return lacking


def _whole(replays: _Replays, shorter: int, longest_first: Integers) -> int | None:
    """A longer replay that runs the same kernels but for one stretch in its middle."""
    names = replays.names(shorter)
    for longer in longest_first.tolist():
        if replays.held[longer] < names.size + FEWEST_LOST:
            return None
        others = replays.names(longer)
        if others[0] != names[0] or others[-1] != names[-1]:
            continue
        head, tail = (others[: names.size] != names), (others[-names.size :] != names)[::-1]
        if _leading(head) + _leading(tail) >= names.size:
            return int(longer)
    return None


def _leading(differs: Mask) -> int:
    """How many are equal before the first that differs."""
    return int(differs.argmax()) if differs.any() else differs.size
