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
    places = {trace.rank: at for at, trace in enumerate(run.traces)}
    found = []
    for group in _groups(run):
        if all(rank in places for rank in group):
            members = [places[rank] for rank in group]
            found += _rows(run, group, members)
    return tuple(found)


def _groups(run: Run) -> tuple[tuple[int, ...], ...]:
    degree = run.layout.sizes.get("pp", 1)
    if degree == 1:
        return ()
    return run.layout.groups.get("pp") or ((run.ranks,) if len(run.ranks) == degree else ())


def _rows(run: Run, group: tuple[int, ...], members: list[int]) -> list[Stages]:
    own = [(run.traces[at], breakdown(run)[at], steps(run)[at]) for at in members]
    kinds = [kind for kind in dict.fromkeys(own[0][2].phase.tolist()) if kind not in NO_WORK]
    rows = []
    for kind in kinds:
        chosen = [_chosen(found, kind) for _, _, found in own]
        if all(part.size for part in chosen):
            rows.append(_row(group, kind, own, chosen))
    return [row for row in rows if row is not None]


def _chosen(found: RankSteps, kind: str) -> Integers:
    """Steady steps of a kind, all of them where none is steady."""
    is_kind = found.phase.where(lambda word: word == kind)
    rows = np.flatnonzero(is_kind & found.is_steady)
    return rows if rows.size else np.flatnonzero(is_kind)


def _row(
    group: tuple[int, ...], kind: str, own: list[tuple[Trace, Breakdown, RankSteps]], chosen: list[Integers]
) -> Stages | None:
    work_ns = [float(np.median(_work_ns(*part)[rows])) for part, rows in zip(own, chosen, strict=True)]
    if min(work_ns) <= 0:
        return None
    account = pipeline(tuple(work_ns))
    slowest = own[account.slowest][2]
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


def _work_ns(trace: Trace, part: Breakdown, found: RankSteps) -> Floats:
    """float64[n]: time of each step in which the stage works, hand-overs left out."""
    hands_over: Mask = trace.activities.subclass.where(lambda word: word in HANDED_OVER)
    rows = np.flatnonzero((found.step_of != ABSENT) & ~hands_over)
    sums = np.bincount(found.step_of[rows], weights=part.owned_ns[rows], minlength=len(found))
    return np.asarray(sums, np.float64)
