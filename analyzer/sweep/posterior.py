"""What runs at several degrees say of the best degree: estimates, draws, shares. Arrays of any number of series.

In the shapes, `…` stands for any number of series, m for degrees in ascending order, r for runs, D for draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.stats.arrays import Floats, Mask
from analyzer.stats.draws import standard_draws

RUN_FLOOR = 0.03
"""Relative spread from run to run that one or two runs cannot show: between days and nodes of one setup."""
REPEATED_FLOOR = 0.01
"""The same where three or more runs at each degree show their own spread."""
ENOUGH_RUNS = 3
"""Runs at a degree from which their spread is believed."""
FLOOR_FREEDOM = 8.0
"""Degrees of freedom that stand for the doubt in RUN_FLOOR."""
LEAST_FREEDOM = 4.0
CREDIBLE = 0.90
"""Probability that the credible set holds the best degree."""
PRACTICAL = 0.02
"""A degree is past the optimum when it is slower than a smaller one by more than this share."""
HUMP_ERRORS = 5.0
"""An inner degree this many standard errors above both neighbours is a suspect point: real curves have dips only."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """One estimate a degree.

    Attributes:
        log_value: float[…, m], mean over runs of the logarithm.
        error: float[…, m], its standard error.
        freedom: m degrees of freedom of that error.
    """

    log_value: Floats
    error: Floats
    freedom: tuple[float, ...]

    def draws(self) -> Floats:
        """float[…, D, m]: draws from the posterior of each degree, independent of one another."""
        standard = standard_draws(len(self.freedom), self.freedom)
        return np.asarray(self.log_value[..., None, :] + self.error[..., None, :] * standard)


def estimates(logs: Floats, step_error: Floats) -> Estimates:
    """Estimates from runs.

    Where a degree has fewer than three runs, its spread from run to run is RUN_FLOOR or the pooled spread of all
    degrees, whichever is larger, and the error of each run's median is added. With three or more, the pooled spread is
    used as it is, not below REPEATED_FLOOR: the error of the medians is in it. The estimate is the mean of the
    logarithms also there: a median of three scatters 16 % wider than the error that is stated for it.

    Args:
        logs: float[…, m, r], logarithm of each run's value; NaN where a degree has fewer than r runs. Which are NaN
            must be the same for all series.
        step_error: float[…, m], relative standard error of a run's own median, 0 where unknown.
    """
    counts = np.isfinite(logs).sum(-1).reshape(-1, logs.shape[-2])[0]
    means = np.nanmean(logs, -1)
    spare = int((counts - 1).sum())
    squares = np.nansum((logs - means[..., None]) ** 2, (-2, -1))
    pooled = np.sqrt(squares / max(spare, 1))[..., None]
    repeated = counts >= ENOUGH_RUNS
    spread = np.where(repeated, np.maximum(pooled, REPEATED_FLOOR), np.hypot(np.maximum(pooled, RUN_FLOOR), step_error))
    freedom = tuple(FLOOR_FREEDOM if count == 1 else max(LEAST_FREEDOM, float(spare)) for count in counts)
    return Estimates(means, spread / np.sqrt(counts), freedom)


def suspects(of: Estimates) -> Mask:
    """bool[…, m]: inner degrees that stand out above both their neighbours by more than HUMP_ERRORS."""
    inner = of.log_value[..., 1:-1]
    rise = np.minimum(inner - of.log_value[..., :-2], inner - of.log_value[..., 2:])
    flags = np.zeros(of.log_value.shape, np.bool_)
    flags[..., 1:-1] = rise > HUMP_ERRORS * of.error[..., 1:-1]
    return flags


def best_shares(draws: Floats) -> Floats:
    """float[…, m]: share of draws in which each degree has the lowest value."""
    best = draws.argmin(-1)
    return np.stack([(best == column).mean(-1) for column in range(draws.shape[-1])], -1)


def credible_set(shares: Floats) -> Mask:
    """bool[…, m]: the fewest degrees whose shares sum to CREDIBLE at least."""
    order = np.argsort(-shares, -1, kind="stable")
    before = np.cumsum(np.take_along_axis(shares, order, -1), -1) - np.take_along_axis(shares, order, -1)
    members = np.zeros(shares.shape, np.bool_)
    np.put_along_axis(members, order, before < CREDIBLE, -1)
    return members


def past_shares(draws: Floats, suspect: Mask) -> Floats:
    """float[…, m]: share of draws in which a degree is slower by more than PRACTICAL than the fastest smaller one.

    A suspect point is never the reference: it stands high, so that leaving it out can only lower a share. Its own
    share is 0: what may be a mistake is not called past.

    Args:
        draws: float[…, D, m].
        suspect: bool[…, m].
    """
    reference = np.minimum.accumulate(np.where(suspect[..., None, :], np.inf, draws), -1)
    shares = np.zeros(suspect.shape)
    shares[..., 1:] = (draws[..., 1:] > reference[..., :-1] + np.log1p(PRACTICAL)).mean(-2)
    return np.where(suspect, 0.0, shares)
