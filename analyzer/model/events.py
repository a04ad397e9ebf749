"""Columns of spans: the schema at the door of the analyzer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.intervals import Intervals
from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Pattern
from analyzer.stats.arrays import Codes, Integers, Mask

ABSENT = -1
"""An integer that the trace does not hold (correlation, bytes, sequence number, peer)."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of n strings, of which few are distinct.

    Attributes:
        values: the distinct strings.
        codes: int32[n], index into `values`.
    """

    values: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, strings: Iterable[str]) -> Labels:
        """Code a sequence of strings in order of first appearance."""
        table: dict[str, int] = {}
        codes = [table.setdefault(string, len(table)) for string in strings]
        return cls(tuple(table), np.array(codes, np.int32))

    def __len__(self) -> int:
        return int(self.codes.size)

    def __getitem__(self, index: int) -> str:
        return self.values[int(self.codes[index])]

    def take(self, rows: Mask | Integers | slice) -> Labels:
        """The column of the chosen rows."""
        return Labels(self.values, self.codes[rows])

    def where(self, claim: Callable[[str], bool]) -> Mask:
        """bool[n]: rows whose string fulfils `claim`, which is asked once a distinct string."""
        return np.array([claim(value) for value in self.values] or [False], np.bool_)[self.codes]

    def tolist(self) -> list[str]:
        """The n strings."""
        return [self.values[code] for code in self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """n spans in order of start.

    Attributes:
        name: n names.
        start_ns: int64[n], nanoseconds since the epoch (or since the trace's own zero, where it has no other).
        end_ns: int64[n], not before start.
        process: int64[n], process id; device index for work on a device.
        lane: int64[n], thread id; stream for work on a device.
        correlation: int64[n], joins a host call with what it launched; ABSENT where there is none.
    """

    name: Labels
    start_ns: Integers
    end_ns: Integers
    process: Integers
    lane: Integers
    correlation: Integers

    def __post_init__(self) -> None:
        for column in ("start_ns", "end_ns", "process", "lane", "correlation"):
            values = getattr(self, column)
            if values.dtype != np.int64 or values.shape != (len(self.name),):
                raise ValueError(f"{column}: int64[{len(self.name)}] expected, got {values.dtype}{list(values.shape)}")
        if np.any(self.end_ns < self.start_ns):
            raise ValueError("an event ends before it starts")
        if np.any(self.start_ns[1:] < self.start_ns[:-1]):
            raise ValueError("events are not in order of start")

    def __len__(self) -> int:
        return len(self.name)

    @property
    def duration_ns(self) -> Integers:
        """int64[n]."""
        return self.end_ns - self.start_ns

    def take(self, rows: Mask | Integers | slice) -> Events:
        """The chosen rows, which keep their order."""
        return Events(*self._taken(rows))

    def union(self) -> Intervals:
        """The instants at which at least one of them runs."""
        return Intervals.from_arrays(self.start_ns, self.end_ns)

    def _taken(self, rows: Mask | Integers | slice) -> tuple[Labels, Integers, Integers, Integers, Integers, Integers]:
        columns = (self.start_ns, self.end_ns, self.process, self.lane, self.correlation)
        start, end, process, lane, correlation = (column[rows] for column in columns)
        return self.name.take(rows), start, end, process, lane, correlation


@dataclass(frozen=True, slots=True, eq=False)
class Activities(Events):
    """Work on a device (kernels, copies, fills), or leaf operations of a host without one.

    Attributes:
        patterns: what each distinct name means, aligned with `name.values`; None where no pattern knows it.
        size_bytes: int64[n], bytes that a copy or fill states; ABSENT elsewhere.
    """

    patterns: tuple[Pattern | None, ...]
    size_bytes: Integers

    def __post_init__(self) -> None:
        Events.__post_init__(self)
        if len(self.patterns) != len(self.name.values):
            raise ValueError(f"{len(self.name.values)} distinct names, but {len(self.patterns)} patterns")
        if self.size_bytes.shape != (len(self.name),):
            raise ValueError(f"size_bytes: int64[{len(self.name)}] expected, got {list(self.size_bytes.shape)}")

    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        """uint8[n]: the term of each; what no pattern knows is compute."""
        table = [Kind.COMPUTE if pattern is None else pattern.kind for pattern in self.patterns]
        return np.array(table or [Kind.COMPUTE], np.uint8)[self.name.codes]

    @property
    def subclass(self) -> Labels:
        """Subclass of each of the n; `other` where no pattern knows the name."""
        words = ["other" if pattern is None else pattern.subclass for pattern in self.patterns]
        table = Labels.of(words)
        return Labels(table.values, table.codes[self.name.codes] if words else self.name.codes)

    def blends(self, blend: Blend) -> Mask:
        """bool[n]: kernels that do the work of two classes in this way."""
        table = [pattern is not None and pattern.blend is blend for pattern in self.patterns]
        return np.array(table or [False], np.bool_)[self.name.codes]

    def take(self, rows: Mask | Integers | slice) -> Activities:
        """The chosen rows, which keep their order."""
        return Activities(*self._taken(rows), self.patterns, self.size_bytes[rows])

    def of_kind(self, kind: Kind) -> Activities:
        """Those of one term."""
        return self.take(self.kind == kind)

    def busy(self, kind: Kind) -> Intervals:
        """The instants at which at least one activity of this term runs."""
        rows = self.kind == kind
        return Intervals.from_arrays(self.start_ns[rows], self.end_ns[rows])
