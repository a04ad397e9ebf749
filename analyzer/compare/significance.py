"""Whether runs of a head are slower than runs of a base: the unit is the run, the value the logarithm of its median.

Steps inside a run share the run's luck, so they are never pooled. Works on many metrics at once: the last axis of the
inputs is the run, every other axis is free.

    runs a side   spread of a run                      quantiles
    1, 2          assumed: 3 %, or more where seen     normal; the answer is a hint, never a proof
    3, 4          seen, at least 2 %                   Student's t after Welch, four degrees of freedom more
    5 or more     seen                                 Student's t after Welch
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from analyzer.stats.arrays import Floats
from analyzer.stats.tests import Welch, holm, welch

FEW = 3
"""Runs a side from which a difference can be proven."""
MANY = 5
"""Runs a side from which their own spread needs no floor, and ranks alone can tell them apart."""
ASSUMED_SPREAD = 0.03
"""Of the median of a run, where one or two runs cannot show their spread: three times what a quiet GPU shows."""
LEAST_SPREAD = 0.02
"""Of the median of a run: three runs show less than that by luck too often."""
FLOOR_FREEDOM = 4.0
"""Degrees of freedom that the least spread is worth: simulated gates at a spread of 2 to 4 % give few false alarms
(see docs/gate-in-ci.md), and six metrics judged together still show a rise of 10 % with three runs a side."""
RESOLUTION = 0.001
"""Spread below which even many runs are not believed: clocks and rounding."""

LEVEL = 0.05
"""One-sided error of a proven change, over all gated metrics together."""
HINT_LEVEL = 0.20
"""One-sided error of a hint, for one metric."""
POWER = 0.80
"""Probability at which a change counts as one that would have been seen."""
LEAST_CHANGE = 0.05
"""Share by which a metric must have changed, whatever the spread: less is not worth a red build."""
HINT_CHANGE = 0.03
"""Share from which a change that is not proven is mentioned, where 5 % is the least that is called."""

Words = npt.NDArray[np.int8]


class Change(IntEnum):
    """What became of a value."""

    FELL = -1
    NONE = 0
    ROSE = 1


@dataclass(frozen=True, slots=True, eq=False)
class RunDifference:
    """Head against base, a metric a place.

    Attributes:
        test: of the logarithms of the runs' values.
        base_runs: how many.
        head_runs: how many.
    """

    test: Welch
    base_runs: int
    head_runs: int

    @property
    def is_proof(self) -> bool:
        """Whether both sides have runs enough to prove a change."""
        return min(self.base_runs, self.head_runs) >= FEW

    @property
    def ratio(self) -> Floats:
        """Head over base: the ratio of geometric means over runs."""
        return np.exp(self.test.difference)

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """Of the ratio, 95 %."""
        reach = self.test.reach(1 - LEVEL / 2)
        return np.exp(self.test.difference - reach), np.exp(self.test.difference + reach)

    @property
    def p(self) -> Floats:
        """Two-sided."""
        rise = self.test.greater()
        return 2 * np.minimum(rise, 1 - rise)

    def visible(self, least: Floats, tests: int = 1) -> Floats:
        """The smallest rise that would have been called with 80 % probability, as a share of the base.

        Args:
            least: share by which each metric must change to be called.
            tests: metrics that are judged together.
        """
        called = np.maximum(self.test.reach(1 - LEVEL / tests), np.log1p(least))
        return np.expm1(called + self.test.reach(POWER))


def run_difference(base: Floats, head: Floats) -> RunDifference:
    """Two sets of runs.

    Args:
        base: float[..., n], values above 0.
        head: float[..., m], leading axes as of `base`.
    """
    test = welch(np.log(base), np.log(head), **_prior(min(base.shape[-1], head.shape[-1])))
    return RunDifference(test, base.shape[-1], head.shape[-1])


def _prior(runs: int) -> dict[str, float]:
    """What is known of the spread before it is seen, by runs of the side that has fewer."""
    if runs < FEW:
        return {"floor": ASSUMED_SPREAD, "prior_freedom": np.inf}
    if runs < MANY:
        return {"floor": LEAST_SPREAD, "prior_freedom": FLOOR_FREEDOM}
    return {"floor": RESOLUTION, "prior_freedom": 0.0}


def called(difference: RunDifference, least: Floats) -> Words:
    """int8[..., k], a `Change` a metric: its 95 % limit excludes no change, and it changed by its least share.

    The last axis holds the metrics that are judged together: Holm's correction goes over it.
    """
    rise, bar = difference.test.greater(), np.log1p(least)
    rose = (holm(rise) <= LEVEL) & (difference.test.difference >= bar)
    fell = (holm(1 - rise) <= LEVEL) & (difference.test.difference <= -bar)
    return _changes(rose, fell)


def hinted(difference: RunDifference, least: Floats) -> Words:
    """int8[..., k], a `Change` a metric that its 80 % limit hints at, each metric for itself.

    Args:
        difference: of k metrics.
        least: share by which each metric must change to be called; a hint needs three fifths of it.
    """
    rise, bar = difference.test.greater(), np.log1p(least * HINT_CHANGE / LEAST_CHANGE)
    rose = (rise <= HINT_LEVEL) & (difference.test.difference >= bar)
    fell = (1 - rise <= HINT_LEVEL) & (difference.test.difference <= -bar)
    return _changes(rose, fell)


def _changes(rose: npt.NDArray[np.bool_], fell: npt.NDArray[np.bool_]) -> Words:
    return np.asarray(rose.astype(np.int8) * Change.ROSE + fell.astype(np.int8) * Change.FELL, np.int8)
