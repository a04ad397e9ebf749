"""Load of expert-parallel ranks in a run: by split sizes, else by counts of the engine, else by the experts' time."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from analyzer.measures.breakdown import breakdown
from analyzer.measures.experts.balance import NEGLIGIBLE, ImbalanceCause, RankLoad, imbalance, load, ranks_of
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Floats, Integers
from analyzer.steps.steps import steps
from analyzer.units import duration

EXPERTS = "moe_gemm"
EXCHANGES = ("dispatch", "combine", "all_to_all")


@dataclass(frozen=True, slots=True)
class ExpertLoad:
    """How evenly the experts of one group of ranks are loaded.

    Attributes:
        ranks: of the group.
        source: what was counted, in words.
        basis: measured for counts and times, derived where counts of the whole window stand for its steps.
        load: imbalance and its cause.
        lost_ns: of the experts' time in a step, by which the fullest rank exceeds the mean; None where no kernel of the
            experts is told from others.
        exchange_ns: exclusive time of dispatch and combine in a step, mean over ranks.
    """

    ranks: tuple[int, ...]
    source: str
    basis: Basis
    load: RankLoad
    lost_ns: int | None
    exchange_ns: int

    @property
    def sentence(self) -> str:
        """Imbalance, why, and what it costs."""
        rank_load = self.load
        why = {
            ImbalanceCause.BALANCED: "balanced",
            ImbalanceCause.NOISE: "chance, which no placement removes",
            ImbalanceCause.SKEW: "skew, which lasts over steps",
        }[rank_load.cause]
        cost = "" if self.lost_ns is None else f"; balanced experts would save at most {duration(self.lost_ns)} a step"
        return (
            f"the fullest of {len(self.ranks)} ranks has {rank_load.imbalance:.2f} times the mean load of experts, "
            f"by {self.source}: {why}{cost}; dispatch and combine take {duration(self.exchange_ns)}"
        )


@once
def expert_loads(run: Run) -> tuple[ExpertLoad, ...]:
    """One for each expert-parallel group whose ranks are all here; none without expert parallelism."""
    index_of = {trace.rank: trace_index for trace_index, trace in enumerate(run.traces)}
    degree = run.layout.sizes.get("ep", 1)
    groups = run.layout.groups.get("ep") or ((run.ranks,) if len(run.ranks) == degree else ())
    if degree == 1:
        return ()
    group_loads = [
        _load(run, [index_of[rank] for rank in group]) for group in groups if all(rank in index_of for rank in group)
    ]
    return tuple(group_load for group_load in group_loads if group_load is not None)


def _load(run: Run, members: list[int]) -> ExpertLoad | None:
    time_ns = _per_step(run, members, Kind.COMPUTE, (EXPERTS,))
    exchange_ns = _per_step(run, members, Kind.COMMUNICATION, EXCHANGES)
    lost = _lost(time_ns)
    ranks = tuple(run.traces[trace_index].rank for trace_index in members)
    cost = int(exchange_ns.mean()) if exchange_ns.size else 0
    received = _received(run, members)
    if received is not None:
        return ExpertLoad(ranks, "split sizes of dispatch", Basis.MEASURED, load(received), lost, cost)
    counts = np.array(run.workload.expert_tokens, np.int64)
    if counts.sum() and counts.size % len(members) == 0:
        rank_load = load(ranks_of(counts.reshape(1, 1, -1), len(members)))
        return ExpertLoad(ranks, "tokens an expert over the whole recording", Basis.DERIVED, rank_load, lost, cost)
    if lost is None:
        return None
    return ExpertLoad(ranks, "time of the experts' products", Basis.MEASURED, _of_times(time_ns), lost, cost)


def _per_step(run: Run, members: list[int], kind: Kind, words: tuple[str, ...]) -> Floats:
    """float64[steps, ranks]: exclusive time of some subclasses in each steady step; in the window if there is none."""
    columns = []
    for trace_index in members:
        work, owned, rank_steps = (
            run.traces[trace_index].activities,
            breakdown(run)[trace_index].owned_ns,
            steps(run)[trace_index],
        )
        rows = np.flatnonzero((work.kind == kind) & work.subclass.where(lambda word: word in words))
        steady = np.flatnonzero(rank_steps.is_steady)
        if not steady.size:
            columns.append(np.array([float(owned[rows].sum())]))
            continue
        inside = rows[rank_steps.step_of[rows] != ABSENT]
        sums = np.bincount(rank_steps.step_of[inside], weights=owned[inside], minlength=len(rank_steps))
        columns.append(np.asarray(sums, np.float64)[steady])
    shortest = min(column.size for column in columns)
    return np.stack([column[:shortest] for column in columns], axis=1)


def _lost(time_ns: Floats) -> int | None:
    if not time_ns.sum():
        return None
    return int(np.mean(time_ns.max(axis=1) - time_ns.mean(axis=1)))


def _of_times(time_ns: Floats) -> RankLoad:
    """Imbalance of times: what lasts over steps is skew, what does not is chance."""
    whole = np.rint(time_ns).astype(np.int64)
    now, lasting = imbalance(whole), imbalance(whole.sum(axis=0))
    cause = (
        ImbalanceCause.BALANCED
        if now < NEGLIGIBLE
        else ImbalanceCause.SKEW
        if lasting >= NEGLIGIBLE
        else ImbalanceCause.NOISE
    )
    return RankLoad(now, lasting, 1.0, cause)


def _received(run: Run, members: list[int]) -> Integers | None:
    """int64[1, calls, ranks]: rows that each rank gets in each dispatch; None where split sizes are not recorded.

    The way back takes the sizes of the way there the other way round, and is left out.
    """
    columns = []
    for trace_index in members:
        records = run.traces[trace_index].collectives
        is_uneven = records.operation.where(lambda word: word == "all_to_all") & records.splits.where(bool)
        sizes = [_sizes(text) for text in records.splits.take(np.flatnonzero(is_uneven)).tolist()]
        there: list[int] = []
        before: tuple[list[int], list[int]] | None = None
        for sent, got in sizes:
            if before is not None and (sent, got) == (before[1], before[0]):
                before = None
                continue
            there.append(sum(got))
            before = (sent, got)
        columns.append(there)
    if not min(map(len, columns)) or len(set(map(len, columns))) > 1:
        return None
    counts = np.array(columns, np.int64).T
    return counts[None] if counts.sum() else None


def _sizes(text: str) -> tuple[list[int], list[int]]:
    sent, _, got = text.partition(";")
    return json.loads(sent), json.loads(got)
