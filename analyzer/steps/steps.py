"""Engine iterations of every rank: which there are, what each ran on the device, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.stats.arrays import Integers
from analyzer.steps.annotations import by_annotations, step_annotations, working_annotations
from analyzer.steps.graphs import by_graphs, by_period
from analyzer.steps.launches import launch_rows
from analyzer.steps.names import Phase, StepName, read_step_name
from analyzer.steps.rank_steps import RankSteps, StepSource, measured, none_found

__all__ = [
    "Phase",
    "RankSteps",
    "StepName",
    "StepSource",
    "StepSummary",
    "read_step_name",
    "reused_tokens",
    "step_annotations",
    "step_summary",
    "steps",
    "working_annotations",
]


@dataclass(frozen=True, slots=True)
class StepSummary:
    """Steps of one phase over all ranks.

    Attributes:
        kind: prefill, decode, mixed, draft, verify, idle, capture or unknown.
        source: how they were found.
        count: steps of the rank that has most, those left out among them.
        left_out: why steps are not in the statistics below, with how many over all ranks. Where all of a phase would be
            left out (idle steps, captures), none is.
        median_ns: first to last activity of the median step over all ranks (the lower one of two in the middle); of a
            host without an accelerator, its annotation.
        p90_ns: the same, 90th percentile.
        period_ns: median time from the start of a step to the start of the next; None where no step has a next.
        median_tokens: scheduled in a step, None where not stated.
        median_requests: in a step, None where not stated.
        speculative: steps that verify drafts, over all ranks.
        terms: time of each term within that step; they sum to `median_ns`.
    """

    kind: str
    source: str
    count: int
    left_out: dict[str, int]
    median_ns: int
    p90_ns: int
    period_ns: int | None
    median_tokens: int | None
    median_requests: int | None
    speculative: int
    terms: dict[str, int]


@once
def steps(run: Run) -> tuple[RankSteps, ...]:
    """Steps of each rank in order: by annotations, else by graph launches, else by what the device repeats."""
    return tuple(_steps(trace) for trace in run.traces)


def step_summary(run: Run, terms: Sequence[Mapping[str, Intervals]] = ()) -> tuple[StepSummary, ...]:
    """Steps by phase, most frequent first.

    Args:
        run: whose steps.
        terms: for each rank in order, the instants of each term; none for no terms.
    """
    rank_steps = steps(run)
    kinds = Counter(phase for rank in rank_steps for phase in rank.phase.tolist())
    return tuple(_summary(kind, rank_steps, terms) for kind, _ in kinds.most_common())


def reused_tokens(run: Run) -> tuple[int, int] | None:
    """KV tokens that prefill found in the cache, and tokens that it computed, on the rank that computed most.

    Earlier chunks of a prompt that is prefilled in chunks count as found. None where no step states both.
    """
    sums = []
    for rank in steps(run):
        stated = (rank.reused_tokens != ABSENT) & (rank.prefill_tokens > 0)
        if np.any(stated):
            sums.append((int(rank.prefill_tokens[stated].sum()), int(rank.reused_tokens[stated].sum())))
    if not sums:
        return None
    computed, reused = max(sums)
    return reused, computed


def _steps(trace: Trace) -> RankSteps:
    launches = launch_rows(trace)
    missing = []
    for way in (by_annotations, by_graphs, by_period):
        cut = way(trace, launches)
        if not isinstance(cut, str):
            return measured(trace, cut, launches)
        missing.append(cut)
    return none_found(trace, "; ".join(missing))


def _summary(kind: str, rank_steps: Sequence[RankSteps], terms: Sequence[Mapping[str, Intervals]]) -> StepSummary:
    rows = [np.flatnonzero(rank.phase.where(lambda word: word == kind)) for rank in rank_steps]
    left_out = Counter(
        word
        for rank, rank_rows in zip(rank_steps, rows, strict=True)
        for word in rank.left_out.take(rank_rows).tolist()
    )
    steady = [rank_rows[rank.is_steady[rank_rows]] for rank, rank_rows in zip(rank_steps, rows, strict=True)]
    if not left_out.pop("", 0):
        steady, left_out = rows, Counter()
    pooled = _Pool(tuple(rank_steps), tuple(steady))
    span_ns = pooled.of([rank.span_ns for rank in rank_steps])
    middle = middle_row(span_ns)
    period_ns = _stated(pooled.of([rank.period_ns for rank in rank_steps]))
    sources = Counter(rank.source.value for rank, rank_rows in zip(rank_steps, rows, strict=True) if rank_rows.size)
    return StepSummary(
        kind=kind,
        source=sources.most_common(1)[0][0],
        count=max(rank_rows.size for rank_rows in rows),
        left_out=dict(left_out),
        median_ns=int(span_ns[middle]),
        p90_ns=int(np.percentile(span_ns, 90)),
        period_ns=_median(period_ns),
        median_tokens=_median(_stated(pooled.of([rank.tokens for rank in rank_steps]))),
        median_requests=_median(_stated(pooled.of([rank.requests for rank in rank_steps]))),
        speculative=sum(
            int(np.count_nonzero(rank.is_speculative[rank_rows]))
            for rank, rank_rows in zip(rank_steps, steady, strict=True)
        ),
        terms=_terms(pooled, terms, middle),
    )


def middle_row(span_ns: Integers) -> int:
    """The row of the median span: the lower one of two in the middle, the earliest of equal ones."""
    return int(np.argsort(span_ns, kind="stable")[(span_ns.size - 1) // 2])


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Chosen steps of each rank."""

    ranks: tuple[RankSteps, ...]
    rows: tuple[Integers, ...]

    def of(self, columns: Sequence[Integers]) -> Integers:
        """A column of all ranks, one after another."""
        return np.concatenate([column[rank_rows] for column, rank_rows in zip(columns, self.rows, strict=True)])


def _terms(pooled: _Pool, terms: Sequence[Mapping[str, Intervals]], middle: int) -> dict[str, int]:
    """Time in each term of the step in this row of the pool; what lies outside the window of its rank is idle."""
    if not terms:
        return {}
    names = dict.fromkeys(name for rank in terms for name in rank)
    within = {
        name: int(
            pooled.of(
                [rank.time_within(rank_terms[name]) for rank, rank_terms in zip(pooled.ranks, terms, strict=True)]
            )[middle]
        )
        for name in names
    }
    span_ns = int(pooled.of([rank.span_ns for rank in pooled.ranks])[middle])
    busy = {name: time_ns for name, time_ns in within.items() if name != Kind.SYNC.label}
    return {**within, Kind.SYNC.label: span_ns - sum(busy.values())}


def _stated(values: Integers) -> Integers:
    stated: Integers = values[values != ABSENT]
    return stated


def _median(values: Integers) -> int | None:
    return int(np.median(values)) if values.size else None
