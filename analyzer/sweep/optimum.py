"""Where the best degree of a series lies, how sure that is, and which degrees are past it: points in, verdict out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from analyzer.errors import UsageError
from analyzer.stats.arrays import Floats, Mask
from analyzer.sweep.point import Point
from analyzer.sweep.posterior import ENOUGH_RUNS, Estimates, best_shares, credible_set, estimates, past_shares, suspects
from analyzer.units import count, share

PAST_CONFIDENCE = 0.95
"""Probability from which a degree is called past the optimum."""
INTERVAL = (0.05, 0.95)
"""Quantiles of the ranges that are printed."""
SAME = 0.03
"""Degrees whose ratio stays within this share of one, over the whole range, differ in no practical way."""
LARGEST_ERROR = 0.10
"""Relative standard error of a degree beyond which nothing is said."""
FEWEST_STEPS = 20
"""Steady steps that a degree measured in a single run needs."""


class Objective(str, Enum):
    """What the best degree is best at."""

    LATENCY = "latency"
    PER_GPU = "per-gpu"
    TOTAL = "total"


class ScalingVerdict(str, Enum):
    """The vocabulary of verdicts."""

    OPTIMUM = "optimum"
    STILL_IMPROVING = "still improving"
    NOT_SEPARABLE = "not separable"
    NO_DIFFERENCE = "no practical difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class DegreeResult:
    """One degree in the comparison.

    Attributes:
        degree: ranks.
        value_ns: estimate, geometric mean over runs.
        interval_ns: its 5-95 % range.
        best_share: probability that this degree is the best.
        past_share: probability that it is more than 2 % worse than the best smaller degree.
        cost: how much worse than the best degree, as a share of the best, under the objective.
        cost_interval: its 5-95 % range.
        speedup: of the first degree's value over this one's.
        efficiency: speed-up over the degree before, divided by the growth in GPUs; None for the first.
    """

    degree: int
    value_ns: float
    interval_ns: tuple[float, float]
    best_share: float
    past_share: float
    cost: float
    cost_interval: tuple[float, float]
    speedup: float
    efficiency: float | None


@dataclass(frozen=True, slots=True)
class Scaling:
    """The verdict on one series under one objective.

    Attributes:
        objective: what was minimized or maximized.
        gpus: budget of GPUs for the objective `total`, None elsewhere.
        kind: which verdict.
        best: the degree that is best most often, None where the kind is CANNOT_TELL.
        members: the 90 % credible set, ascending; empty where the kind is CANNOT_TELL.
        past: degrees past the optimum, ascending.
        reason: why nothing can be told, "" elsewhere.
        standings: one a degree, ascending.
    """

    objective: Objective
    gpus: int | None
    kind: ScalingVerdict
    best: int | None
    members: tuple[int, ...]
    past: tuple[int, ...]
    reason: str
    standings: tuple[DegreeResult, ...]

    @property
    def reference(self) -> int:
        """The degree that costs are relative to: the best one, suspect points left out."""
        return next(result.degree for result in self.standings if result.cost == 0.0)

    def standing(self, degree: int) -> DegreeResult:
        """The row of one of the degrees."""
        return next(result for result in self.standings if result.degree == degree)


def scaling(
    points: tuple[Point, ...],
    objective: Objective = Objective.LATENCY,
    *,
    gpus: int | None = None,
    ordered: bool = True,
) -> Scaling:
    """The verdict on one series.

    Args:
        points: ascending by degree, one configuration in all else.
        objective: `latency` compares the values; `per-gpu` multiplies them by the degree; `total` divides them by the
            number of replicas that the budget holds.
        gpus: the budget, needed for `total` only.
        ordered: False for layouts: none is past another, none is the last of a row, none a suspect among neighbours.

    Raises:
        UsageError: `total` without a budget, or with one that a degree does not fit into.
    """
    weight = np.array([gpu_weight(objective, point.size, gpus) for point in points])
    known = _known(points)
    suspect = suspects(known) & ordered
    worth = Estimates(known.log_value + np.log(weight), known.error, known.freedom)
    draws = worth.draws()
    shares, past = best_shares(draws), past_shares(draws, suspect) * ordered
    best = int(np.argmax(np.where(suspect, -1.0, shares)))
    cost = np.expm1(draws - draws[:, [best]])
    reason = next(_refusals(points, known, suspect), "")
    members = credible_set(shares)
    kind = ScalingVerdict.CANNOT_TELL if reason else _kind(members, cost, ordered=ordered)
    is_judged = not reason or bool(suspect.any())
    degrees = [point.degree for point in points]
    return Scaling(
        objective=objective,
        gpus=gpus,
        kind=kind,
        best=None if reason else degrees[best],
        members=() if reason else tuple(degrees[index] for index in np.flatnonzero(members)),
        past=tuple(
            degrees[index] for index in range(best + 1, len(degrees)) if is_judged and past[index] >= PAST_CONFIDENCE
        ),
        reason=reason,
        standings=_standings(points, known, worth.log_value, cost, (shares, past), best),
    )


def gpu_weight(objective: Objective, size: int, gpus: int | None) -> float:
    """What a value is multiplied by, so that less is better under the objective.

    Args:
        objective: what the best degree is best at.
        size: GPUs that one instance takes.
        gpus: the budget, for `total`.

    Raises:
        UsageError: `total` without a budget, or with one that an instance does not fit into.
    """
    if objective is Objective.LATENCY:
        return 1.0
    if objective is Objective.PER_GPU:
        return float(size)
    if gpus is None:
        raise UsageError("total throughput needs a budget to fill with replicas; pass --gpus N")
    if size > gpus:
        raise UsageError(
            f"an instance of {size} GPUs does not fit into {gpus} GPUs; raise --gpus or leave that degree out"
        )
    return 1.0 / (gpus // size)


def _known(points: tuple[Point, ...]) -> Estimates:
    runs = max(len(point.values_ns) for point in points)
    logs = np.full((len(points), runs), np.nan)
    for index, point in enumerate(points):
        logs[index, : len(point.values_ns)] = np.log(point.values_ns)
    return estimates(logs, np.array([point.step_error for point in points]))


def _refusals(points: tuple[Point, ...], known: Estimates, suspect: Mask) -> Iterator[str]:
    """Sentences, the gravest first."""
    if len(points) == 1:
        yield f"only degree {points[0].degree} was measured; measure at least one more"
    for point, error in zip(points, known.error, strict=True):
        if point.steps is not None and point.steps < FEWEST_STEPS and len(point.values_ns) == 1:
            yield (
                f"degree {point.degree} has {count(point.steps, 'steady step')} in a single run; "
                f"record {FEWEST_STEPS} or more, or more runs"
            )
        if error > LARGEST_ERROR:
            yield (
                f"degree {point.degree} is known to ±{share(float(error))} only; "
                f"measure {ENOUGH_RUNS} or more runs under equal conditions"
            )
    for index in np.flatnonzero(suspect):
        before, here, after = (points[k].degree for k in (index - 1, index, index + 1))
        yield f"degree {here} lies above both {before} and {after}, a suspect point; measure degree {here} again"


def _kind(members: Mask, cost: Floats, *, ordered: bool) -> ScalingVerdict:
    low, high = np.quantile(cost, INTERVAL, axis=0)
    same = (low >= -SAME) & (high <= SAME)
    if same.all() or (members.sum() > 1 and same[members].all()):
        return ScalingVerdict.NO_DIFFERENCE
    if members.sum() > 1:
        return ScalingVerdict.NOT_SEPARABLE
    return ScalingVerdict.STILL_IMPROVING if ordered and members[-1] else ScalingVerdict.OPTIMUM


def _standings(
    points: tuple[Point, ...],
    known: Estimates,
    log_worth: Floats,
    cost: Floats,
    shares: tuple[Floats, Floats],
    best: int,
) -> tuple[DegreeResult, ...]:
    values = np.exp(known.log_value)
    ranges = np.exp(np.quantile(known.draws(), INTERVAL, axis=0))
    costs = np.quantile(cost, INTERVAL, axis=0)
    rows = []
    for index, point in enumerate(points):
        growth = point.size / points[index - 1].size
        rows.append(
            DegreeResult(
                degree=point.degree,
                value_ns=float(values[index]),
                interval_ns=(float(ranges[0, index]), float(ranges[1, index])),
                best_share=float(shares[0][index]),
                past_share=float(shares[1][index]),
                cost=float(np.expm1(log_worth[index] - log_worth[best])),
                cost_interval=(float(costs[0, index]), float(costs[1, index])),
                speedup=float(values[0] / values[index]),
                efficiency=float(values[index - 1] / values[index] / growth) if index else None,
            )
        )
    return tuple(rows)
