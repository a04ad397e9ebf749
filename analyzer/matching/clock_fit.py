"""From one rank's clock to another's: an offset and a drift, fitted so that a few wrong pairs do not move them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.stats.arrays import Floats

MAX_DRIFT = 200e-6
"""Seconds a second; crystals keep within 50e-6 of true time, two of them within 100e-6 of each other."""

BLOCKS = 32
"""A fit looks at the medians of so many stretches of the pairs."""

BLOCK_PAIRS = 8
"""Pairs that a median is made of, at least."""

FEWEST_BLOCKS = 4
"""With fewer no drift is claimed."""

SURE = 3.0
"""A drift is claimed when it moves the clock over the window by so many times what its fit leaves open."""

NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True, slots=True)
class ClockFit:
    """A clock as another one reads it: `t + offset_ns + drift * t`.

    Attributes:
        offset_ns: at time 0 of the run.
        drift: nanoseconds a nanosecond.
        spread_ns: robust standard deviation of what the line does not explain.
    """

    offset_ns: float = 0.0
    drift: float = 0.0
    spread_ns: float = 0.0

    def at(self, t_ns: Floats) -> Floats:
        """float64[n]: the same instants on the other clock."""
        return t_ns + (self.offset_ns + self.drift * t_ns)

    def then(self, onward: ClockFit) -> ClockFit:
        """This clock as the one reads it that `onward` leads to."""
        return ClockFit(
            self.offset_ns + onward.offset_ns + onward.drift * self.offset_ns,
            self.drift + onward.drift + self.drift * onward.drift,
            float(np.hypot(self.spread_ns, onward.spread_ns)),
        )

    def back(self) -> ClockFit:
        """The other clock as this one reads it."""
        rate = 1 + self.drift
        return ClockFit(-self.offset_ns / rate, -self.drift / rate, self.spread_ns)


def spread(values: Floats) -> float:
    """Robust standard deviation: 1.4826 times the median distance from the median; 0 for less than two values."""
    if values.size < 2:  # noqa: PLR2004
        return 0.0
    return NORMAL * float(np.median(np.abs(values - np.median(values))))


def fit(own_ns: Floats, other_ns: Floats) -> ClockFit:
    """The line from n instants on one clock to the same instants on another.

    Theil-Sen on the medians of blocks: linear in n, and unmoved by up to a quarter of wrong pairs.

    Args:
        own_ns: float64[n], ascending, n at least 1.
        other_ns: float64[n].
    """
    gap = other_ns - own_ns
    drift = _drift(own_ns, gap)
    offset = float(np.median(gap - drift * own_ns))
    return ClockFit(offset, drift, spread(gap - drift * own_ns))


def _drift(own_ns: Floats, gap_ns: Floats) -> float:
    """Slope of the gap, 0 where the pairs do not tell it from none."""
    blocks = min(BLOCKS, gap_ns.size // BLOCK_PAIRS)
    if blocks < FEWEST_BLOCKS:
        return 0.0
    # Stretches of one length, which overlap a little, so that one call takes all their medians.
    length = -(-gap_ns.size // blocks)
    rows = np.linspace(0, gap_ns.size - length, blocks).astype(np.int64)[:, None] + np.arange(length)
    time_ns, level = np.median(own_ns[rows], axis=1), np.median(gap_ns[rows], axis=1)
    left, right = np.triu_indices(blocks, 1)
    run = time_ns[right] - time_ns[left]
    apart = run > 0
    if not apart.any():
        return 0.0
    slope = float(np.median((level[right] - level[left])[apart] / run[apart]))
    # Times spread evenly over a window have a standard deviation of its length over the root of 12.
    open_ns = spread(level - slope * time_ns) * np.sqrt(12 / blocks)
    moved_ns = abs(slope) * float(time_ns[-1] - time_ns[0])
    return slope if moved_ns > SURE * open_ns and abs(slope) <= MAX_DRIFT else 0.0
