"""Measured times over sizes: read from tables of this package, interpolated between sizes, extrapolated with doubt."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from statistics import median

import numpy as np

from analyzer.stats.arrays import Floats

INSIDE = 0.20
"""Relative error that 90 % of estimates inside the measured range stay below, with the size under test left out."""
OUTSIDE = 0.25
"""Widening of that range with each doubling beyond the smallest or largest size measured."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TimeCurve:
    """Times of one operation over sizes.

    Attributes:
        sizes: float64[n], ascending, unique, positive.
        times_ns: float64[n], a running median over three sizes: tables have spikes at single ones.
    """

    sizes: Floats
    times_ns: Floats

    @classmethod
    def of(cls, times_ns: Mapping[float, float]) -> TimeCurve:
        """From size → time."""
        sizes = np.array(sorted(times_ns), np.float64)
        raw = np.array([times_ns[size] for size in sizes.tolist()], np.float64)
        smooth = raw.copy()
        if raw.size >= 3:  # noqa: PLR2004 (a median of three)
            smooth[1:-1] = np.median(np.stack((raw[:-2], raw[1:-1], raw[2:])), axis=0)
        return cls(sizes, smooth)

    def at(self, size: float) -> float:
        """Nanoseconds at a size: straight between logarithms; level below the smallest, proportional above the rest."""
        if size <= self.sizes[0]:
            return float(self.times_ns[0])
        if size >= self.sizes[-1]:
            return float(self.times_ns[-1] * size / self.sizes[-1])
        return float(np.exp(np.interp(math.log(size), np.log(self.sizes), np.log(self.times_ns))))

    def doublings_outside(self, size: float) -> float:
        """How far a size lies beyond those measured, 0 inside."""
        return max(0.0, math.log2(self.sizes[0] / max(size, 1.0)), math.log2(max(size, 1.0) / self.sizes[-1]))


def doubt(curve: TimeCurve, size: float) -> float:
    """Factor from the estimate to the ends of its range."""
    return 1 + INSIDE + OUTSIDE * curve.doublings_outside(size)


def read_curves(table: str, size: str, *keys: str) -> dict[Key, TimeCurve]:
    """Curves of a table of this package.

    Args:
        table: file name in `analyzer/data`.
        size: column of sizes; times are in `time_us`. Several times of one size are taken at their median.
        keys: columns that tell one curve from another.
    """
    times_of: dict[Key, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (files("analyzer") / "data" / table).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            times_of[tuple(row[key] for key in keys)][float(row[size])].append(float(row["time_us"]) * 1e3)
    return {
        key: TimeCurve.of({measured_size: median(times) for measured_size, times in sizes.items()})
        for key, sizes in times_of.items()
    }
