"""Pipeline stages of a run: what each does in a step, which is slowest, and what of the rest is bubble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.pipeline import Pipeline, pipeline
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.stats.arrays import Floats, Integers, Mask
from analyzer.steps.rank_steps import RankSteps
from analyzer.steps.steps import steps
from analyzer.units import duration, share

HANDED_OVER = ("send_recv", "send", "recv", "barrier", "comm_setup")
"""Communication that a stage waits in for another; the rest (a stage's own all-reduces) is its work."""
NO_WORK = ("idle", "capture")


@dataclass(frozen=True, slots=True)
class Stages:
    """One row of stages in one kind of step.

    Attributes:
        ranks: in order of stages.
        kind: of step.
        steps: that each stage shows.
        account: cycle, balance and speed-up from the stages' times of work.
        period_ns: median time from the start of a step to the start of the next, of the slowest stage.
        bubble_share: of that period, in which the slowest stage does not work: filling, draining, hand-over, host.
        imbalance_share: of that period, in which the mean stage waits for the slowest.
    """

    ranks: tuple[int, ...]
    kind: str
    steps: int
    account: Pipeline
    period_ns: int
    bubble_share: float
    imbalance_share: float

    @property
    def sentence(self) -> str:
        """The larger loss first; 'not the bubble' where it is the smaller one."""
        account = self.account
        slow = (
            f"rank {self.ranks[account.slowest]} works {duration(account.cycle_ns)} a {self.kind} step, "
            f"the mean stage {duration(account.balance * account.cycle_ns)}"
        )
        bubble, slower = share(self.bubble_share), share(self.imbalance_share)
        head = f"{len(self.ranks)} stages, balance {share(account.balance)}"
        if self.imbalance_share > self.bubble_share:
            return f"{head}: not the bubble ({bubble}) but the slowest stage ({slower}): {slow}"
        return f"{head}: the slowest stage itself rests for {bubble} of a step, imbalance takes {slower}: {slow}"


@once
def stages(run: Run) -> tuple[Stages, ...]:
    """Every row of stages whose ranks are all here, by kind of step; none without pipeline parallelism."""
    index_of = {trace.rank: trace_index for trace_index, trace in enumerate(run.traces)}
    rows = []
    for group in _groups(run):
        if all(rank in index_of for rank in group):
            members = [index_of[rank] for rank in group]
            rows += _rows(run, group, members)
    return tuple(rows)


def _groups(run: Run) -> tuple[tuple[int, ...], ...]:
    degree = run.layout.sizes.get("pp", 1)
    if degree == 1:
        return ()
    return run.layout.groups.get("pp") or ((run.ranks,) if len(run.ranks) == degree else ())


def _rows(run: Run, group: tuple[int, ...], members: list[int]) -> list[Stages]:
    by_rank = [
        (run.traces[trace_index], breakdown(run)[trace_index], steps(run)[trace_index]) for trace_index in members
    ]
    kinds = [kind for kind in dict.fromkeys(by_rank[0][2].phase.tolist()) if kind not in NO_WORK]
    rows = []
    for kind in kinds:
        chosen = [_chosen(rank_steps, kind) for _, _, rank_steps in by_rank]
        if all(kind_steps.size for kind_steps in chosen):
            rows.append(_row(group, kind, by_rank, chosen))
    return [row for row in rows if row is not None]


def _chosen(rank_steps: RankSteps, kind: str) -> Integers:
    """Steady steps of a kind, all of them where none is steady."""
    is_kind = rank_steps.phase.where(lambda word: word == kind)
    rows = np.flatnonzero(is_kind & rank_steps.is_steady)
    return rows if rows.size else np.flatnonzero(is_kind)


def _row(
    group: tuple[int, ...], kind: str, by_rank: list[tuple[Trace, Breakdown, RankSteps]], chosen: list[Integers]
) -> Stages | None:
    work_ns = [float(np.median(_work_ns(*rank)[rows])) for rank, rows in zip(by_rank, chosen, strict=True)]
    if min(work_ns) <= 0:
        return None
    account = pipeline(tuple(work_ns))
    slowest = by_rank[account.slowest][2]
    period = slowest.period_ns[chosen[account.slowest]]
    stated = period[period != ABSENT]
    period_ns = int(np.median(stated)) if stated.size else int(account.cycle_ns)
    whole_ns = max(period_ns, account.cycle_ns)
    return Stages(
        ranks=group,
        kind=kind,
        steps=min(rows.size for rows in chosen),
        account=account,
        period_ns=period_ns,
        bubble_share=1 - account.cycle_ns / whole_ns,
        imbalance_share=(1 - account.balance) * account.cycle_ns / whole_ns,
    )


def _work_ns(trace: Trace, rank_split: Breakdown, rank_steps: RankSteps) -> Floats:
    """float64[n]: time of each step in which the stage works, hand-overs left out."""
    hands_over: Mask = trace.activities.subclass.where(lambda word: word in HANDED_OVER)
    rows = np.flatnonzero((rank_steps.step_of != ABSENT) & ~hands_over)
    sums = np.bincount(rank_steps.step_of[rows], weights=rank_split.owned_ns[rows], minlength=len(rank_steps))
    return np.asarray(sums, np.float64)
