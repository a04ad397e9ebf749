"""A gate's result as text for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.gate.metrics import GateVerdict, MetricResult
from analyzer.gate.verdict import Result
from analyzer.render.console import printed
from analyzer.render.gate import words
from analyzer.render.safe import safe

SHOWN_DIFFERENCES = 12
_STYLES = {
    GateVerdict.PASS: "green",
    GateVerdict.IMPROVED: "green",
    GateVerdict.UNDECIDED: "yellow",
    GateVerdict.REGRESSION: "red",
    GateVerdict.NOT_COMPARABLE: "red",
}


def render(result: Result, width: int = 80, *, color: bool = False) -> str:
    """The result as text.

    Args:
        result: what to show.
        width: columns; 80 fit.
        color: ANSI colours.
    """
    return printed(_parts(safe(result)), width, color=color)


def _parts(result: Result) -> Iterator[RenderableType]:
    yield Text(words.headline(result), style=f"bold {_STYLES[result.verdict]}")
    yield from (Text(f"! {note}", style="yellow") for note in result.notes)
    shown = [row for row in result.rows if row.is_time or row.verdict is not GateVerdict.PASS or row.accepted]
    if shown:
        yield from (Text(), _table(shown))
        yield from (Text(f"{row.metric}: {words.why(row)}") for row in shown)
    equal = len(result.rows) - len(shown)
    if equal:
        yield Text(f"exact quantities that did not change: {equal}")
    for row in result.findings:
        accepted = f", accepted: {row.accepted}" if row.accepted else ""
        grew = f" (was {row.was})" if row.was else ""
        fails = "fails: " if row.verdict is GateVerdict.REGRESSION else ""
        yield Text(f"new finding, {fails}{row.severity}{grew} {row.rule}: {row.message}{accepted}")
    yield from (Text(line) for line in words.courses(result))
    if result.differences:
        listed = [
            f"{difference.what} {difference.base or 'not stated'} → {difference.head or 'not stated'}"
            for difference in result.differences
        ]
        rest = len(listed) - SHOWN_DIFFERENCES
        more = f", and {rest} more" if rest > 0 else ""
        yield Text(f"configuration: {', '.join(listed[:SHOWN_DIFFERENCES])}{more}")


def _table(rows: list[MetricResult]) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("metric", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for title in ("baseline", "now", "change", "95 % interval"):
        table.add_column(title, justify="right")
    for row in rows:
        verdict = Text(row.verdict.value, style=_STYLES[row.verdict])
        sides = (words.value(row, row.base), words.value(row, row.head))
        table.add_row(row.metric, verdict, *sides, words.change(row), words.interval(row))
    return table
