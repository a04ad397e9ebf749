"""Every rank's communication calls as columns that can be compared across ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from analyzer.model.events import ABSENT, Labels
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Floats, Integers, Mask

_POSTED = re.compile(r"^(?:c10d|_c10d_functional(?:_autograd)?|_dtensor(?:_autograd)?)::|^record_param_comms$")
"""Host operations that hand a collective over to a worker thread, which runs it under another name."""

_ONE_WAY = re.compile(r"(?:^|:)(send|recv)(?:_any_source)?$")

_COUNTED = re.compile(r"^(hcom_[A-Za-z]+_+\d+)_\d+_\d+.*$")
"""HCCL numbers each call in its name, after the group."""

_SIZED = {
    "all_reduce": "in",
    "reduce_scatter": "in",
    "reduce_to_root": "in",
    "all_gather": "out",
    "broadcast": "out",
    "send": "in",
    "recv": "out",
}
"""The side of a collective whose size is equal on all ranks; other kinds may carry unequal loads."""


@dataclass(slots=True)
class Codes:
    """Strings numbered in order of first sight, equal over all ranks."""

    number: dict[str, int] = field(default_factory=dict)

    def of(self, labels: Labels) -> Integers:
        """int64[n]."""
        table = np.array([self.number.setdefault(value, len(self.number)) for value in labels.values] or [0], np.int64)
        return table[labels.codes]

    @property
    def strings(self) -> tuple[str, ...]:
        """By number."""
        return tuple(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class CallColumns:
    """One rank's n calls in order of start.

    Attributes:
        row: int64[n], in the trace's activities.
        start_ns: float64[n], since the trace's first start: exact, being less than 2 to the 53rd.
        end_ns: float64[n].
        lane: int64[n], stream or thread.
        name: int64[n], code of the kernel's name.
        kind: int64[n], code of the operation as recorded, else of the subclass.
        group: int64[n], code of process group and members as recorded, ABSENT where not.
        sequence: int64[n], ABSENT where not recorded.
        size_bytes: int64[n], of the side that is equal on all ranks, ABSENT where there is none or it is unknown.
        peer: int64[n], the other rank of a send or recv by the instance's numbers, ABSENT elsewhere.
    """

    row: Integers
    start_ns: Floats
    end_ns: Floats
    lane: Integers
    name: Integers
    kind: Integers
    group: Integers
    sequence: Integers
    size_bytes: Integers
    peer: Integers

    def __len__(self) -> int:
        return int(self.row.size)

    def take(self, rows: Mask | Integers) -> CallColumns:
        """The chosen calls, which keep their order."""
        return CallColumns(
            self.row[rows],
            self.start_ns[rows],
            self.end_ns[rows],
            self.lane[rows],
            self.name[rows],
            self.kind[rows],
            self.group[rows],
            self.sequence[rows],
            self.size_bytes[rows],
            self.peer[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class CallTable:
    """The calls of all ranks.

    Attributes:
        base_ns: the first start of each trace, on its own clock.
        calls: one a trace.
        name: names by code.
        kind: kinds by code.
        group: "name|members" by code.
    """

    base_ns: tuple[int, ...]
    calls: tuple[CallColumns, ...]
    name: tuple[str, ...]
    kind: tuple[str, ...]
    group: tuple[str, ...]


def read_calls(run: Run) -> CallTable:
    """Calls of every trace, coded alike."""
    base_ns = tuple(int(trace.activities.start_ns[0]) if len(trace.activities) else 0 for trace in run.traces)
    name, kind, group = Codes(), Codes(), Codes()
    codes = (name, kind, group)
    calls = tuple(_calls(trace, base, codes) for trace, base in zip(run.traces, base_ns, strict=True))
    return CallTable(base_ns, calls, name.strings, kind.strings, group.strings)


def _calls(trace: Trace, base_ns: int, codes: tuple[Codes, Codes, Codes]) -> CallColumns:
    activities, records = trace.activities, trace.collectives
    name, kind, group = codes
    rows = np.flatnonzero(_is_call(trace))
    width = len(activities)
    kinds = _spread(records.activity, kind.of(records.operation), width)
    plain = kind.of(_direction(activities.name.take(rows), activities.subclass.take(rows)))
    stated = kinds[rows]
    ways = [kind.number[way] for way in ("send", "recv") if way in kind.number]
    unsaid = (stated == ABSENT) | (stated == kind.number.get("", ABSENT)) | np.isin(plain, ways)
    names = Labels(
        tuple(f"{a}|{b}" for a in records.group.values for b in records.members.values),
        (records.group.codes * max(len(records.members.values), 1) + records.members.codes).astype(np.int32),
    )
    known = (records.group.where(bool) | records.members.where(bool)) if len(records) else np.zeros(0, np.bool_)
    groups = np.where(known, group.of(names), ABSENT) if len(records) else np.zeros(0, np.int64)
    return CallColumns(
        row=rows,
        start_ns=(activities.start_ns[rows] - base_ns).astype(np.float64),
        end_ns=(activities.end_ns[rows] - base_ns).astype(np.float64),
        lane=activities.lane[rows],
        name=name.of(_uncounted(activities.name)).take(rows),
        kind=np.where(unsaid, plain, stated),
        group=_spread(records.activity, groups, width)[rows],
        sequence=_spread(records.activity, records.sequence, width)[rows],
        size_bytes=_spread(records.activity, _sizes(trace), width)[rows],
        peer=_spread(records.activity, records.peer, width)[rows],
    )


def _is_call(trace: Trace) -> Mask:
    """bool[n]: communication, without the operations that only post what runs elsewhere."""
    activities = trace.activities
    communicates = activities.kind == Kind.COMMUNICATION
    posted = activities.name.where(lambda name: _POSTED.search(name) is not None)
    runs = communicates & ~posted
    chosen: Mask = runs if runs.any() else communicates
    return chosen


def _uncounted(name: Labels) -> Labels:
    """Names without the number of the call."""
    return Labels(tuple(_COUNTED.sub(r"\1", value) for value in name.values), name.codes)


def _direction(name: Labels, subclass: Labels) -> Labels:
    """The subclass, or `send` and `recv` where the name says which."""
    words = dict.fromkeys(subclass.values)
    hits = [_ONE_WAY.search(value) for value in name.values]
    says = np.array([hit is not None for hit in hits] or [False], np.bool_)[name.codes]
    table = (*words, "send", "recv")
    side = [len(words) + (hit is not None and hit.group(1) == "recv") for hit in hits] or [0]
    codes = np.where(says, np.array(side, np.int32)[name.codes], subclass.codes)
    return Labels(table, codes.astype(np.int32))


def _sizes(trace: Trace) -> Integers:
    """int64[k]: bytes by which a recorded call can be told from another."""
    records = trace.collectives
    side = np.array(
        [("in", "out").index(_SIZED[value]) if value in _SIZED else 2 for value in records.operation.values] or [2]
    )
    column = side[records.operation.codes] if len(records) else np.zeros(0, np.int64)
    return np.select([column == 0, column == 1], [records.in_bytes, records.out_bytes], ABSENT).astype(np.int64)


def _spread(rows: Integers, values: Integers, width: int) -> Integers:
    """int64[width]: values at their rows, ABSENT elsewhere."""
    column = np.full(width, ABSENT, np.int64)
    column[rows] = values
    return column
