"""Times of one run by name, and whether those of a head differ from those of a base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from analyzer.compare.exact import NO_WORK, collectives, step_count
from analyzer.compare.significance import ASSUMED_SPREAD, MANY, run_difference
from analyzer.schema.breakdown import RankBreakdown, StepKind
from analyzer.schema.report import Report
from analyzer.stats.tests import benjamini_hochberg, mann_whitney

TERMS = ("compute", "communication", "movement", "sync")
CAUSES = ("peer_wait", "host_sync", "host_launch", "stream_wait", "queue", "unrecorded", "unknown")

FALSE_SHARE = 0.10
"""Share of the rows called different that may be so by chance (Benjamini and Hochberg)."""
SMALL_NS = 50_000
"""Of a step: a smaller difference is not worth a reader's time."""
SMALL_SHARE = 0.01
"""Of the step or window: the same."""

STEP = "step"
WINDOW = "window"
KERNELS = "kernels"
COLLECTIVES = "collectives"


@dataclass(frozen=True, slots=True)
class TimeShare:
    """A time in one run.

    Attributes:
        value_ns: above or equal to 0.
        whole_ns: of the step or window that it is a part of.
        times: how often it happens in that whole.
    """

    value_ns: float
    whole_ns: float
    times: float = 1.0


Name = tuple[str, str]
"""Section and name: ("decode", "step"), ("kernels", "gemm"), ("collectives", "tp.all_reduce")."""


@dataclass(frozen=True, slots=True)
class TimedRow:
    """A time on both sides.

    Attributes:
        section: a kind of step, `window`, `kernels` or `collectives`.
        name: of the time within it.
        base_ns: one value a run.
        head_ns: the same.
        ratio: head over base, of geometric means over runs; None where a side has none, or a value is 0.
        interval: of the ratio, 95 %; None with it.
        p: two-sided; None with it.
        visible: the smallest rise that would have been seen with 80 % probability, as a share of the base.
        differs: the runs can tell the sides apart, and the difference is not too small to matter.
        small: they can tell them apart, but the difference is.
    """

    section: str
    name: str
    base_ns: tuple[float, ...]
    head_ns: tuple[float, ...]
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    visible: float | None = None
    differs: bool = False
    small: bool = False

    @property
    def base_median_ns(self) -> float | None:
        """None where no run has it."""
        return median(self.base_ns) if self.base_ns else None

    @property
    def head_median_ns(self) -> float | None:
        """None where no run has it."""
        return median(self.head_ns) if self.head_ns else None

    @property
    def difference_ns(self) -> float | None:
        """Head minus base, of medians over runs; None where a side has none."""
        return median(self.head_ns) - median(self.base_ns) if self.base_ns and self.head_ns else None


def timed_rows(
    base: Sequence[dict[Name, TimeShare]], head: Sequence[dict[Name, TimeShare]], *, judged: bool = True
) -> tuple[TimedRow, ...]:
    """One row a name; those that all runs have, above 0, are judged together.

    Args:
        base: readings of each run.
        head: the same.
        judged: False to list without a verdict.
    """
    names = dict.fromkeys(name for run in (*base, *head) for name in run)
    plain = [(name, _values(name, base), _values(name, head)) for name in names]
    whole = [
        name for name, first, second in plain if _is_testable(first, len(base)) and _is_testable(second, len(head))
    ]
    verdicts = _verdicts(whole, base, head) if judged and whole else {}
    return tuple(
        verdicts.get(name, TimedRow(*name, first, second)) for name, first, second in plain if any((*first, *second))
    )


def _values(name: Name, runs: Sequence[dict[Name, TimeShare]]) -> tuple[float, ...]:
    return tuple(run[name].value_ns for run in runs if name in run)


def _is_testable(values: tuple[float, ...], runs: int) -> bool:
    return len(values) == runs and min(values) > 0


def _verdicts(
    names: list[Name], base: Sequence[dict[Name, TimeShare]], head: Sequence[dict[Name, TimeShare]]
) -> dict[Name, TimedRow]:
    first = np.array([_values(name, base) for name in names])
    second = np.array([_values(name, head) for name in names])
    difference = run_difference(first, second)
    p = difference.p
    if min(len(base), len(head)) >= MANY:
        p = np.array([mann_whitney(a, b) for a, b in zip(first, second, strict=True)])
    is_apart = benjamini_hochberg(p) <= FALSE_SHARE
    low, high = difference.interval
    visible = difference.visible(np.zeros(len(names)))
    # one or two runs do not show how much a part scatters: it must then change by as much as a whole step may
    share = SMALL_SHARE if difference.is_proof else ASSUMED_SPREAD
    rows = {}
    for index, name in enumerate(names):
        row = TimedRow(
            *name,
            tuple(first[index].tolist()),
            tuple(second[index].tolist()),
            float(difference.ratio[index]),
            (float(low[index]), float(high[index])),
            float(p[index]),
            float(visible[index]),
        )
        least_ns = smallest_ns([run[name] for run in (*base, *head)], share)
        matters = abs(row.difference_ns or 0.0) >= least_ns
        rows[name] = replace(
            row, differs=bool(is_apart[index]) and matters, small=bool(is_apart[index]) and not matters
        )
    return rows


def smallest_ns(readings: Sequence[TimeShare], share: float = SMALL_SHARE) -> float:
    """The least difference that matters: 50 µs or a share of the step, over all the times it happens in it."""
    whole = fmean(reading.whole_ns for reading in readings)
    times = max(1.0, fmean(reading.times for reading in readings))
    return max(SMALL_NS, share * whole) / times


def readings(report: Report, kinds_with_period: frozenset[str]) -> dict[Name, TimeShare]:
    """Every time of one run. Those of the window are per step, mean over ranks.

    Args:
        report: of the run.
        kinds_with_period: kinds of step whose time is that from start to start; of the others it is the device span.
    """
    return dict(_all(report, kinds_with_period))


def periods(reports: Sequence[Report]) -> frozenset[str]:
    """Kinds of step for which all reports that have them state the time from start to start."""
    rows = [row for report in reports for row in report.breakdown.steps]
    return frozenset(row.kind for row in rows) - frozenset(row.kind for row in rows if row.period_ns is None)


def _all(report: Report, kinds_with_period: frozenset[str]) -> Iterator[tuple[Name, TimeShare]]:
    for step in report.breakdown.steps:
        if step.kind not in NO_WORK:
            yield from phase(step, with_period=step.kind in kinds_with_period)
    ranks = report.breakdown.per_rank
    steps = step_count(report) or 1
    yield from _window(ranks, steps)
    yield from _kernels(ranks, steps)
    yield from _collectives(report, steps, fmean(row.window_ns for row in ranks) / steps)


def phase(step: StepKind, *, with_period: bool) -> Iterator[tuple[Name, TimeShare]]:
    """Times of one kind of step: the step, its 90th percentile, its terms, and what lies between two."""
    whole = float(step.period_ns) if with_period and step.period_ns is not None else float(step.median_ns)
    yield (step.kind, STEP), TimeShare(whole, whole)
    yield (step.kind, "p90 span"), TimeShare(float(step.p90_ns), whole)
    for term in TERMS:
        yield (step.kind, term), TimeShare(float(step.terms.get(term, 0)), whole)
    yield (step.kind, "between steps"), TimeShare(max(0.0, whole - step.median_ns), whole)


def _window(ranks: list[RankBreakdown], steps: int) -> Iterator[tuple[Name, TimeShare]]:
    window = fmean(row.window_ns for row in ranks) / steps
    yield (WINDOW, WINDOW), TimeShare(window, window)
    for term in TERMS:
        yield (WINDOW, term), TimeShare(fmean(row.by_term[term] for row in ranks) / steps, window)
    for cause in CAUSES:
        time_ns = fmean(row.sync_causes.by_cause[cause] for row in ranks) / steps
        yield (WINDOW, f"sync: {cause}"), TimeShare(time_ns, window)


def _kernels(ranks: list[RankBreakdown], steps: int) -> Iterator[tuple[Name, TimeShare]]:
    window = fmean(row.window_ns for row in ranks) / steps
    totals: dict[str, int] = {}
    for row in ranks:
        for word, time_ns in row.subclasses.items():
            totals[word] = totals.get(word, 0) + time_ns
    for word, time_ns in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        yield (KERNELS, word), TimeShare(time_ns / len(ranks) / steps, window)


def _collectives(report: Report, steps: int, window_ns: float) -> Iterator[tuple[Name, TimeShare]]:
    """A call of each, of its slowest group."""
    for name, rows in collectives(report).items():
        times = max(row.count for row in rows) / steps
        slowest = max(rows, key=lambda row: row.median_ns)
        yield (COLLECTIVES, name), TimeShare(float(slowest.median_ns), window_ns, times)
        if slowest.wait_ns is not None and slowest.transfer_ns is not None and slowest.count:
            yield (COLLECTIVES, f"{name} waiting"), TimeShare(slowest.wait_ns / slowest.count, window_ns, times)
            yield (COLLECTIVES, f"{name} transfer"), TimeShare(slowest.transfer_ns / slowest.count, window_ns, times)
