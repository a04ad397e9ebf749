"""Tails of distributions, and tests of two samples and of a trend.

`scipy.special` costs a third of a second to import: only where a tail is asked. `scipy.stats` costs three times that
and is never imported; `tests/test_stats.py` holds every function here against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from types import ModuleType

import numpy as np
import numpy.typing as npt

from analyzer.stats.arrays import Floats, Integers

EXACT_TRIALS = 1_000
"""Trials up to which whole numbers are summed, in a millisecond at most."""
NORMAL_95 = 1.959963984540054
"""Standard deviations that hold 95 % of normal values."""
EXACT_VALUES = 8
"""Values of the smaller sample up to which the rank-sum test counts every order of the values."""


def _special() -> ModuleType:
    return import_module("scipy.special")


def binomial_tail(successes: int, trials: int, sides: int) -> float:
    """Chance of so many successes or more, each with a probability of one in `sides`."""
    if successes <= 0:
        return 1.0
    if trials > EXACT_TRIALS:
        return float(_special().betainc(successes, trials - successes + 1, 1 / sides))
    ways = math.comb(trials, successes) * (sides - 1) ** (trials - successes)
    total = ways
    for row in range(successes, trials):  # ways of one success more, of `sides ** trials` in all
        ways = ways * (trials - row) // ((row + 1) * (sides - 1))
        total += ways
    return float(Fraction(total, sides**trials))


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Of the share of successes in at least one trial, 95 %, after Wilson."""
    share = successes / trials
    width = 2 * (trials + NORMAL_95**2)
    centre = (2 * trials * share + NORMAL_95**2) / width
    reach = NORMAL_95 / width * math.sqrt(4 * trials * share * (1 - share) + NORMAL_95**2)
    return (0.0 if successes == 0 else centre - reach), (1.0 if successes == trials else centre + reach)


def f_tail(value: float, freedom: int, other: int) -> float:
    """Chance of a ratio of two mean squares at least so large, by the degrees of freedom above and below."""
    return float(_special().fdtrc(freedom, other, value))


def chi_squared_tail(value: float, freedom: int) -> float:
    """Chance of a sum of squares at least so large."""
    return float(_special().chdtrc(freedom, value))


def student_tail(value: Floats | float, freedom: Floats | float) -> Floats:
    """Chance of a Student's t at least so large; infinite freedom means normal."""
    return np.asarray(_special().stdtr(freedom, np.negative(value)))


def student_quantile(probability: Floats | float, freedom: Floats | float) -> Floats:
    """Student's t at this probability; infinite freedom means normal."""
    return np.asarray(_special().stdtrit(freedom, probability))


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
        return student_tail(self.difference / self.error, self.freedom)

    def reach(self, probability: float | Floats) -> Floats:
        """How many units of the value the quantile of this probability lies from the middle."""
        return np.asarray(self.error * student_quantile(probability, self.freedom))


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
    variance, other_variance = spread**2 / n, other**2 / m
    error = np.sqrt(variance + other_variance)
    freedom = np.full(error.shape, prior_freedom)
    if math.isfinite(prior_freedom):
        freedom = freedom + error**4 / (variance**2 / (n - 1) + other_variance**2 / (m - 1))
    return Welch(second.mean(axis=-1) - first.mean(axis=-1), error, freedom)


def _spread(values: Floats, floor: float) -> Floats:
    if values.shape[-1] < 2:  # noqa: PLR2004 (one value has no spread)
        return np.full(values.shape[:-1], floor)
    return np.asarray(np.maximum(values.std(axis=-1, ddof=1), floor))


def mann_whitney(first: Floats, second: Floats) -> float:
    """Two-sided p of the rank-sum test: exact for small samples without ties, else normal with corrections."""
    n, m = first.size, second.size
    values, inverse, times = np.unique(np.concatenate((first, second)), return_inverse=True, return_counts=True)
    middle = np.cumsum(times) - (times - 1) / 2
    larger = float(middle[inverse[:n]].sum()) - n * (n + 1) / 2
    larger = max(larger, n * m - larger)
    if values.size == n + m and min(n, m) <= EXACT_VALUES:
        orders = _orders(n, m)
        return min(1.0, 2 * float(orders[math.ceil(larger) :].sum() / orders.sum()))
    ties = float((times.astype(np.float64) ** 3 - times).sum())
    spread = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    if spread == 0:
        return 1.0  # all values are equal
    return min(1.0, 2 * float(_special().ndtr((n * m / 2 + 0.5 - larger) / spread)))


def _orders(n: int, m: int) -> Floats:
    """float[n m + 1]: in how many orders of n and m values so many pairs have the first one larger (Mann, Whitney)."""
    n, m = min(n, m), max(n, m)
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for power in range(1, n + 1):  # the Gaussian binomial: times (1 - q^(m+power)), over (1 - q^power)
        counts[m + power :] -= counts[: counts.size - m - power].copy()
        for index in range(power, counts.size):
            counts[index] += counts[index - power]
    return counts


def theil_sen(values: Floats, confidence: float) -> tuple[float, float, float]:
    """Slope of at least two values in order, with its interval after Sen."""
    later, earlier = np.tril_indices(values.size, -1)
    slopes = np.sort((values[later] - values[earlier]) / (later - earlier))
    _, ties = np.unique(values, return_counts=True)
    pairs, size = slopes.size, values.size
    spread = math.sqrt(max(0.0, (_kendall(size) - float(sum(_kendall(int(tie)) for tie in ties))) / 18))
    reach = float(_special().ndtri(0.5 + 0.5 * confidence)) * spread
    low = max(round((pairs - reach) / 2) - 1, 0)
    high = min(round((pairs + reach) / 2), pairs - 1)
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def _kendall(size: int) -> int:
    """18 times the variance of Kendall's sum over so many values."""
    return size * (size - 1) * (2 * size + 5)


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


def _restored(values: Floats, order: npt.NDArray[np.intp] | Integers) -> Floats:
    """Sorted values back in the order they came in."""
    out = np.empty_like(values)
    np.put_along_axis(out, order, values, axis=-1)
    return out
