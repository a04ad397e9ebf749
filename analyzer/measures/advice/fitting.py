"""Advice whose conditions hold for a run."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence

from analyzer.measures.advice.flags import ENGINES, named, numbers
from analyzer.measures.advice.followed import follows, has_experts
from analyzer.measures.workload import workload
from analyzer.model.run import Run
from analyzer.schema.advice import Advice, Suggestion
from analyzer.schema.workload import UNKNOWN, WorkloadFacts

_COMPARED = re.compile(r"(\w+) (>|==) (\d+)")
_COMPARE = {">": operator.gt, "==": operator.eq}
_USE_OF_AXIS = {
    "tp": "tensor-parallel",
    "ep": "expert-parallel",
    "pp": "pipeline-parallel",
    "cp": "context-parallel",
    "dcp": "context-parallel",
    "dp": "data-parallel",
}


def fitting(run: Run, suggestions: Iterable[Suggestion], members: Sequence[int] = ()) -> tuple[str, ...]:
    """The sentences that hold, in the order given, each once.

    Args:
        run: that the advice is for.
        suggestions: of alternatives, the first that holds is kept.
        members: ranks of the group that it is about; () for all groups.
    """
    kept = []
    for suggestion in suggestions:
        alternatives = suggestion if isinstance(suggestion, tuple) else (suggestion,)
        kept += [_text(each) for each in alternatives if _holds(each, run, members)][:1]
    return tuple(dict.fromkeys(kept))


def version_of(run: Run, engine: str) -> str:
    """Version of the engine as recorded, "" where it is not."""
    stated = [trace.origin.versions.get(engine, "") for trace in run.traces]
    return run.workload.versions.get(engine, "") or next(filter(None, stated), "")


def _text(suggestion: str | Advice) -> str:
    return suggestion if isinstance(suggestion, str) else suggestion.text


def _holds(suggestion: str | Advice, run: Run, members: Sequence[int]) -> bool:
    if isinstance(suggestion, str):
        return True
    facts = workload(run)
    return (
        _is_among(facts.engine.value, suggestion.engines)
        and _is_among(facts.maker.value, suggestion.makers)
        and _is_among(facts.replay.value, suggestion.replay)
        and (not suggestion.phases or not facts.phases.isdisjoint(suggestion.phases))
        and (not suggestion.uses or not _uses(run, facts, members).isdisjoint(suggestion.uses))
        and _version_fits(suggestion, version_of(run, facts.engine.value))
        and _flags_fit(suggestion, run, facts)
        and all(_is_laid_out(run, condition) for condition in suggestion.layout)
        and not any(follows(run, feature) for feature in suggestion.unless)
    )


def _is_among(value: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or value in wanted


def _version_fits(advice: Advice, version: str) -> bool:
    """Whether the engine's version lies between the advice's; one that is not recorded is taken for the newest."""
    if not numbers(version):
        return not advice.until
    return numbers(version) >= numbers(advice.since) and not (
        advice.until and numbers(version) >= numbers(advice.until)
    )


def _flags_fit(advice: Advice, run: Run, facts: WorkloadFacts) -> bool:
    """Whether each flag that the text names is one for this engine, its version and this device."""
    return all(
        (flag.owner not in ENGINES or flag.owner == facts.engine.value)
        and _is_among(facts.maker.value, flag.makers)
        and flag.fits(version_of(run, flag.owner))
        for flag in named(advice.text, advice.engines)
    )


def _uses(run: Run, facts: WorkloadFacts, members: Sequence[int]) -> set[str]:
    """What the group is used for; where it states nothing, what any group is, else what the layout has axes for."""
    stated = [group for group in facts.groups if group.use != UNKNOWN]
    several = len(members) > 1
    exact = {group.use for group in stated if several and (group.ranks or list(run.ranks)) == list(members)}
    axis = run.layout.axis_of(tuple(members)) if several else None
    if exact:
        return exact
    if axis:
        return {_USE_OF_AXIS[axis]}
    return {group.use for group in stated} or {
        _USE_OF_AXIS[axis] for axis, size in run.layout.sizes.items() if size > 1 and axis in _USE_OF_AXIS
    }


def _is_laid_out(run: Run, condition: str) -> bool:
    """Whether a condition on the layout is known to hold."""
    if condition == "experts":
        return has_experts(run)
    compared = _COMPARED.fullmatch(condition)
    if compared is None:
        raise ValueError(f"not a condition on the layout: {condition!r}")
    axis, sign, size = compared.groups()
    return axis in run.layout.sizes and bool(_COMPARE[sign](run.layout.sizes[axis], int(size)))
