"""Where a difference went: parts whose differences sum to the difference of the whole, in integer nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from analyzer.compare.exact import counts_of
from analyzer.compare.timed import CAUSES, TERMS
from analyzer.schema.breakdown import RankBreakdown, StepKind
from analyzer.schema.report import Report

REST = "rest"
"""Of a step: what the medians of its terms lack to the median of the whole. Medians do not add up."""


@dataclass(frozen=True, slots=True)
class WaterfallPart:
    """One time on both sides, nanoseconds."""

    name: str
    base_ns: int
    head_ns: int

    @property
    def difference_ns(self) -> int:
        """Head minus base."""
        return self.head_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A whole and its parts; on each side the parts sum to the whole exactly.

    Attributes:
        title: what the whole is.
        whole: of the run in the middle of each side, or of the two there, mean over ranks.
        parts: none is left out.
    """

    title: str
    whole: WaterfallPart
    parts: tuple[WaterfallPart, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How a window's kernels lie: work that is spread over streams hides behind other work.

    Attributes:
        base_ns: span, union and sum of a rank's device work, mean over ranks.
        head_ns: the same.
        basis: "activities" where the sum is over all durations, "terms" where it is over the busy time of each term,
            so that two kernels of one term that overlap count once.
    """

    base_ns: tuple[int, int, int]
    head_ns: tuple[int, int, int]
    basis: str

    @property
    def span_ns(self) -> int:
        """Difference of the windows: `kernels_ns` + `overlap_ns` + `idle_ns`."""
        return self.head_ns[0] - self.base_ns[0]

    @property
    def kernels_ns(self) -> int:
        """Difference of the work itself."""
        return self.head_ns[2] - self.base_ns[2]

    @property
    def overlap_ns(self) -> int:
        """Time by which the head hides less; below 0 where it hides more."""
        return (self.base_ns[2] - self.base_ns[1]) - (self.head_ns[2] - self.head_ns[1])

    @property
    def idle_ns(self) -> int:
        """Difference of the time in which the device does nothing."""
        return self.span_ns - (self.head_ns[1] - self.base_ns[1])

    @property
    def decides(self) -> str:
        """The largest of the three: `kernels`, `overlap` or `idle`."""
        parts = {"kernels": self.kernels_ns, "overlap": self.overlap_ns, "idle": self.idle_ns}
        return max(parts, key=lambda name: abs(parts[name]))


def window_balance(base: Sequence[Report], head: Sequence[Report]) -> Waterfall:
    """The windows by term."""
    return _balance("window", (base, head), TERMS, _terms)


def class_balance(base: Sequence[Report], head: Sequence[Report]) -> Waterfall:
    """The windows by class of kernel and cause of waiting."""
    words: dict[str, int] = {}
    for report in (*base, *head):
        for row in report.breakdown.per_rank:
            for word, time_ns in row.subclasses.items():
                words[word] = words.get(word, 0) + time_ns
    classes = sorted(words, key=lambda word: (-words[word], word))
    names = (*classes, *(f"sync: {cause}" for cause in CAUSES), REST)
    return _balance("window by class", (base, head), names, lambda row: _classes(row, classes))


def phase_balance(base: Sequence[StepKind], head: Sequence[StepKind], *, with_period: bool) -> Waterfall:
    """Steps of one kind by term. The whole is the time from start to start, or the span on the device."""
    names = (*TERMS, REST, *(("between steps",) if with_period else ()))
    sides = []
    for rows in (base, head):
        wholes = [(row.period_ns or 0) if with_period else row.median_ns for row in rows]
        middle = [rows[index] for index in _middle(wholes)]
        sides.append(_mean([_phase(row, with_period=with_period) for row in middle]))
    parts = tuple(WaterfallPart(name, *times) for name, *times in zip(names, *sides, strict=True))
    title = f"{base[0].kind} step"
    return Waterfall(title, WaterfallPart(title, sum(sides[0]), sum(sides[1])), parts)


def overlap(base: Sequence[Report], head: Sequence[Report]) -> Overlap:
    """Span, union and sum of both sides."""
    summed = all(counts_of(report) is not None for report in (*base, *head))
    sides = [_spans([reports[index] for index in _middle_runs(reports)], summed=summed) for reports in (base, head)]
    return Overlap(sides[0], sides[1], "activities" if summed else "terms")


def _balance(
    title: str,
    sides: tuple[Sequence[Report], Sequence[Report]],
    names: Sequence[str],
    parts_of: Callable[[RankBreakdown], list[int]],
) -> Waterfall:
    columns = []
    for reports in sides:
        rows = [row for index in _middle_runs(reports) for row in reports[index].breakdown.per_rank]
        columns.append(_mean([parts_of(row) for row in rows]))
    parts = tuple(WaterfallPart(name, *times) for name, *times in zip(names, *columns, strict=True))
    whole = WaterfallPart(title, sum(columns[0]), sum(columns[1]))
    return Waterfall(title, whole, tuple(part for part in parts if part.base_ns or part.head_ns or part.name in TERMS))


def _terms(row: RankBreakdown) -> list[int]:
    return list(row.by_term.values())


def _classes(row: RankBreakdown, classes: list[str]) -> list[int]:
    parts = [row.subclasses.get(word, 0) for word in classes]
    parts += row.sync_causes.by_cause.values()
    return [*parts, row.window_ns - sum(parts)]


def _phase(row: StepKind, *, with_period: bool) -> list[int]:
    terms = [row.terms.get(term, 0) for term in TERMS]
    parts = [*terms, row.median_ns - sum(terms)]
    return [*parts, (row.period_ns or 0) - row.median_ns] if with_period else parts


def _spans(reports: Sequence[Report], *, summed: bool) -> tuple[int, int, int]:
    spans = []
    for report in reports:
        counts = counts_of(report)
        rank_rows = report.breakdown.per_rank
        for row in rank_rows:
            in_terms = row.device_busy_ns + row.hidden.communication_ns + row.hidden.movement_ns
            all_ns = counts.activity_sum_ns if summed and counts is not None else in_terms
            spans.append((row.window_ns, row.device_busy_ns, all_ns))
    span, union, all_ns = (sum(column) // len(spans) for column in zip(*spans, strict=True))
    return span, union, all_ns


def _middle_runs(reports: Sequence[Report]) -> tuple[int, ...]:
    means = [sum(row.window_ns for row in report.breakdown.per_rank) for report in reports]
    return _middle([mean // len(report.breakdown.per_rank) for mean, report in zip(means, reports, strict=True)])


def _middle(values: Sequence[int]) -> tuple[int, ...]:
    """Places of the median: one, or the two around it."""
    order = sorted(range(len(values)), key=lambda index: (values[index], index))
    half = len(values) // 2
    return (order[half],) if len(values) % 2 else (order[half - 1], order[half])


def _mean(rows: Sequence[Sequence[int]]) -> list[int]:
    """Mean of each part over rows, rounded so that the parts sum to the mean of the wholes, rounded down."""
    totals = [sum(column) for column in zip(*rows, strict=True)]
    edges = [total // len(rows) for total in accumulate(totals, initial=0)]
    return [after - before for before, after in pairwise(edges)]
