"""The optional `gate` and `ignore` tables: by how much a metric may change, and which losses are accepted, with why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from analyzer.compare.significance import LEAST_CHANGE
from analyzer.errors import UsageError

_toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
DEFAULT = "default"
FAIL_ON_NEW = "fail-on-new"
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What the gate is told.

    Attributes:
        least: metric → share by which it must change to be called; None: reported, not gated.
        default: of metrics that are not named.
        fail_on_new: severity from which a new finding fails the gate, "" for none.
        ignored: rule code or metric → the reason why its loss is accepted.
    """

    least: dict[str, float | None] = field(default_factory=dict)
    default: float = LEAST_CHANGE
    fail_on_new: str = ""
    ignored: dict[str, str] = field(default_factory=dict)

    def least_change(self, metric: str) -> float:
        """Share by which this metric must change to be called."""
        stated = self.least.get(metric)
        return self.default if stated is None else stated


def read_settings(text: str, source: str) -> GateSettings:
    """Settings of `shardscope.toml` (tables `gate`, `ignore`) or `pyproject.toml` (the same under `tool.shardscope`).

    Raises:
        UsageError: no TOML, or an entry that is not of the form; names the entry.
    """
    try:
        whole = _toml.loads(text)
    except ValueError as error:
        raise UsageError(f"{source}: no TOML ({error})") from error
    tables = whole.get("tool", {}).get("shardscope", {}) if source.endswith("pyproject.toml") else whole
    gate = dict(_flat(_table(tables, "gate", source)))
    default, severity = gate.pop(DEFAULT, LEAST_CHANGE), gate.pop(FAIL_ON_NEW, "")
    if severity and severity not in SEVERITIES:
        raise UsageError(f"{source}: {FAIL_ON_NEW} = {severity!r} is none of {', '.join(SEVERITIES)}")
    return GateSettings(
        least={name: _least(name, value, source) for name, value in gate.items()},
        default=_least(DEFAULT, default, source) or LEAST_CHANGE,
        fail_on_new=severity,
        ignored=dict(_reasons(_flat(_table(tables, "ignore", source)), source)),
    )


def _table(tables: dict[str, Any], name: str, source: str) -> dict[str, Any]:
    entries = tables.get(name, {})
    if not isinstance(entries, dict):
        raise UsageError(f"{source}: {name} is no table; write [{name}] above its entries")
    return entries


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Entries by full name: `decode.step = 0.05` and `"decode.step" = 0.05` are one thing."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _least(name: str, value: object, source: str) -> float | None:
    if value is False and name != DEFAULT:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(
            f"{source}: {name} = {value!r}; write the share by which it must change, 0.05 for 5 %"
            f"{'' if name == DEFAULT else ', or false to report it only'}"
        )
    return float(value)


def _reasons(entries: Iterator[tuple[str, Any]], source: str) -> Iterator[tuple[str, str]]:
    for name, reason in entries:
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(f'{source}: ignore {name} needs a reason: {name} = "two-node decode, accepted in #41"')
        yield name, reason.strip()
