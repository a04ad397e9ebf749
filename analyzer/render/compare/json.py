"""A comparison as JSON, schema 1. Times in nanoseconds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from analyzer.compare.balance import Waterfall, WaterfallPart
from analyzer.compare.comparison import Comparison, Side, headlines
from analyzer.compare.exact import ExactRow, Value
from analyzer.compare.timed import TimedRow

SCHEMA = 1


def to_json(comparison: Comparison) -> str:
    """Indented, keys in a stable order."""
    return msgspec.json.format(msgspec.json.encode(plain(comparison)), indent=2).decode() + "\n"


def plain(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values."""
    lying = comparison.overlap
    return {
        "schema": SCHEMA,
        "headlines": list(headlines(comparison)),
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "configuration": [
            {"what": part.what, "base": part.base or None, "head": part.head or None} for part in comparison.differences
        ],
        "exact": [_exact(row) for row in comparison.exact],
        "timed": [_timed(row) for row in comparison.timed],
        "balances": [_balance(part) for part in comparison.balances],
        "overlap": {
            "basis": lying.basis,
            "base": dict(zip(("span_ns", "union_ns", "sum_ns"), lying.base_ns, strict=True)),
            "head": dict(zip(("span_ns", "union_ns", "sum_ns"), lying.head_ns, strict=True)),
            "kernels_ns": lying.kernels_ns,
            "overlap_ns": lying.overlap_ns,
            "idle_ns": lying.idle_ns,
        },
        "findings": {"new": list(comparison.new), "gone": list(comparison.gone)},
        "notes": list(comparison.notes),
    }


def number(value: Value) -> int | float | str:
    """An exact value: whole where it is, else a fraction's nearest float; a word as it is."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def _side(side: Side) -> dict[str, Any]:
    return {"runs": list(side.labels), "steps": list(side.steps)}


def _exact(row: ExactRow) -> dict[str, Any]:
    values = {word: [number(value) for value in side] for word, side in (("base", row.base), ("head", row.head))}
    return {"name": row.name, **values, "state": row.state.value}


def _timed(row: TimedRow) -> dict[str, Any]:
    return {
        "section": row.section,
        "name": row.name,
        "base_ns": [round(value) for value in row.base_ns],
        "head_ns": [round(value) for value in row.head_ns],
        "ratio": _rounded(row.ratio),
        "interval": None if row.interval is None else [_rounded(bound) for bound in row.interval],
        "p": _rounded(row.p),
        "visible": _rounded(row.visible),
        "differs": row.differs,
        "small": row.small,
    }


def _balance(balance: Waterfall) -> dict[str, Any]:
    return {"title": balance.title, "whole": _part(balance.whole), "parts": [_part(part) for part in balance.parts]}


def _part(part: WaterfallPart) -> dict[str, Any]:
    times = {"base_ns": part.base_ns, "head_ns": part.head_ns, "difference_ns": part.difference_ns}
    return {"name": part.name, **times}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
