"""Words and figures that every form of a gate's result uses alike."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from analyzer.compare.comparison import signed
from analyzer.gate.history import Trend
from analyzer.gate.metrics import GateVerdict, MetricResult
from analyzer.gate.verdict import Result
from analyzer.units import count, duration, size

NOTHING = "–"


def headline(result: Result) -> str:
    """The verdict, and what it rests on, in one line."""
    runs = f"{count(len(result.head_runs), 'run')} against {len(result.base_runs)}"
    if result.verdict is GateVerdict.REGRESSION:
        return f"regression in {', '.join(result.losses)} ({runs})"
    if result.verdict is GateVerdict.NOT_COMPARABLE:
        return f"not comparable with the baseline ({runs})"
    named = [row.metric for row in result.rows if row.verdict is result.verdict]
    if result.verdict is GateVerdict.PASS:
        return f"pass: {count(len(named), 'metric')} ({runs})"
    return f"{result.verdict.value}: {', '.join(named)} ({runs})"


def value(row: MetricResult, side: Sequence[float | str]) -> str:
    """Median of times; one value or the range of an exact quantity."""
    numbers = [figure for figure in side if not isinstance(figure, str)]
    if not side:
        return NOTHING
    if row.is_time:
        return duration(median(numbers))
    shown = [figure if isinstance(figure, str) else _amount(row.metric, figure) for figure in side]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _amount(metric: str, number: float) -> str:
    if metric.startswith(("bytes.", "moved.")):
        return size(number)
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


def change(row: MetricResult) -> str:
    """The ratio as percent; "" where there is none."""
    return "" if row.ratio is None else signed(row.ratio - 1)


def interval(row: MetricResult) -> str:
    """Of the change; "" where there is none."""
    return "" if row.interval is None else " to ".join(signed(bound - 1) for bound in row.interval)


def why(row: MetricResult) -> str:
    """The row's sentence, with the reason why its loss is accepted."""
    return f"accepted: {row.accepted} ({row.why})" if row.accepted else row.why


def courses(result: Result) -> list[str]:
    """A sentence for each metric that jumped or drifts."""
    return [sentence for trend in result.courses if (sentence := _course(trend))]


def _course(trend: Trend) -> str:
    parts = []
    if trend.jump is not None:
        parts.append(f"jumped by {signed(trend.jump[1] - 1)} at {trend.jump[0]}")
    if trend.drift is not None:
        since = " since" if trend.jump else ""
        parts.append(f"drifts by {signed(trend.drift - 1)} a gate{since}")
    return f"{trend.metric} {' and '.join(parts)}, over {count(trend.gates, 'gate')}" if parts else ""
