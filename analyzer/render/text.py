"""Text for a terminal: verdict, where the time goes, six answers, findings by cost. Reads without colour."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyzer.report import Answer, CollectiveRow, FindingRow, RankBreakdown, Report, StepKind
from analyzer.units import count, duration, ranks, share, size

SUFFIX = ".txt"
SHOWN_RANKS = 8
SHOWN_FINDINGS = 5
SHOWN_WARNINGS = 5
SHOWN_COLLECTIVES = 4
BAR = 24
"""Cells of a rank's bar."""

_TERMS = (
    ("compute", "█", "green"),
    ("communication", "▓", "red"),
    ("movement", "▒", "yellow"),
    ("sync", "·", "bright_black"),
)
_MARKS = {
    "ok": ("ok", "green"),
    "attention": ("look", "yellow"),
    "problem": ("problem", "red"),
    "unknown": ("unknown", "bright_black"),
}
_CAUSES = {
    "peer_wait_ns": "waiting for peers",
    "host_launch_ns": "not yet launched",
    "host_sync_ns": "host blocked in a sync call",
    "stream_wait_ns": "waiting on the device",
    "queue_ns": "between steps",
    "unknown_ns": "unknown",
}


def render(report: Report, width: int = 80, *, color: bool = False) -> str:
    """The report as text.

    Args:
        report: what to show.
        width: columns; 80 fit, more are used.
        color: ANSI colours.
    """
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False, emoji=False, markup=False
    )
    console.print(Text(report.verdict, style="bold"))
    console.print()
    for part in _parts(report):
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(report: Report) -> list[RenderableType]:
    parts: list[RenderableType] = [_head(report)]
    parts += [Text(f"! {warning}", style="yellow") for warning in report.run.warnings[:SHOWN_WARNINGS]]
    if len(report.run.warnings) > SHOWN_WARNINGS:
        parts.append(Text(f"! {count(len(report.run.warnings) - SHOWN_WARNINGS, 'more warning')} in --format json"))
    parts += [Text(), _ranks(report.breakdown.per_rank), _idle(report.breakdown.per_rank)]
    if report.breakdown.steps:
        parts += [Text(), _steps(report.breakdown.steps)]
    if report.collectives:
        parts += [Text(), _collectives(report.collectives)]
    parts += [Text(), _answers(report.questions), Text(), _findings(report)]
    return parts


def _head(report: Report) -> RenderableType:
    run = report.run
    of = f" of {run.world_size}" if run.world_size not in (None, len(run.ranks)) else ""
    known = {axis: degree for axis, degree in run.layout.items() if axis != "source"}
    used = " ".join(f"{axis}={degree}" for axis, degree in known.items() if degree != 1)
    layout = f"{used} ({run.layout['source']})" if used else "not split" if known else "layout unknown"
    role = f", {run.role}" if run.role else ""
    engine = "engine unknown" if run.engine == "unknown" else run.engine
    facts = f"{count(len(run.ranks), 'rank')}{of}, {', '.join(run.devices)}, {engine}{role}, {layout}"
    return Text(f"{run.label}: {facts}")


def _ranks(rows: list[RankBreakdown]) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("rank", "window", "comp.", "comm.", "move", "idle"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("█ compute ▓ comm. ▒ move · idle", no_wrap=True)
    for row in rows[:SHOWN_RANKS]:
        parts = [getattr(row, f"{term}_ns") / max(row.window_ns, 1) for term, _, _ in _TERMS]
        table.add_row(str(row.rank), duration(row.window_ns), *map(share, parts), _bar(parts))
    if len(rows) <= SHOWN_RANKS:
        return table
    rest = rows[SHOWN_RANKS:]
    return Group(table, Text(f"… and ranks {ranks([row.rank for row in rest])} (--format json has all)"))


def _bar(parts: list[float]) -> Text:
    """Cells by largest remainder, so that the bar is always full."""
    exact = [part * BAR for part in parts]
    cells = [int(value) for value in exact]
    for at in sorted(range(len(parts)), key=lambda i: cells[i] - exact[i])[: BAR - sum(cells)]:
        cells[at] += 1
    bar = Text()
    for (_, letter, style), width in zip(_TERMS, cells, strict=True):
        bar.append(letter * width, style=style)
    return bar


def _idle(rows: list[RankBreakdown]) -> RenderableType:
    window_ns = sum(row.window_ns for row in rows)
    if not window_ns:
        return Text("nothing ran")
    causes = {words: sum(getattr(row.sync_causes, key) for row in rows) for key, words in _CAUSES.items()}
    by_time = sorted(causes.items(), key=lambda item: -item[1])
    named = [f"{words} {share(ns / window_ns)}" for words, ns in by_time if ns]
    hidden_ns = sum(row.hidden.communication_ns for row in rows)
    lines = [f"idle: {', '.join(named)}"] if named else []
    if hidden_ns:
        lines.append(f"hidden under compute: communication {share(hidden_ns / window_ns)}")
    unknown_ns, busy_ns = sum(row.unclassified_ns for row in rows), sum(row.device_busy_ns for row in rows)
    lines.append(f"unclassified kernels: {share(unknown_ns / busy_ns if busy_ns else 0)} of busy time")
    return Text("\n".join(lines))


def _steps(rows: list[StepKind]) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("steps")
    for title in ("count", "median", "p90", "period", "comp.", "comm.", "move", "idle"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        period = "–" if row.period_ns is None else duration(row.period_ns)
        terms = [duration(row.terms.get(term, 0)) for term, _, _ in _TERMS]
        table.add_row(row.kind, f"{row.count:,}", duration(row.median_ns), duration(row.p90_ns), period, *terms)
    return table


def _collectives(rows: list[CollectiveRow]) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("collective")
    for title in ("axis", "ranks", "calls", "message", "median", "waiting"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows[:SHOWN_COLLECTIVES]:
        message = "unknown" if row.bytes is None else size(row.bytes)
        whole = (row.wait_ns or 0) + (row.transfer_ns or 0)
        waiting = "unknown" if row.wait_ns is None else share(row.wait_ns / whole if whole else 0.0)
        members = ranks(row.group) if row.group else "unknown"
        table.add_row(row.kind, row.dimension, members, f"{row.count:,}", message, duration(row.median_ns), waiting)
    rest = len(rows) - SHOWN_COLLECTIVES
    return Group(table, Text(f"… and {count(rest, 'more kind')} (--format json has all)")) if rest > 0 else table


def _answers(rows: list[Answer]) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in rows:
        word, style = _MARKS[row.verdict]
        table.add_row(f"{row.id} {row.name}", Text(word, style=style), row.answer.removeprefix("unknown, because "))
    return table


def _findings(report: Report) -> RenderableType:
    if not report.findings:
        asked = sum(outcome.outcome != "unknown" for outcome in report.rules)
        return Text(f"No findings: {count(asked, 'rule')} of {len(report.rules)} could be asked.")
    shown = [_finding(row) for row in report.findings[:SHOWN_FINDINGS]]
    rest = len(report.findings) - SHOWN_FINDINGS
    if rest > 0:
        shown.append(Text(f"… and {count(rest, 'more finding')} (--format json has all)"))
    return Group(*shown)


def _finding(row: FindingRow) -> RenderableType:
    style = {"error": "red", "warning": "yellow", "info": "cyan"}[row.severity]
    gain = f"up to {share(row.cost_share)} of the window" if row.cost_share else "no cost in time"
    head = Text.assemble((f"{row.severity} {row.rule} {row.name}", style), f"  {gain}, {row.basis}")
    lines = [row.message, *(f"→ {advice}" for advice in row.advice[:2])]
    return Group(head, Padding(Text("\n".join(lines)), (0, 0, 0, 2)))
