"""GitHub workflow annotations: a line a finding, worst first, the verdict as a notice."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.render import words
from analyzer.render.safe import safe
from analyzer.schema.report import FindingRow, Report

SUFFIX = ".github"
LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
"""Severity → workflow command."""
MOST = 10
"""Annotations of one level that GitHub shows of a step; more are dropped there without a word."""


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as workflow commands; width and colour change nothing.

    Source: the toolkit of GitHub's actions, packages/core/src/command.ts, for what is escaped.
    """
    return "\n".join(_lines(safe(report))) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield _command("notice", report.tool.name, report.verdict)
    for severity, level in LEVELS.items():
        rows = [row for row in report.findings if row.severity == severity]
        room = MOST - (level == "notice")
        shown = rows if len(rows) <= room else rows[: room - 1]
        for row in shown:
            yield _command(level, f"{row.rule} {row.name}", _message(row))
        if len(shown) < len(rows):
            rest = len(rows) - len(shown)
            yield _command(level, report.tool.name, f"{rest} more of severity {severity}: see the full report")


def _message(row: FindingRow) -> str:
    place = words.places(row.evidence.ranks)
    return "\n".join(
        [f"{row.message} ({words.gain(row)}, {row.basis}, {place})", *(f"→ {each}" for each in row.advice)]
    )


def _command(level: str, title: str, message: str) -> str:
    """`::level title=…::message`; a percent sign, line ends and, in the title, the separators are escaped."""
    return f"::{level} title={_data(title).replace(':', '%3A').replace(',', '%2C')}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
