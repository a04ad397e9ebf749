"""A gate's result as JSON, schema 1. Times in nanoseconds."""

from __future__ import annotations

from typing import Any

import msgspec

from analyzer.gate.metrics import MetricResult
from analyzer.gate.verdict import Result

SCHEMA = 1


def to_json(result: Result, *, strict: bool = False) -> str:
    """Indented, keys in a stable order.

    Args:
        result: what to write.
        strict: as for the exit code, which is in it.
    """
    whole = {
        "schema": SCHEMA,
        "verdict": result.verdict.value,
        "exit_code": result.exit_code(strict=strict),
        "losses": list(result.losses),
        "baseline_runs": list(result.base_runs),
        "runs": list(result.head_runs),
        "metrics": [_row(row) for row in result.rows],
        "new_findings": [msgspec.to_builtins(row) for row in result.findings],
        "configuration": [
            {"what": difference.what, "baseline": difference.base or None, "now": difference.head or None}
            for difference in result.differences
        ],
        "history": [msgspec.to_builtins(trend) for trend in result.courses],
        "notes": list(result.notes),
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def _row(row: MetricResult) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "verdict": row.verdict.value,
        "why": row.why,
        "unit": "ns" if row.is_time else None,
        "baseline": list(row.base),
        "now": list(row.head),
        "ratio": _rounded(row.ratio),
        "interval": None if row.interval is None else [_rounded(bound) for bound in row.interval],
        "p": _rounded(row.p),
        "visible": _rounded(row.visible),
        "accepted": row.accepted or None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
