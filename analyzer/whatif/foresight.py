"""What one run lets expect of another degree: a range, what a doubling saves and adds, what could be gained."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.model.run import Run
from analyzer.whatif.ceilings import Ceiling, Marginal, ceilings, marginal
from analyzer.whatif.expectation import Expectation, expected_ns, what_if
from analyzer.whatif.limits import Refusal
from analyzer.whatif.step_classes import step_of
from analyzer.whatif.time_classes import ClassTime, ScalingBehavior, Step

SCHEMA = 1
DIMENSION = "tp"
"""The one split whose classes of time are known to scale; the others are to be measured."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """The answer to one question.

    Attributes:
        label: of the run.
        kind: of step.
        step: as measured.
        expectation: at the degree asked for.
        marginal: of one doubling; None where nothing is known of the links and the step communicates.
        ceilings: bounds on what four changes could save.
    """

    label: str
    kind: str
    step: Step
    expectation: Expectation
    marginal: Marginal | None
    ceilings: tuple[Ceiling, ...]

    @property
    def classes(self) -> tuple[tuple[ClassTime, float], ...]:
        """Classes of the step, longest first, with the middle of what each would take."""
        ordered = sorted(self.step.classes, key=lambda class_time: -class_time.time_ns)
        return tuple(
            (class_time, expected_ns(class_time, self.step, self.expectation.degree)) for class_time in ordered
        )


def foresee(run: Run, dimension: str, degree: int, kind: str = "", platform: str = "") -> Foresight:
    """What the run lets expect.

    Args:
        run: all ranks.
        dimension: the split whose degree changes.
        degree: the one asked for.
        kind: of step, "" for decode.
        platform: device name whose measured links to use, "" for the run's own.

    Raises:
        UsageError: refused, with every reason.
        MissingEvidenceError: the run lacks what the question needs.
    """
    if dimension != DIMENSION:
        raise UsageError(
            f"one run lets expect another degree of {DIMENSION} only; "
            f"record the same load at two degrees of {dimension} and sweep them"
        )
    word = kind or "decode"
    now = _degree(run)
    step = step_of(run, now, word, platform)
    answer = what_if(step, degree)
    if isinstance(answer, Refusal):
        raise UsageError(f"{run.label}: nothing can be expected of {dimension}={degree}: {'; '.join(answer.reasons)}")
    talks = any(class_time.sort is ScalingBehavior.COLLECTIVE for class_time in step.classes)
    doubled = None if talks and step.reference is None else marginal(step)
    return Foresight(run.label, word, step, answer, doubled, ceilings(step))


def _degree(run: Run) -> int:
    degree = run.layout.sizes.get(DIMENSION, 1 if run.layout.world_size == 1 else None)
    if degree is None:
        raise MissingEvidenceError(
            f"{run.label}: the degree of {DIMENSION} is unknown",
            f'state it in run.json beside the traces: {{"layout": {{"{DIMENSION}": …}}}}',
        )
    others = {axis: size for axis, size in run.layout.sizes.items() if axis not in {DIMENSION, "ep"} and size > 1}
    if others:
        named = ", ".join(f"{axis}={size}" for axis, size in others.items())
        raise UsageError(
            f"{run.label} is split by {named} too; one run lets expect another degree of {DIMENSION} alone"
        )
    return degree


def to_json(foresight: Foresight) -> str:
    """The object of a sweep with nothing measured but the run itself, schema 1; `predicted` is always a model."""
    expectation = foresight.expectation
    whole = {
        "schema": SCHEMA,
        "dimension": DIMENSION,
        "series": foresight.label,
        "points": [
            {"degree": foresight.step.degree, "value_ns": round(foresight.step.step_ns), "kind": foresight.kind}
        ],
        "optimum": None,
        "past_optimum": [],
        "predicted": [
            {
                "degree": expectation.degree,
                "interval_ns": [round(expectation.low_ns), round(expectation.high_ns)],
                "direction": expectation.direction or None,
                "basis": expectation.basis.value,
                "notes": list(expectation.notes),
                "classes": [
                    {
                        "name": class_time.name,
                        "sort": class_time.sort.value,
                        "now_ns": round(class_time.time_ns),
                        "then_ns": round(then),
                    }
                    for class_time, then in foresight.classes
                ],
            }
        ],
        "marginal": None if foresight.marginal is None else msgspec.to_builtins(foresight.marginal),
        "ceilings": [msgspec.to_builtins(ceiling) for ceiling in foresight.ceilings],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
