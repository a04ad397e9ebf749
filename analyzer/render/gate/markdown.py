"""A gate's result as markdown for a pull request: the verdict and what failed first, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.gate.metrics import GateVerdict, MetricResult
from analyzer.gate.verdict import NewFinding, Result
from analyzer.render.compare.markdown import fold, table
from analyzer.render.formats.markdown import code, document, text
from analyzer.render.gate import words
from analyzer.render.safe import safe

_MARKS = {
    GateVerdict.PASS: "✅",
    GateVerdict.IMPROVED: "🟢",
    GateVerdict.UNDECIDED: "⚠️",
    GateVerdict.REGRESSION: "❌",
    GateVerdict.NOT_COMPARABLE: "⛔",
}
_FIRST = (GateVerdict.REGRESSION, GateVerdict.NOT_COMPARABLE, GateVerdict.UNDECIDED)


def render(result: Result) -> str:
    """The result as GitHub's and GitLab's markdown."""
    result = safe(result)
    lines = [f"### {_MARKS[result.verdict]} {text(words.headline(result))}"]
    lines += [f"- {text(note)}" for note in result.notes]
    first = [row for row in result.rows if row.verdict in _FIRST]
    rest = [row for row in result.rows if row.verdict not in _FIRST]
    if first:
        lines.append(_table(first))
    lines += [_finding(row) for row in result.findings]
    lines += [f"- {text(line)}" for line in words.courses(result)]
    if rest:
        lines.append(fold(f"{len(rest)} that pass", _table(rest)))
    if result.differences:
        cells = [
            (text(difference.what), text(difference.base or "–"), text(difference.head or "–"))
            for difference in result.differences
        ]
        lines.append(fold("Configuration", table(("", "baseline", "now"), cells)))
    return document(lines)


def _table(rows: Iterable[MetricResult]) -> str:
    return table(("metric", "verdict", "baseline", "now", "change", "95 % interval", "why"), map(_cells, rows))


def _cells(row: MetricResult) -> tuple[str, ...]:
    mark = f"{_MARKS[row.verdict]} {row.verdict.value}"
    sides = (text(words.value(row, row.base)), text(words.value(row, row.head)))
    return code(row.metric), mark, *sides, words.change(row), words.interval(row), text(words.why(row))


def _finding(row: NewFinding) -> str:
    grew = f" (was {text(row.was)})" if row.was else ""
    accepted = f", accepted: {text(row.accepted)}" if row.accepted else ""
    mark = _MARKS[row.verdict] if row.verdict is GateVerdict.REGRESSION else "🔎"
    return f"- {mark} new finding, {text(row.severity)}{grew} {text(row.rule)}: {text(row.message)}{accepted}"
