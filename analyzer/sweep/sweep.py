"""The same workload at several degrees: the curve, the optimum with its interval, and what eats the gain."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from analyzer.errors import UsageError
from analyzer.model.layout import AXES
from analyzer.sweep.capacity import memory_notes
from analyzer.sweep.curve import ScalingCurve, curve
from analyzer.sweep.optimum import DegreeResult, Objective, Scaling, ScalingVerdict, gpu_weight, scaling
from analyzer.sweep.past_optimum import UNEXPLAINED, PastOptimum, past_optimum, unaccounted
from analyzer.sweep.point import VALUE, Point, PointSeries
from analyzer.units import count, duration, share

SCHEMA = 1
HOST_BOUND = 0.40
"""Share of a step in which the device waits for the host, beyond which a sweep compares host time."""
RUNS_APART = 0.10
"""Distance of the slowest run of a degree from its fastest that is worth a look."""
SAME_GPUS = ("dcp",)
"""Dimensions whose degrees all use the same GPUs, so that there is nothing to share the cost over."""
_GOALS = {Objective.LATENCY: "latency", Objective.PER_GPU: "throughput per GPU", Objective.TOTAL: "total throughput"}


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What a sweep is asked.

    Attributes:
        dimension: the axis whose degree varies.
        objective: what the best degree is best at.
        gpus: budget for total throughput.
    """

    dimension: str = "tp"
    objective: Objective = Objective.LATENCY
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The answer for one series.

    Attributes:
        request: as asked.
        series: as measured.
        scaling: the verdict under the objective asked for.
        others: verdicts under other objectives, for comparison.
        gains: one a degree past the optimum.
        curve: fixed, parallel and growing parts; None below four degrees.
        notes: what a reader of the verdict must know.
    """

    request: SweepRequest
    series: PointSeries
    scaling: Scaling
    others: tuple[Scaling, ...]
    gains: tuple[PastOptimum, ...]
    curve: ScalingCurve | None
    notes: tuple[str, ...]

    @property
    def linear(self) -> bool:
        """Whether more degrees are more GPUs, so that a speed-up can be held against them."""
        return self.series.ordered and self.request.dimension not in SAME_GPUS

    def name(self, degree: int) -> str:
        """'TP4'; 'instances 4' for what is no axis of a layout; a layout's own name."""
        if not self.series.ordered:
            return next(point.name for point in self.series.points if point.degree == degree)
        dimension = self.request.dimension
        return f"{dimension.upper()}{degree}" if dimension in AXES else f"{dimension} {degree}"


def sweep(series: PointSeries, request: SweepRequest) -> Sweep:
    """The verdict on one series, with what explains it.

    Args:
        series: one configuration in all but the degree.
        request: what to answer.

    Raises:
        UsageError: the objective does not fit the dimension or the budget.
    """
    shared = not series.ordered or request.dimension in SAME_GPUS
    if shared and request.objective is not Objective.LATENCY:
        what = request.dimension if series.ordered else "a layout"
        raise UsageError(f"{what} adds no GPUs: throughput follows latency; leave --objective out")
    verdict = scaling(series.points, request.objective, gpus=request.gpus, ordered=series.ordered)
    both = request.objective is Objective.LATENCY and not shared
    values = tuple(result.value_ns for result in verdict.standings)
    fit = curve(tuple(point.degree for point in series.points), values) if series.ordered else None
    return Sweep(
        request=request,
        series=series,
        scaling=verdict,
        others=(scaling(series.points, Objective.PER_GPU),) if both else (),
        gains=tuple(_gains(series, verdict, request)),
        curve=fit,
        notes=(*series.notes, *_notes(series, verdict), *(() if shared else _rooms(series.points, verdict))),
    )


def _gains(series: PointSeries, verdict: Scaling, request: SweepRequest) -> list[PastOptimum]:
    by_degree = {point.degree: point for point in series.points}
    weight = {degree: gpu_weight(request.objective, point.size, request.gpus) for degree, point in by_degree.items()}
    best = verdict.reference
    return [
        past_optimum(by_degree[best], by_degree[degree], (weight[best], weight[degree]), series.kv_heads)
        for degree in verdict.past
    ]


def _rooms(points: tuple[Point, ...], verdict: Scaling) -> tuple[str, ...]:
    """What memory explains, and not speed."""
    return memory_notes(
        points, tuple(result.efficiency for result in verdict.standings if result.efficiency is not None)
    )


def _notes(series: PointSeries, verdict: Scaling) -> list[str]:
    notes = []
    points = series.points
    word = "degree" if series.ordered else "layout"
    single = [point.degree for point in points if len(point.values_ns) == 1]
    if single:
        notes.append(f"{count(len(single), word)} with one run: 3.0 % spread from run to run is assumed")
    for point in points:
        here = f"{word} {point.name or point.degree}"
        apart = max(point.values_ns) / min(point.values_ns) - 1
        if apart > RUNS_APART:
            notes.append(f"runs of {here} lie {share(apart)} apart; look for throttling or other load")
        rest = unaccounted(point)
        if rest:
            notes.append(f"the terms of {here} miss its value by {share(abs(rest))}")
        host = (point.host_ns or 0.0) / verdict.standing(point.degree).value_ns
        if host > HOST_BOUND:
            notes.append(
                f"{here} is host bound: the device waits {share(host)} of the step for launches; "
                "use CUDA graphs, then sweep again"
            )
    return notes


def headline(sweep: Sweep) -> str:
    """One line: the objective, the optimum, and each degree past it with what ate the gain."""
    verdict = sweep.scaling
    goal = _GOALS[verdict.objective] + (f" of {verdict.gpus} GPUs" if verdict.gpus is not None else "")
    if verdict.objective is Objective.LATENCY and sweep.series.quantity != VALUE:
        goal = sweep.series.quantity
    label = f"{sweep.series.label}: " if sweep.series.label else ""
    return "; ".join((f"{label}{goal}: {optimum_words(sweep, verdict)}", *(_past(sweep, past) for past in sweep.gains)))


def optimum_words(sweep: Sweep, verdict: Scaling) -> str:
    """The verdict in its vocabulary, without the degrees past it."""
    if verdict.kind is ScalingVerdict.CANNOT_TELL:
        return f"cannot tell: {verdict.reason}"
    names = " or ".join(sweep.name(degree) for degree in verdict.members)
    if verdict.kind is ScalingVerdict.NOT_SEPARABLE:
        return f"optimum {names}, not separable"
    if verdict.kind is ScalingVerdict.NO_DIFFERENCE:
        equal = verdict.members if len(verdict.members) > 1 else tuple(result.degree for result in verdict.standings)
        return f"no practical difference between {' and '.join(map(sweep.name, equal))}"
    if verdict.kind is ScalingVerdict.STILL_IMPROVING:
        kept = (
            f"; the last step keeps {share(verdict.standings[-1].efficiency or 0.0)} of linear" if sweep.linear else ""
        )
        return f"optimum at least {names} (still improving{kept})"
    return f"optimum {names}"


def _past(sweep: Sweep, past: PastOptimum) -> str:
    result = sweep.scaling.standing(past.degree)
    low, high = result.cost_interval
    price = f"+{share(result.cost)} ({_signed(low)} to {_signed(high)})"
    where = "it" if sweep.scaling.kind is not ScalingVerdict.CANNOT_TELL else sweep.name(past.against)
    if past.eaten_by == UNEXPLAINED:
        return f"{sweep.name(past.degree)} is past {where}: {price}, unexplained: rerun"
    saved = past.compute_saved_ns or 0.0
    if past.eaten_by == "compute":
        return f"{sweep.name(past.degree)} is past {where}: {price}, compute itself grew by {duration(-saved)}"
    added = duration(past.added_ns[past.eaten_by])
    verb = "saved" if saved >= 0 else "grew by"
    balance = f" while compute {verb} {duration(abs(saved))}" if past.compute_saved_ns is not None else ""
    return f"{sweep.name(past.degree)} is past {where}: {price}, eaten by {past.eaten_by}: {added} more{balance}"


def _signed(fraction: float) -> str:
    return f"{'+' if fraction >= 0 else ''}{share(fraction)}"


def change(sweeps: tuple[Sweep, ...]) -> str:
    """The sentence that the verdict changes over series of one source, "" where it does not or cannot be told."""
    decided = [answer for answer in sweeps if answer.scaling.best is not None]
    sure = [
        answer for answer in decided if answer.scaling.kind in (ScalingVerdict.OPTIMUM, ScalingVerdict.STILL_IMPROVING)
    ]
    if len({answer.scaling.best for answer in sure}) < 2:  # noqa: PLR2004 (a change needs two)
        return ""
    listed = ", ".join(f"{answer.name(answer.scaling.best or 0)} at {answer.series.label}" for answer in sure)
    return f"the best degree changes: {listed}"


def to_json(sweeps: tuple[Sweep, ...]) -> str:
    """Schema 1: the object of one sweep, or `series` of several."""
    objects = [_object(answer) for answer in sweeps]
    whole = objects[0] if len(objects) == 1 else {"schema": SCHEMA, "change": change(sweeps), "series": objects}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def _object(sweep: Sweep) -> dict[str, object]:
    verdict = sweep.scaling
    terms = {point.degree: point.terms_ns for point in sweep.series.points}
    gains = {past.degree: past for past in sweep.gains}
    fit = sweep.curve
    return {
        "schema": SCHEMA,
        "dimension": sweep.request.dimension if sweep.series.ordered else "layout",
        "series": sweep.series.label,
        "objective": verdict.objective.value,
        "gpus": verdict.gpus,
        "headline": headline(sweep),
        "verdict": verdict.kind.value,
        "reason": verdict.reason,
        "points": [_point(sweep, result, terms[result.degree]) for result in verdict.standings],
        "optimum": None
        if verdict.best is None
        else {
            "degree": verdict.best,
            "interval": [verdict.members[0], verdict.members[-1]],
            "members": list(verdict.members),
            "basis": "measured",
        },
        "past_optimum": [_loss(verdict.standing(degree), gains[degree]) for degree in verdict.past],
        "other_objectives": [
            {"objective": other.objective.value, "verdict": other.kind.value, "degree": other.best}
            for other in sweep.others
        ],
        "curve": None
        if fit is None
        else {
            "fixed_ns": fit.fixed_ns,
            "parallel_ns": fit.parallel_ns,
            "growing_ns": fit.growing_ns,
            "worst": fit.worst,
        },
        "predicted": [],
        "notes": list(sweep.notes),
    }


def _point(sweep: Sweep, result: DegreeResult, terms_ns: dict[str, float]) -> dict[str, object]:
    return {
        "degree": result.degree,
        "name": sweep.name(result.degree),
        "value_ns": round(result.value_ns),
        "interval_ns": [round(bound) for bound in result.interval_ns],
        "terms": {term: round(time_ns) for term, time_ns in terms_ns.items()},
        "best_share": round(result.best_share, 6),
        "past_share": round(result.past_share, 6),
        "cost": round(result.cost, 6),
        "speedup": round(result.speedup, 6),
        "efficiency": None if result.efficiency is None or not sweep.linear else round(result.efficiency, 6),
    }


def _loss(result: DegreeResult, past: PastOptimum) -> dict[str, object]:
    saved = past.compute_saved_ns
    return {
        "degree": result.degree,
        "penalty": round(result.cost, 6),
        "interval": [round(bound, 6) for bound in result.cost_interval],
        "eaten_by": past.eaten_by,
        "mechanism": past.mechanism,
        "mechanisms": past.mechanisms,
        "compute_saved_ns": None if saved is None else round(saved),
        "added_ns": {term: round(time_ns) for term, time_ns in past.added_ns.items()},
    }
