"""A gate's result as GitHub workflow annotations: a line a metric that does not pass, the verdict as a notice."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.gate.metrics import GateVerdict
from analyzer.gate.verdict import Result
from analyzer.render.gate import words
from analyzer.render.safe import safe
from analyzer.render.workflow_command import MOST, command

_LEVELS = {
    GateVerdict.REGRESSION: "error",
    GateVerdict.NOT_COMPARABLE: "error",
    GateVerdict.UNDECIDED: "warning",
    GateVerdict.IMPROVED: "notice",
    GateVerdict.PASS: "notice",
}


def render(result: Result, *, strict: bool = False) -> str:
    """The result as workflow commands.

    Args:
        result: what to show.
        strict: whether what is undecided is an error, as it is for the exit code.
    """
    result = safe(result)
    levels = {**_LEVELS, GateVerdict.UNDECIDED: "error"} if strict else _LEVELS
    lines = [(levels[result.verdict], "gate", words.headline(result)), *_annotations(result, levels)]
    kept = []
    for level in ("error", "warning", "notice"):
        of_level = [line for line in lines if line[0] == level]
        shown = of_level if len(of_level) <= MOST else of_level[: MOST - 1]
        if len(shown) < len(of_level):
            shown.append((level, "gate", f"{len(of_level) - len(shown)} more: see the full report"))
        kept += shown
    return "".join(f"{command(*line)}\n" for line in kept)


def _annotations(result: Result, levels: dict[GateVerdict, str]) -> Iterator[tuple[str, str, str]]:
    for row in result.rows:
        if row.verdict in {
            GateVerdict.REGRESSION,
            GateVerdict.NOT_COMPARABLE,
            GateVerdict.UNDECIDED,
            GateVerdict.IMPROVED,
        }:
            sides = f"{words.value(row, row.base)} → {words.value(row, row.head)}"
            yield levels[row.verdict], row.metric, f"{row.verdict.value}: {words.why(row)} ({sides})"
    for found in result.findings:
        level = "error" if found.verdict is GateVerdict.REGRESSION else "notice"
        yield level, found.rule, f"new finding, {found.severity}: {found.message}"
    yield from (("notice", "gate", note) for note in (*result.notes, *words.courses(result)))
