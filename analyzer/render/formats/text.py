"""Text for a terminal: verdict, where the time goes, six answers, findings by cost. Reads without colour."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyzer.render import words
from analyzer.render.console import printed
from analyzer.render.safe import safe
from analyzer.render.second_opinion import hta_lines
from analyzer.schema.breakdown import RankBreakdown, StepKind
from analyzer.schema.ladder import LadderRow
from analyzer.schema.report import Answer, CollectiveRow, FindingRow, Report
from analyzer.schema.waiting import WaitingTable
from analyzer.units import count, duration, share

SUFFIX = ".txt"
WIDE = 110
"""Columns from which tables get the columns that 80 have no room for, and lists twice the rows."""
SHOWN_RANKS = 8
SHOWN_SCALING = 3
SHOWN_FINDINGS = 5
SHOWN_WARNINGS = 5
SHOWN_COLLECTIVES = 4
SHOWN_GROUPS = 3
SHOWN_LATE = 2
SHOWN_REASONS = 2
SHOWN_ADVICE = 2
BESIDE_BAR = 46
"""Columns of a rank's figures; its bar has the rest of the line."""
LONGEST_BAR = 100

_MARKS = {
    "compute": ("█", "green"),
    "communication": ("▓", "red"),
    "movement": ("▒", "yellow"),
    "sync": ("·", "bright_black"),
}
_VERDICT_STYLES = {"ok": "green", "attention": "yellow", "problem": "red", "unknown": "bright_black"}
_SEVERITY_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def render(report: Report, width: int = 80, *, color: bool = False) -> str:
    """The report as text.

    Args:
        report: what to show.
        width: columns; 80 fit, more are used.
        color: ANSI colours.
    """
    report = safe(report)
    parts = (Text(report.verdict, style="bold"), Text(), *_parts(report, width))
    return printed(parts, width, color=color)


def _parts(report: Report, width: int) -> list[RenderableType]:
    fold = 2 if width >= WIDE else 1
    parts: list[RenderableType] = [Text(f"{report.run.label}: {words.facts(report.run)}")]
    shown = report.run.warnings[: fold * SHOWN_WARNINGS]
    parts += [Text(f"! {warning}", style="yellow") for warning in shown]
    parts += _rest(len(report.run.warnings) - len(shown), "! {} in --format json", "more warning")
    parts += [Text(), *_ranks(report.breakdown.per_rank, width, fold), _idle(report.breakdown.per_rank)]
    if report.breakdown.steps:
        parts += [Text(), _steps(report.breakdown.steps, wide=fold > 1)]
    if report.collectives:
        parts += [Text(), *_collectives(report.collectives, fold)]
    if report.waiting.groups:
        parts += [Text(), *_waiting(report.waiting, fold)]
    told = report.scaling.sentences
    if told:
        parts += [Text(), *map(Text, told[: fold * SHOWN_SCALING])]
        parts += _rest(len(told) - fold * SHOWN_SCALING, "… and {} (--format json has all)", "more row")
    if report.ladder and fold > 1:
        parts += [Text(), _ladder(report.ladder)]
    parts += [Text(), _answers(report.questions), Text(), *_findings(report, fold)]
    if "hta" in report.extra:
        parts += [Text(), *(Text(line) for line in hta_lines(report.extra["hta"]))]
    return parts


def _rest(n: int, sentence: str, noun: str) -> list[RenderableType]:
    """The line that says how many rows are not shown."""
    return [Text(sentence.format(count(n, noun)))] if n > 0 else []


def _table(left: int, *titles: str) -> Table:
    """Without frame; the first `left` columns are words, the others figures."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for at, title in enumerate(titles):
        table.add_column(title, justify="left" if at < left else "right", no_wrap=at >= left)
    return table


def _ranks(rows: list[RankBreakdown], width: int, fold: int) -> list[RenderableType]:
    cells = min(LONGEST_BAR, width - BESIDE_BAR)
    table = _table(0, "rank", "window", *(short for _, short in words.TERMS))
    table.add_column(" ".join(f"{_MARKS[term][0]} {short}" for term, short in words.TERMS), no_wrap=True)
    shown = rows[: fold * SHOWN_RANKS]
    for row in shown:
        parts = [row.by_term[term] / max(row.window_ns, 1) for term, _ in words.TERMS]
        table.add_row(str(row.rank), duration(row.window_ns), *map(share, parts), _bar(parts, cells))
    if len(shown) == len(rows):
        return [table]
    rest = words.places([row.rank for row in rows[len(shown) :]])
    return [table, Text(f"… and {rest} (--format json has all)")]


def _bar(parts: list[float], length: int) -> Text:
    """Cells by largest remainder, so that the bar is always full."""
    exact = [part * length for part in parts]
    cells = [int(value) for value in exact]
    for at in sorted(range(len(parts)), key=lambda i: cells[i] - exact[i])[: length - sum(cells)]:
        cells[at] += 1
    bar = Text()
    for (term, _), n in zip(words.TERMS, cells, strict=True):
        letter, style = _MARKS[term]
        bar.append(letter * n, style=style)
    return bar


def _idle(rows: list[RankBreakdown]) -> RenderableType:
    window_ns = sum(row.window_ns for row in rows)
    if not window_ns:
        return Text("nothing ran")
    named = words.idle(rows)
    hidden_ns = sum(row.hidden.communication_ns for row in rows)
    lines = [f"idle: {', '.join(named)}"] if named else []
    if hidden_ns:
        lines.append(f"hidden under compute: communication {words.part(hidden_ns, window_ns)}")
    lines += words.blended(rows)
    unknown_ns, busy_ns = sum(row.unclassified_ns for row in rows), sum(row.device_busy_ns for row in rows)
    lines.append(f"unclassified kernels: {words.part(unknown_ns, busy_ns)} of busy time")
    return Text("\n".join(lines))


def _steps(rows: list[StepKind], *, wide: bool) -> RenderableType:
    more = ("tokens", "requests", "left out") if wide else ()
    table = _table(1, "steps", "count", "median", "p90", "period", *(short for _, short in words.TERMS), *more)
    for row in rows:
        terms = [duration(row.terms.get(term, 0)) for term, _ in words.TERMS]
        stated = [words.NONE if n is None else f"{n:,}" for n in (row.tokens, row.requests)]
        added = (*stated, words.left_out(row)) if wide else ()
        figures = (f"{row.count:,}", duration(row.median_ns), duration(row.p90_ns), words.period(row))
        table.add_row(row.kind, *figures, *terms, *added)
    return table


def _collectives(rows: list[CollectiveRow], fold: int) -> list[RenderableType]:
    more = ("bus bandwidth", "expected", "rung", "speed") if fold > 1 else ()
    table = _table(1, "collective", "axis", "ranks", "calls", "message", "median", "waiting", *more)
    shown = rows[: fold * SHOWN_COLLECTIVES]
    for row in shown:
        speeds = (
            words.bandwidth(row.busbw_GBps),
            words.bandwidth(row.expected_busbw_GBps),
            row.level,
            words.speed(row),
        )
        figures = (f"{row.count:,}", words.moved(row.bytes), duration(row.median_ns), words.waiting(row))
        table.add_row(words.kind(row), row.dimension, words.members(row), *figures, *(speeds if more else ()))
    return [table, *_rest(len(rows) - len(shown), "… and {} (--format json has all)", "more kind")]


def _waiting(waiting: WaitingTable, fold: int) -> list[RenderableType]:
    table = _table(1, "waiting within", "calls", "by arrival", "by shortest", "agree", "transfer", "verdict")
    shown = waiting.groups[: fold * SHOWN_GROUPS]
    for row in shown:
        arrival_ns, by_arrival = row.wait_by_arrival_ns, row.used == "arrival"
        transfer_ns = row.transfer_by_arrival_ns if by_arrival else row.transfer_by_shortest_ns
        table.add_row(
            words.places(row.group),
            f"{row.collectives:,}",
            words.NONE if arrival_ns is None else duration(arrival_ns),
            duration(row.wait_by_shortest_ns),
            words.agreement(row),
            words.NONE if transfer_ns is None else duration(transfer_ns),
            row.verdict,
        )
    lines = words.told(waiting.late, fold * SHOWN_LATE, fold * SHOWN_REASONS)
    rest = _rest(len(waiting.groups) - len(shown), "… and {} (--format json has all)", "more group")
    return [table, *rest, *(Text(line) for line in lines)]


def _ladder(rows: list[LadderRow]) -> RenderableType:
    table = _table(1, "rung", "moved", "time", "moved in a step", "time in a step", "basis")
    for row in rows:
        table.add_row(row.level, words.moved(row.bytes), duration(row.time_ns), *words.in_a_step(row), row.basis)
    return table


def _answers(rows: list[Answer]) -> RenderableType:
    table = _table(3, "", "", "")
    table.show_header = False
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for row in rows:
        word = Text(words.VERDICTS[row.verdict], style=_VERDICT_STYLES[row.verdict])
        table.add_row(f"{row.id} {row.name}", word, row.answer.removeprefix("unknown, because "))
    return table


def _findings(report: Report, fold: int) -> list[RenderableType]:
    if not report.findings:
        asked = sum(outcome.outcome != "unknown" for outcome in report.rules)
        return [Text(f"No findings: {count(asked, 'rule')} of {len(report.rules)} could be asked.")]
    shown = report.findings[: fold * SHOWN_FINDINGS]
    rest = _rest(len(report.findings) - len(shown), "… and {} (--format json has all)", "more finding")
    return [*(_finding(row, fold) for row in shown), *rest]


def _finding(row: FindingRow, fold: int) -> RenderableType:
    style = _SEVERITY_STYLES[row.severity]
    head = Text.assemble((f"{row.severity} {row.rule} {row.name}", style), f"  {words.gain(row)}, {row.basis}")
    lines = [row.message, *(f"→ {advice}" for advice in row.advice[: fold * SHOWN_ADVICE])]
    return Group(head, Padding(Text("\n".join(lines)), (0, 0, 0, 2)))
