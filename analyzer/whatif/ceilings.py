"""What at most could be gained, and what a doubling saves and adds: bounds from one run, never promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.schema.finding import Basis
from analyzer.units import duration, share
from analyzer.whatif.expectation import expected_ns
from analyzer.whatif.time_classes import ATTENTION_FLOOR_NS, CUSTOM, FLOOR_NS, ClassTime, ScalingBehavior, Step

_REDUCES = ("all_reduce", CUSTOM)
_SPLIT = (ScalingBehavior.GEMM, ScalingBehavior.EXPERTS, ScalingBehavior.ATTENTION)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """An upper bound.

    Attributes:
        name: what would be gone.
        saved_ns: time of the step that it takes now, at most all of which could be saved.
        step_ns: the step as measured.
        basis: derived where it only leaves measured time out, model where a figure of the hardware enters.
    """

    name: str
    saved_ns: float
    step_ns: float
    basis: Basis

    @property
    def sentence(self) -> str:
        """'without waits: at most 3.00 ms less (6.0 % of the step)'."""
        return (
            f"{self.name}: at most {duration(self.saved_ns)} less ({share(self.saved_ns / self.step_ns)} of the step)"
        )


@dataclass(frozen=True, slots=True)
class Marginal:
    """What one doubling does to a step.

    Attributes:
        degree: after the doubling.
        saves_ns: of compute at most: kernels without any floor.
        adds_ns: of communication and waiting, about.
        floor_ns: no degree brings the step below this: kernel floors, replicated work and host time.
    """

    degree: int
    saves_ns: float
    adds_ns: float
    floor_ns: float

    def sentence(self, name: str) -> str:
        """'doubling to TP8 saves at most 5.00 ms of compute, adds about 1.20 ms; …' for the name TP8."""
        return (
            f"doubling to {name} saves at most {duration(self.saves_ns)} of compute, adds about "
            f"{duration(self.adds_ns)} of communication and waiting; no degree goes below {duration(self.floor_ns)}"
        )


def ceilings(step: Step) -> tuple[Ceiling, ...]:
    """Bounds on what four changes could save, those that would save anything, largest first."""
    saved = (
        Ceiling("without waits", _total(step, ScalingBehavior.WAIT), step.step_ns, Basis.DERIVED),
        Ceiling("without exposed copies", _total(step, ScalingBehavior.MOVEMENT), step.step_ns, Basis.DERIVED),
        Ceiling("with balanced experts", sum(_imbalance(step)), step.step_ns, Basis.DERIVED),
        Ceiling("with half the all-reduce latency", sum(_latency(step)) / 2, step.step_ns, Basis.MODEL),
    )
    return tuple(sorted((ceiling for ceiling in saved if ceiling.saved_ns > 0), key=lambda ceiling: -ceiling.saved_ns))


def marginal(step: Step) -> Marginal:
    """What doubling the degree saves at most and adds about, on the rung that the group is on."""
    degree = 2 * step.degree
    grows = [
        class_time
        for class_time in step.classes
        if class_time.sort in (ScalingBehavior.COLLECTIVE, ScalingBehavior.WAIT)
    ]
    return Marginal(
        degree=degree,
        saves_ns=sum(class_time.time_ns for class_time in step.classes if class_time.sort in _SPLIT) / 2,
        adds_ns=sum(expected_ns(class_time, step, degree) - class_time.time_ns for class_time in grows),
        floor_ns=sum(_floor(class_time) for class_time in step.classes),
    )


def _total(step: Step, sort: ScalingBehavior) -> float:
    return sum(class_time.time_ns for class_time in step.classes if class_time.sort is sort)


def _imbalance(step: Step) -> Iterator[float]:
    """Time of the fullest rank above the mean."""
    for class_time in step.classes:
        if class_time.sort is ScalingBehavior.EXPERTS:
            yield class_time.time_ns * (1 - 1 / class_time.imbalance)


def _latency(step: Step) -> Iterator[float]:
    """Time of all-reduces that an empty message would take."""
    for class_time in step.classes:
        if (
            class_time.sort is ScalingBehavior.COLLECTIVE
            and class_time.operation in _REDUCES
            and step.reference is not None
        ):
            yield min(class_time.time_ns, class_time.calls * step.reference(class_time.operation, 0.0, step.degree))


def _floor(class_time: ClassTime) -> float:
    """What no split takes away of a class."""
    if class_time.sort in _SPLIT:
        usual_ns = ATTENTION_FLOOR_NS if class_time.sort is ScalingBehavior.ATTENTION else FLOOR_NS
        return min(
            class_time.time_ns, class_time.calls * (usual_ns if class_time.floor_ns is None else class_time.floor_ns)
        )
    return (
        class_time.time_ns
        if class_time.sort in (ScalingBehavior.REPLICATED, ScalingBehavior.HOST, ScalingBehavior.SETUP)
        else 0.0
    )
