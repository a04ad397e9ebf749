"""A comparison as text for a terminal: what changed, what is exactly equal, times by section, where they went."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.compare.comparison import Comparison, Side, headlines
from analyzer.compare.exact import ExactRow, State
from analyzer.compare.timed import COLLECTIVES, KERNELS, WINDOW, TimedRow
from analyzer.render.compare.words import amounts, cells, lying, summed
from analyzer.render.console import printed
from analyzer.render.safe import safe
from analyzer.units import count

SHOWN_DIFFERENCES = 12
SHOWN_EXACT = 12
SHOWN_ROWS = 10
"""Rows of a section, the largest difference first; those that differ are never cut."""

_TITLES = {WINDOW: "window, per step", KERNELS: "kernel classes, per step", COLLECTIVES: "collectives, per call"}


def render(comparison: Comparison, width: int = 80, *, color: bool = False) -> str:
    """The comparison as text.

    Args:
        comparison: what to show.
        width: columns; 80 fit.
        color: ANSI colours.
    """
    return printed(_parts(safe(comparison)), width, color=color)


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield from (Text(line, style="bold") for line in headlines(comparison))
    yield Text()
    yield Text(f"base: {_side(comparison.base)}")
    yield Text(f"head: {_side(comparison.head)}")
    yield from (Text(f"! {note}", style="yellow") for note in comparison.notes)
    if comparison.differences:
        yield from (Text(), _configuration(comparison))
    yield from (Text(), *_exact(comparison.exact))
    for section in dict.fromkeys(row.section for row in comparison.timed):
        yield from (Text(), *_section(section, [row for row in comparison.timed if row.section == section]))
    yield Text()
    yield from (Text(summed(balance)) for balance in comparison.balances)
    yield Text(lying(comparison.overlap))
    if comparison.new or comparison.gone:
        yield Text()
    yield from (Text(f"new: {row.severity} {row.rule} {row.name}: {row.message}") for row in comparison.new)
    yield from (Text(f"gone: {row.severity} {row.rule} {row.name}") for row in comparison.gone)


def _side(side: Side) -> str:
    low, high = min(side.steps), max(side.steps)
    steps = count(high, "step") if low == high else f"{low:,} to {count(high, 'step')}"
    each = " each" if len(side.labels) > 1 else ""
    held = f"{steps}{each}" if high else "no steps found"
    return f"{', '.join(side.labels)} ({count(len(side.labels), 'run')}, {held})"


def _table(title: str, *titles: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(title, overflow="fold")
    for word in titles:
        table.add_column(word, justify="right", overflow="fold")
    return table


def _configuration(comparison: Comparison) -> RenderableType:
    table = _table("configuration", "base", "head")
    for part in comparison.differences[:SHOWN_DIFFERENCES]:
        table.add_row(part.what, part.base or "not stated", part.head or "not stated")
    rest = len(comparison.differences) - SHOWN_DIFFERENCES
    if rest > 0:
        table.add_row(f"… and {rest} more (--format json has all)")
    return table


def _exact(rows: tuple[ExactRow, ...]) -> Iterator[RenderableType]:
    changed = [row for row in rows if row.state is not State.SAME]
    yield Text(f"exact quantities: {len(rows) - len(changed)} of {len(rows)} equal")
    if not changed:
        return
    table = _table("calls and bytes are of a rank and a step", "base", "head", "")
    for row in changed[:SHOWN_EXACT]:
        table.add_row(row.name, amounts(row.name, row.base), amounts(row.name, row.head), row.state.value)
    yield table
    if len(changed) > SHOWN_EXACT:
        yield Text(f"… and {len(changed) - SHOWN_EXACT} more (--format json has all)")


def _section(section: str, rows: list[TimedRow]) -> Iterator[RenderableType]:
    table = _table(_TITLES.get(section, f"{section} steps"), "base", "head", "change", "95 % interval", "p")
    by_difference = sorted(rows, key=lambda row: -abs(row.difference_ns or 0.0))
    kept = [row for at, row in enumerate(by_difference) if row.differs or at < SHOWN_ROWS]
    for row in (row for row in rows if row in kept):
        table.add_row(row.name, *cells(row))
    yield table
    if len(kept) < len(rows):
        yield Text(f"… and {len(rows) - len(kept)} with smaller differences (--format json has all)")
