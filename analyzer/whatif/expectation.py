"""One run at another degree: what its classes of time would come to. A range, labelled expected, never a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analyzer.errors import UsageError
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Floats
from analyzer.stats.draws import expected_maximum
from analyzer.units import duration
from analyzer.whatif.limits import Refusal, refusals
from analyzer.whatif.time_classes import (
    ATTENTION_FLOOR_NS,
    FLOOR_NS,
    NEW_RUNG_SPREAD,
    SPREADS,
    ClassTime,
    Reference,
    ScalingBehavior,
    Step,
)

DRAWS = 2000
SEED = 6
RANGE = (0.05, 0.95)
"""Quantiles of the range that is printed."""
DIRECTION_CONFIDENCE = 0.95
DIRECTION_CHANGE = 0.05
"""A direction is named only from this relative change on."""
MODEL_SPREAD = 0.08
"""Spread of the logarithm that each doubling adds to the whole: what the classes do not know of one another."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the step would take at another degree, by the classes of one run.

    Attributes:
        degree: the one asked for.
        low_ns: 5 % of the draws lie below.
        high_ns: 5 % of the draws lie above.
        now_ns: the step as measured.
        direction: `faster`, `slower`, or "" where the draws do not agree, the change is small, or the run cannot show
            what would reverse it.
        notes: what was left out.
        basis: always a model.
    """

    degree: int
    low_ns: float
    high_ns: float
    now_ns: float
    direction: str
    notes: tuple[str, ...]
    basis: Basis = Basis.MODEL

    def sentence(self, name: str) -> str:
        """'expected at TP8: 41.0 ms to 58.0 ms (now 52.0 ms); no verdict' for the name TP8."""
        verdict = f"expected {self.direction}" if self.direction else "no verdict"
        span = f"{duration(self.low_ns)} to {duration(self.high_ns)}"
        return f"expected at {name} from one run: {span} (now {duration(self.now_ns)}); {verdict}"


def what_if(step: Step, degree: int, reference: Reference | None = None) -> Expectation | Refusal:
    """The step at another degree of the same split.

    Args:
        step: as measured.
        degree: at most four times as large or as small.
        reference: times of collectives on the rung that the group would be on, if it is another one.

    Raises:
        UsageError: the degree is the one that was measured.
    """
    if degree == step.degree:
        raise UsageError(f"degree {degree} is the one that was measured; ask for another")
    unknown_ns = sum(class_time.time_ns for class_time in step.classes if not class_time.is_known)
    host_ns = sum(class_time.time_ns for class_time in step.classes if class_time.sort is ScalingBehavior.HOST)
    times_ns = (unknown_ns, host_ns, step.step_ns)
    refused = refusals(step.facts, (step.degree, degree), times_ns, has_new_reference=reference is not None)
    missing = _missing_reference(step, degree, reference or step.reference)
    if refused or missing:
        return Refusal(degree, (*refused, *missing))
    drawn = _draws(step, degree, reference)
    change = drawn / step.step_ns - 1
    low, high = np.quantile(drawn, RANGE)
    direction = _direction(change)
    if step.facts.on_host or (step.degree == 1 and direction == "faster"):
        direction = ""
    return Expectation(degree, float(low), float(high), step.step_ns, direction, _notes(step, degree))


def _missing_reference(step: Step, degree: int, reference: Reference | None) -> tuple[str, ...]:
    needed = any(class_time.sort is ScalingBehavior.COLLECTIVE and class_time.is_known for class_time in step.classes)
    if step.degree == 1 and degree > 1:
        if step.facts.added_calls is None or step.facts.added_bytes is None:
            return (
                "the run at degree 1 holds no collective to scale; state layers, tokens and hidden size of the step",
            )
        needed = True
    if needed and reference is None:
        return ("nothing is known of the speed of the links; name a device that has like ones with --platform",)
    return ()


def _direction(change: Floats) -> str:
    if abs(float(np.median(change))) <= DIRECTION_CHANGE:
        return ""
    for word, agree in (("faster", change < 0), ("slower", change > 0)):
        if float(agree.mean()) >= DIRECTION_CONFIDENCE:
            return word
    return ""


def _notes(step: Step, degree: int) -> tuple[str, ...]:
    notes = []
    if step.degree == 1:
        notes.append(
            "a run at degree 1 shows no waiting for peers and no host time of collectives: the range leaves both out, "
            "so it is a lower bound and no reason to expect a gain"
        )
    if step.facts.on_host:
        notes.append(
            "the ranks compute on the cores of a host, which more ranks may have to share; the ranges of classes come "
            "from GPUs, so no direction is named"
        )
    if step.facts.capacity_bytes is None and degree < step.degree:
        notes.append("whether memory suffices was not checked")
    unknown_ns = sum(class_time.time_ns for class_time in step.classes if not class_time.is_known)
    if unknown_ns:
        notes.append(f"{duration(unknown_ns)} of unknown classes may shrink with the degree or stay as they are")
    return tuple(notes)


def _draws(step: Step, degree: int, reference: Reference | None) -> Floats:
    """float[DRAWS]: lengths of the step, each class drawn by itself."""
    random = np.random.default_rng(SEED)
    growth = degree / step.degree
    doublings = abs(math.log2(growth))
    total = np.zeros(DRAWS)
    for class_time in step.classes:
        middle = np.full(DRAWS, expected_ns(class_time, step, degree, reference))
        if not class_time.is_known:
            # Stays as it is or is split in full: anything in between is as likely.
            middle = middle * growth ** -random.random(DRAWS)
        if class_time.sort is ScalingBehavior.COLLECTIVE and reference is not None:
            spread = NEW_RUNG_SPREAD
        else:
            spread = (SPREADS[class_time.sort] if class_time.spread is None else class_time.spread) * math.sqrt(
                doublings
            )
        total += middle * np.exp(spread * random.standard_normal(DRAWS))
    added_ns = _added_ns(step, degree, reference)
    total += added_ns * np.exp(NEW_RUNG_SPREAD * random.standard_normal(DRAWS))
    return np.asarray(total * np.exp(MODEL_SPREAD * doublings * random.standard_normal(DRAWS)))


def expected_ns(class_time: ClassTime, step: Step, degree: int, reference: Reference | None = None) -> float:
    """Nanoseconds of one class at another degree, the middle of its range.

    Args:
        class_time: a class of the step.
        step: as measured.
        degree: the one asked for.
        reference: of the rung that the group would be on, None for the same as now.
    """
    growth = degree / step.degree
    match class_time.sort:
        case ScalingBehavior.GEMM | ScalingBehavior.EXPERTS:
            return _split(class_time, growth, FLOOR_NS)
        case ScalingBehavior.ATTENTION:
            heads = step.facts.kv_heads or max(degree, step.degree)
            return _split(class_time, min(degree, heads) / min(step.degree, heads), ATTENTION_FLOOR_NS)
        case ScalingBehavior.MOVEMENT:
            return class_time.time_ns / growth if class_time.sharded else class_time.time_ns
        case ScalingBehavior.WAIT:
            before = expected_maximum(step.degree)
            return (
                class_time.time_ns
                if class_time.persistent or not before
                else class_time.time_ns * expected_maximum(degree) / before
            )
        case ScalingBehavior.COLLECTIVE:
            return _collective(class_time, step, degree, reference)
        case ScalingBehavior.SETUP:
            return 0.0 if degree == 1 else class_time.time_ns
        case _:
            return class_time.time_ns


def _split(class_time: ClassTime, growth: float, floor_ns: float) -> float:
    """What is above the floor of each call is divided; no kernel falls below its floor by being split."""
    own_ns = floor_ns if class_time.floor_ns is None else class_time.floor_ns
    fixed_ns = min(class_time.time_ns, own_ns * class_time.calls)
    return fixed_ns + (class_time.time_ns - fixed_ns) / growth


def _collective(class_time: ClassTime, step: Step, degree: int, reference: Reference | None) -> float:
    if class_time.message_bytes is None or step.reference is None:
        return class_time.time_ns
    if degree == 1:
        return 0.0
    then = reference or step.reference
    grown = then(class_time.operation, class_time.message_bytes, degree) / step.reference(
        class_time.operation, class_time.message_bytes, step.degree
    )
    return class_time.time_ns * grown


def _added_ns(step: Step, degree: int, reference: Reference | None) -> float:
    """Collectives that a run at degree 1 does not hold."""
    then = reference or step.reference
    calls, message_bytes = step.facts.added_calls, step.facts.added_bytes
    if step.degree > 1 or degree == 1 or then is None or calls is None or message_bytes is None:
        return 0.0
    return calls * then("all_reduce", message_bytes, degree)
