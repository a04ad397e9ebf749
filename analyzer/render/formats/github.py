"""GitHub workflow annotations: a line a finding, worst first, the verdict as a notice."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.render import words
from analyzer.render.safe import safe
from analyzer.render.workflow_command import MOST, command
from analyzer.schema.report import FindingRow, Report

SUFFIX = ".github"
LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
"""Severity → workflow command."""


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as workflow commands; width and colour change nothing."""
    return "\n".join(_lines(safe(report))) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield command("notice", report.tool.name, report.verdict)
    for severity, level in LEVELS.items():
        rows = [row for row in report.findings if row.severity == severity]
        room = MOST - (level == "notice")
        shown = rows if len(rows) <= room else rows[: room - 1]
        for row in shown:
            yield command(level, f"{row.rule} {row.name}", _message(row))
        if len(shown) < len(rows):
            rest = len(rows) - len(shown)
            yield command(level, report.tool.name, f"{rest} more of severity {severity}: see the full report")


def _message(row: FindingRow) -> str:
    listed = words.places(row.evidence.ranks)
    return "\n".join(
        [f"{row.message} ({words.gain(row)}, {row.basis}, {listed})", *(f"→ {each}" for each in row.advice)]
    )
