"""Sets of time and their algebra, exact in int64 nanoseconds. Every breakdown is `|`, `&` and `-` of these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.stats.arrays import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """A set of instants: sorted, disjoint, half-open intervals [start, end).

    Attributes:
        start_ns: int64[n], ascending.
        end_ns: int64[n], end_ns[i] > start_ns[i], and end_ns[i] < start_ns[i + 1].
    """

    start_ns: Integers
    end_ns: Integers

    @classmethod
    def empty(cls) -> Intervals:
        """No instant at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def single(cls, start_ns: int, end_ns: int) -> Intervals:
        """One span."""
        return cls.from_arrays(np.array([start_ns], np.int64), np.array([end_ns], np.int64))

    @classmethod
    def from_arrays(cls, start_ns: Integers, end_ns: Integers) -> Intervals:
        """Merge n spans that overlap or touch; drop the empty ones.

        Args:
            start_ns: int64[n], in any order.
            end_ns: int64[n].

        Raises:
            ValueError: a span ends before it starts.
        """
        if np.any(end_ns < start_ns):
            index = int(np.argmax(end_ns < start_ns))
            raise ValueError(f"span {index} ends before it starts: [{start_ns[index]}, {end_ns[index]}) ns")
        filled = end_ns > start_ns
        if not filled.all():
            start_ns, end_ns = start_ns[filled], end_ns[filled]
        if start_ns.size == 0:
            return cls.empty()
        if np.any(start_ns[1:] < start_ns[:-1]):
            order = np.argsort(start_ns, kind="stable")
            start_ns, end_ns = start_ns[order], end_ns[order]
        reach = np.maximum.accumulate(end_ns)
        opens = np.concatenate(([True], start_ns[1:] > reach[:-1]))
        return cls(start_ns[opens], np.concatenate((reach[:-1][opens[1:]], reach[-1:])))

    @property
    def total_ns(self) -> int:
        """Length of the set."""
        return int(self.end_ns.sum() - self.start_ns.sum())

    def __len__(self) -> int:
        return int(self.start_ns.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        return np.array_equal(self.start_ns, other.start_ns) and np.array_equal(self.end_ns, other.end_ns)

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.from_arrays(
            np.concatenate((self.start_ns, other.start_ns)), np.concatenate((self.end_ns, other.end_ns))
        )

    def __and__(self, other: Intervals) -> Intervals:
        return _sweep(self, other, both=True)

    def __sub__(self, other: Intervals) -> Intervals:
        return _sweep(self, other, both=False)

    def within(self, start_ns: Integers, end_ns: Integers) -> Integers:
        """Time of this set inside each of m spans, which may overlap one another.

        Args:
            start_ns: int64[m].
            end_ns: int64[m].

        Returns:
            int64[m], nanoseconds.
        """
        return self._until(end_ns) - self._until(start_ns)

    def _until(self, at_ns: Integers) -> Integers:
        """Time of this set before each instant."""
        if len(self) == 0:
            return np.zeros(at_ns.shape, np.int64)
        length = np.concatenate(([0], np.cumsum(self.end_ns - self.start_ns)))
        index = np.searchsorted(self.start_ns, at_ns, side="right")
        last = np.maximum(index - 1, 0)
        open_ns = np.maximum(self.end_ns[last] - at_ns, 0)
        return np.where(index == 0, 0, length[index] - open_ns).astype(np.int64)


def _sweep(left: Intervals, right: Intervals, *, both: bool) -> Intervals:
    """Keep the instants in `left` that are (both) or are not (not both) in `right`."""
    if len(left) == 0 or len(right) == 0:
        return Intervals.empty() if both else left
    instants = np.concatenate((left.start_ns, left.end_ns, right.start_ns, right.end_ns))
    in_left = np.repeat([1, -1, 0, 0], [left.start_ns.size] * 2 + [right.start_ns.size] * 2)
    in_right = np.repeat([0, 0, 1, -1], [left.start_ns.size] * 2 + [right.start_ns.size] * 2)
    order = np.argsort(instants, kind="stable")
    instants, depth_left, depth_right = instants[order], np.cumsum(in_left[order]), np.cumsum(in_right[order])
    keep = (depth_left == 1) & ((depth_right == 1) == both)
    last = keep[:-1] & (instants[1:] > instants[:-1])
    return Intervals.from_arrays(instants[:-1][last], instants[1:][last])
