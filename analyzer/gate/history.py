"""Past gates, one JSON line each: how much runs scatter here, where a metric drifts, and where it jumped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from analyzer.compare.significance import HINT_CHANGE, LEAST_SPREAD
from analyzer.errors import TraceFormatError
from analyzer.stats.arrays import Floats
from analyzer.stats.tests import student_tail, theil_sen

FEWEST_FREEDOM = 6
"""Degrees of freedom from which past runs tell how much runs scatter: three gates of three runs."""
FEWEST_TREND = 6
"""Gates from which a drift is looked for."""
FEWEST_BESIDE = 3
"""Gates on each side of a jump."""
JUMP_LEVEL = 0.01
"""Error of a jump, over all places at which it could be."""
_TREND_LEVEL = 0.99


@dataclass(frozen=True, slots=True)
class Entry:
    """One gate.

    Attributes:
        schema: 1.
        time: ISO 8601, UTC.
        label: commit or build, "" where not given.
        verdict: of the gate.
        values_ns: metric → one value a run.
    """

    schema: int
    time: str
    label: str
    verdict: str
    values_ns: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Trend:
    """Where one metric went over past gates.

    Attributes:
        metric: its name.
        gates: that have it.
        jump: (label or time of the gate at which it jumped, ratio after over before); None where it did not.
        drift: ratio from one gate to the next since the last jump; None where there is none to be seen.
    """

    metric: str
    gates: int
    jump: tuple[str, float] | None
    drift: float | None


def to_line(entry: Entry) -> str:
    """A line of the file."""
    return msgspec.json.encode(entry).decode() + "\n"


def read_history(text: str, source: str) -> tuple[Entry, ...]:
    """Entries, oldest first.

    Raises:
        TraceFormatError: a line that is no entry; names it.
    """
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entries.append(msgspec.json.decode(line, type=Entry))
        except msgspec.DecodeError as error:
            raise TraceFormatError(f"{source}, line {number}: no entry of a gate ({error}); delete the line") from error
    return tuple(entries)


def spread(entries: Sequence[Entry], metric: str) -> float | None:
    """Standard deviation of a run's value around its gate, as a share; None where past gates are too few to tell."""
    squares, freedom = 0.0, 0
    for logs in _logs(entries, metric):
        squares += float(((logs - logs.mean()) ** 2).sum())
        freedom += logs.size - 1
    return math.sqrt(squares / freedom) if freedom >= FEWEST_FREEDOM else None


def trend(entries: Sequence[Entry], metric: str) -> Trend:
    """Jump and drift of the mean over runs.

    The jump is at the place where Student's t between the gates before and after is largest, if that is beyond 1 % over
    all places and the sides differ by 3 %. The drift is the slope of Theil and Sen since then, if its 99 % interval
    excludes none and it adds up to 3 %.
    """
    gates = [entry for entry in entries if _positive(entry, metric)]
    means = np.array([logs.mean() for logs in _logs(gates, metric)])
    jump_index = _jump(means)
    since = means[jump_index:]
    jump = None
    if jump_index:
        ratio = math.exp(float(since.mean() - means[:jump_index].mean()))
        jump = (gates[jump_index].label or gates[jump_index].time, ratio)
    return Trend(metric, len(gates), jump, _drift(since))


def _positive(entry: Entry, metric: str) -> bool:
    values = entry.values_ns.get(metric, [])
    return bool(values) and min(values) > 0


def _logs(entries: Sequence[Entry], metric: str) -> list[Floats]:
    return [np.log(np.array(entry.values_ns[metric])) for entry in entries if _positive(entry, metric)]


def _jump(means: Floats) -> int:
    """Place of the first value after a jump, 0 for none."""
    splits = range(FEWEST_BESIDE, means.size - FEWEST_BESIDE + 1)
    if not splits:
        return 0
    apart = [abs(float(means[split:].mean() - means[:split].mean())) for split in splits]
    strengths = [_strength(means, split) for split in splits]
    best = max(range(len(strengths)), key=lambda index: strengths[index])
    p = 2 * float(student_tail(strengths[best], means.size - 2)) * len(strengths)
    return splits[best] if p <= JUMP_LEVEL and apart[best] >= math.log1p(HINT_CHANGE) else 0


def _strength(means: Floats, split: int) -> float:
    """Student's t between two parts, the spread at least that of the mean of three runs."""
    before, after = means[:split], means[split:]
    squares = float(((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum())
    scatter = max(math.sqrt(squares / (means.size - 2)), LEAST_SPREAD / math.sqrt(3))
    return abs(float(after.mean() - before.mean())) / (scatter * math.sqrt(1 / before.size + 1 / after.size))


def _drift(means: Floats) -> float | None:
    if means.size < FEWEST_TREND:
        return None
    slope, low, high = theil_sen(means, _TREND_LEVEL)
    if low <= 0 <= high or abs(slope) * (means.size - 1) < math.log1p(HINT_CHANGE):
        return None
    return math.exp(float(slope))
