"""A comparison as markdown for a pull request: what changed first, tables folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.compare.balance import Waterfall, WaterfallPart
from analyzer.compare.comparison import Comparison, headlines, more
from analyzer.compare.exact import ExactRow, State
from analyzer.render.compare.words import amounts, cells, lying
from analyzer.render.formats.markdown import code, document, summary, text
from analyzer.render.safe import safe
from analyzer.schema.report import FindingRow
from analyzer.units import duration


def render(comparison: Comparison) -> str:
    """The comparison as GitHub's and GitLab's markdown."""
    comparison = safe(comparison)
    lines = [f"**{text(line)}**" for line in headlines(comparison)]
    lines += [f"- {text(note)}" for note in comparison.notes]
    changed = [row for row in comparison.exact if row.state is not State.SAME]
    equal = len(comparison.exact) - len(changed)
    lines.append(f"Exact quantities: {equal} of {len(comparison.exact)} equal.")
    if changed:
        lines.append(table(("quantity", "base", "head", ""), map(_exact, changed)))
    if comparison.differences:
        rows = [(text(part.what), text(part.base or "–"), text(part.head or "–")) for part in comparison.differences]
        lines.append(fold("Configuration", table(("", "base", "head"), rows)))
    lines += [fold(f"Times: {section}", _times(comparison, section)) for section in _sections(comparison)]
    lines.append(fold("Where the difference went", "\n\n".join(map(_balance, comparison.balances))))
    lines.append(text(lying(comparison.overlap)))
    lines += [f"- new: {_finding(row)}: {text(row.message)}" for row in comparison.new]
    lines += [f"- gone: {_finding(row)}" for row in comparison.gone]
    return document(lines)


def table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; the first column is words, the others are figures."""
    head = f"| {' | '.join(titles)} |\n|{'---|' + '---:|' * (len(titles) - 1)}"
    return "\n".join((head, *(f"| {' | '.join(cells)} |" for cells in rows)))


def fold(title: str, body: str) -> str:
    """Hidden until it is opened."""
    return f"<details><summary>{summary(title)}</summary>\n\n{body}\n\n</details>"


def _exact(row: ExactRow) -> tuple[str, ...]:
    return code(row.name), text(amounts(row.name, row.base)), text(amounts(row.name, row.head)), row.state.value


def _finding(row: FindingRow) -> str:
    return text(f"{row.severity} {row.rule} {row.name}")


def _sections(comparison: Comparison) -> Iterator[str]:
    yield from dict.fromkeys(row.section for row in comparison.timed)


def _times(comparison: Comparison, section: str) -> str:
    rows = [(code(row.name), *cells(row)) for row in comparison.timed if row.section == section]
    return table(("", "base", "head", "change", "95 % interval", "p"), rows)


def _balance(balance: Waterfall) -> str:
    parts = [(code(part.name), *_times_of(part)) for part in balance.parts]
    titles = (text(balance.title), "base", "head", "difference")
    return table(titles, [*parts, ("**in all**", *_times_of(balance.whole))])


def _times_of(part: WaterfallPart) -> tuple[str, ...]:
    return duration(part.base_ns), duration(part.head_ns), more(part.difference_ns)
