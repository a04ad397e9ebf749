"""Robust statistics: errors of medians over correlated steps, draws without a seed to choose, tests of two samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import integrate, special, stats
from scipy.stats import qmc

Floats = npt.NDArray[np.float64]

DRAWS = 4096
"""Draws of a posterior: a power of two, as Sobol points want it."""

_SEED = 12
_MEDIAN_FACTOR = 1.25
"""Standard error of a median over that of a mean, normal values: sqrt(π/2)."""


def lag_one(values: Floats) -> float:
    """Lag-1 autocorrelation of n values in order of time, held to [0, 0.99]; 0 where it cannot be told."""
    centred = values - values.mean()
    power = float(centred @ centred)
    if values.size < 3 or power == 0:  # noqa: PLR2004 (two values have no neighbours to compare)
        return 0.0
    return float(np.clip(centred[1:] @ centred[:-1] / power, 0.0, 0.99))


def effective_count(values: Floats) -> float:
    """Independent values that n correlated ones are worth: n (1 - r)/(1 + r) at lag-1 correlation r, at least 1."""
    correlation = lag_one(values)
    return max(1.0, values.size * (1 - correlation) / (1 + correlation))


def median_error(durations: Floats) -> float:
    """Relative standard error of the median of n positive durations in order of time.

    The spread is taken between quartiles of the logarithm, so that a few stalls do not count.
    """
    logs = np.log(durations)
    low, high = np.quantile(logs, (0.25, 0.75))
    spread = float(high - low) / (2 * float(stats.norm.ppf(0.75)))
    return _MEDIAN_FACTOR * spread / math.sqrt(effective_count(logs))


@lru_cache(maxsize=32)
def standard_draws(columns: int, freedom: tuple[float, ...]) -> Floats:
    """float[DRAWS, columns]: Student-t draws, one degree of freedom a column; inf means normal.

    Scrambled Sobol points with a fixed seed: the same call gives the same draws, and shares over them are exact to
    about 0.1 % where independent draws would scatter by 0.4 %.
    """
    uniform = qmc.Sobol(columns, seed=_SEED).random(DRAWS)
    drawn = np.column_stack([stats.t.ppf(uniform[:, at], freedom[at]) for at in range(columns)])
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=128)
def expected_maximum(count: int) -> float:
    """Expected largest of `count` independent standard normal values; 0 for one, 1.42 for eight."""
    if count <= 1:
        return 0.0

    def density(x: float) -> float:
        return float(x * count * stats.norm.pdf(x) * special.ndtr(x) ** (count - 1))

    return float(integrate.quad(density, -10, 10)[0])


@dataclass(frozen=True, slots=True, eq=False)
class Welch:
    """Differences of two means of independent values whose spreads may differ, one for each place of the inputs.

    Attributes:
        difference: second mean minus first.
        error: its standard error.
        freedom: degrees of freedom after Welch and Satterthwaite, and those of prior knowledge.
    """

    difference: Floats
    error: Floats
    freedom: Floats

    def greater(self) -> Floats:
        """One-sided p that the second mean is not greater."""
        return np.asarray(stats.t.sf(self.difference / self.error, self.freedom))

    def reach(self, probability: float | Floats) -> Floats:
        """How many units of the value the quantile of this probability lies from the middle."""
        return np.asarray(self.error * stats.t.ppf(probability, self.freedom))


def welch(first: Floats, second: Floats, *, floor: float, prior_freedom: float) -> Welch:
    """Welch's comparison along the last axis, with a least spread. A side of one value takes the other side's spread.

    Args:
        first: float[..., n].
        second: float[..., m]; leading axes as of `first`.
        floor: standard deviation of a value, at least; above 0.
        prior_freedom: degrees of freedom that knowing the floor is worth; inf where it is all that is known.
    """
    n, m = first.shape[-1], second.shape[-1]
    spread, other = _spread(first, floor), _spread(second, floor)
    spread, other = (spread if n > 1 else other), (other if m > 1 else spread)
    own, others = spread**2 / n, other**2 / m
    error = np.sqrt(own + others)
    freedom = np.full(error.shape, prior_freedom)
    if math.isfinite(prior_freedom):
        freedom = freedom + error**4 / (own**2 / (n - 1) + others**2 / (m - 1))
    return Welch(second.mean(axis=-1) - first.mean(axis=-1), error, freedom)


def _spread(values: Floats, floor: float) -> Floats:
    if values.shape[-1] < 2:  # noqa: PLR2004 (one value has no spread)
        return np.full(values.shape[:-1], floor)
    return np.asarray(np.maximum(values.std(axis=-1, ddof=1), floor))


def mann_whitney(first: Floats, second: Floats) -> float:
    """Two-sided p of the rank-sum test: exact for small samples without ties."""
    return float(stats.mannwhitneyu(first, second, alternative="two-sided").pvalue)


def holm(p: Floats) -> Floats:
    """p-values along the last axis after Holm: those below a level hold together at that level."""
    order = np.argsort(p, axis=-1)
    tests = p.shape[-1]
    scaled = np.take_along_axis(p, order, axis=-1) * (tests - np.arange(tests))
    return _restored(np.minimum(np.maximum.accumulate(scaled, axis=-1), 1.0), order)


def benjamini_hochberg(p: Floats) -> Floats:
    """p-values along the last axis after Benjamini and Hochberg: at a level, that share of those below it is false."""
    order = np.argsort(p, axis=-1)
    tests = p.shape[-1]
    scaled = np.take_along_axis(p, order, axis=-1) * (tests / np.arange(1, tests + 1))
    smallest = np.minimum.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
    return _restored(np.minimum(smallest, 1.0), order)


def _restored(values: Floats, order: npt.NDArray[np.intp]) -> Floats:
    """Sorted values back in the order they came in."""
    out = np.empty_like(values)
    np.put_along_axis(out, order, values, axis=-1)
    return out
