"""Two saved pages of Prometheus metrics, before and after a load: by how much each counter grew."""

from __future__ import annotations

import math
import re
from pathlib import Path

from analyzer.errors import TraceFormatError

BEFORE, AFTER = "metrics_before.prom", "metrics_after.prom"

_TYPE = re.compile(r"# TYPE (?P<family>\S+) (?P<type>\w+)")
_SAMPLE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?P<labels>\{.*\})?\s+(?P<value>\S+)")
_COUNTS = frozenset({"counter", "histogram", "summary"})
_LEFT_OUT = ("_bucket", "_created")
_OF_THE_PROCESS = ("process_", "python_", "http_")


def growth(before: Path, after: Path) -> dict[str, float]:
    """By how much each series of counters, histograms (sum and count) and summaries has grown, by `name{labels}`.

    Series that did not move are left out. A counter that fell was reset, which happens when the server restarts: its
    value after is the growth. Pages of several servers may stand one after another in a file: what has the same name is
    summed.

    Raises:
        TraceFormatError: a line that is not of Prometheus' text format.
    """
    old, grown = _counters(before), {}
    for series, value in _counters(after).items():
        earlier = old.get(series, 0.0)
        grown[series] = value - earlier if value >= earlier else value
    return {series: value for series, value in sorted(grown.items()) if value}


def _counters(path: Path) -> dict[str, float]:
    family, is_count = "", False
    counters: dict[str, float] = {}
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if declared := _TYPE.match(line):
            family, is_count = declared["family"], declared["type"] in _COUNTS
            continue
        if not line.strip() or line.startswith("#"):
            continue
        sample = _SAMPLE.match(line)
        value = _number(sample["value"]) if sample else None
        if sample is None or value is None:
            raise TraceFormatError(f"{path}: line {number} is no sample of Prometheus' text format: {line[:60]!r}")
        name = sample["name"]
        if is_count and name.startswith(family) and not name.endswith(_LEFT_OUT) and math.isfinite(value):
            series = name + (sample["labels"] or "")
            counters[series] = counters.get(series, 0.0) + value
    return {series: value for series, value in counters.items() if not series.startswith(_OF_THE_PROCESS)}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
