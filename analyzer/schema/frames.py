"""The tables of a report as pandas data frames, for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

from analyzer.errors import UsageError
from analyzer.schema.report import Report

_TABLES: dict[str, Callable[[Report], Sequence[Any]]] = {
    "ranks": lambda report: report.breakdown.per_rank,
    "steps": lambda report: report.breakdown.steps,
    "collectives": lambda report: report.collectives,
    "waiting": lambda report: report.waiting.groups,
    "late": lambda report: report.waiting.late,
    "pairs": lambda report: report.waiting.pairs,
    "ladder": lambda report: report.ladder,
    "rungs": lambda report: report.rungs,
    "questions": lambda report: report.questions,
    "findings": lambda report: report.findings,
    "rules": lambda report: report.rules,
}


def frames(report: Report) -> dict[str, Any]:
    """Data frames by name: ranks, steps, collectives, waiting, late, pairs, ladder, rungs, questions, findings, rules.

    A field inside a field is a column of its own: `sync_causes.peer_wait_ns`. Times are integer nanoseconds, sizes
    bytes; what is not known is missing, never zero.

    Raises:
        UsageError: pandas is not installed.
    """
    return {name: _frame(rows(report)) for name, rows in _TABLES.items()}


def _frame(rows: Sequence[Any]) -> Any:  # noqa: ANN401 (pandas brings no types)
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise UsageError("data frames need pandas; install it with: pip install 'shardscope[notebook]'") from error
    return pandas.json_normalize([asdict(row) for row in rows])
