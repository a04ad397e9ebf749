"""What a run was, as named facts: what differs between two, and what forbids comparing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyzer.schema.report import Report
from analyzer.schema.settings import SETTINGS

Facts = dict[str, str]

UNKNOWN = ("", "unknown")
_BINDING = ("engine", "role", "device", "world size")
"""Facts of the job that a gate must find equal, beside the layout, the model and the settings that cost time."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not equal; "" where a side does not state it."""

    what: str
    base: str
    head: str


def facts(report: Report) -> Facts:
    """All that is known of the job, by name; what is unknown is absent."""
    return {what: value for what, value in _all(report) if value not in UNKNOWN}


def _all(report: Report) -> Iterator[tuple[str, str]]:
    run = report.run
    yield "engine", run.engine
    yield "role", run.role
    yield "device", ", ".join(run.devices)
    yield "world size", "" if run.world_size is None else str(run.world_size)
    yield "nodes", "" if run.nodes is None else str(run.nodes)
    yield from ((f"layout {axis}", str(degree)) for axis, degree in run.layout.items() if axis != "source")
    for word, table in (("model", run.model), ("setting", run.settings), ("version", run.versions)):
        yield from ((f"{word} {name}", str(value)) for name, value in sorted(table.items()))


def common(runs: Sequence[Facts]) -> Facts:
    """Facts that all runs state alike."""
    first, *rest = runs
    return {what: value for what, value in first.items() if all(other.get(what) == value for other in rest)}


def uneven(runs: Sequence[Facts]) -> dict[str, tuple[str, ...]]:
    """Facts that runs of one side state differently, with what they state."""
    names = dict.fromkeys(what for run in runs for what in run)
    stated = {what: tuple(dict.fromkeys(run[what] for run in runs if what in run)) for what in names}
    return {what: values for what, values in stated.items() if len(values) > 1}


def differences(base: Facts, head: Facts) -> tuple[Difference, ...]:
    """Facts that are not equal, those that forbid a comparison first."""
    names = dict.fromkeys((*base, *head))
    compared = [Difference(what, base.get(what, ""), head.get(what, "")) for what in names]
    unequal = [difference for difference in compared if difference.base != difference.head]
    return tuple(sorted(unequal, key=lambda difference: not is_binding(difference.what)))


def obstacles(base: Facts, head: Facts) -> tuple[Difference, ...]:
    """Differences that make two runs two workloads, as far as both sides state them."""
    return tuple(
        difference
        for difference in differences(base, head)
        if is_binding(difference.what) and difference.base and difference.head
    )


def is_binding(what: str) -> bool:
    """Whether a gate needs this fact equal."""
    word, _, name = what.partition(" ")
    return what in _BINDING or word in {"layout", "model"} or (word == "setting" and name in SETTINGS)
