"""Who waits for whom: the last rank of every collective, how often and by how much, and what it did before it came.

A rank may come late because it was kept by an earlier collective of another group. What it inherits is told from what
it does itself: lateness is its own as far as it arises since the collective before, of whatever group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.matching.clock import clock
from analyzer.measures.arrival import Approach, Reason, approach, reasons
from analyzer.measures.traffic import Traffic
from analyzer.measures.waits import GroupWaits, WaitVerdict, judge, waits
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.stats.arrays import Floats, Integers, Mask
from analyzer.stats.tests import binomial_tail, wilson_interval

PERSISTENT = 0.5
"""Share of the calls whose last rank is told, and of the group's waiting, beyond which a rank's lateness is no chance."""  # noqa: E501

OWN = 0.5
"""Share of what a rank causes beyond which its lateness is its own."""

SURE = 0.01
"""Chance, at most, that any rank of any group is last so often though all are alike: each of them is asked
(Bonferroni), so that of a hundred healthy runs, however large, one names a rank."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waiting of the calls of one kind within one group, mean over its ranks."""

    ranks: tuple[int, ...]
    wait_ns: int
    transfer_ns: int
    verdict: WaitVerdict
    reason: str


def group_waiting(run: Run, row: Traffic) -> Waiting | None:
    """Waiting of a row of traffic: its kind in the group of its ranks, or in the one group that has the kind."""
    try:
        groups = waits(run).groups
    except MissingEvidenceError:
        return None
    having = [group_waits for group_waits in groups if row.kind in group_waits.group.kinds]
    chosen = [group_waits for group_waits in having if group_waits.group.ranks == row.group] if row.group else having
    if len(chosen) != 1:
        return None
    (group_waits,) = chosen
    rows = np.array([kind == row.kind for kind in group_waits.group.kind], np.bool_)
    wait_ns, length_ns = int(group_waits.wait_ns[rows].sum()), int(group_waits.duration_ns[rows].sum())
    verdict, reason = group_waits.verdict, group_waits.reason
    if verdict is not WaitVerdict.INCONCLUSIVE and not group_waits.is_lower_bound:
        verdict, reason = judge(wait_ns, length_ns)
    n = len(group_waits.group.ranks)
    return Waiting(group_waits.group.ranks, wait_ns // n, (length_ns - wait_ns) // n, verdict, reason)


@dataclass(frozen=True, slots=True)
class LateRank:
    """The rank of a group whose own lateness costs the others most.

    Attributes:
        ranks: of the group.
        rank: the late one.
        calls: collectives whose last rank is told: the next one came earlier by more than the clock's error.
        all_calls: collectives of two ranks or more.
        last_share: share of `calls` in which it is last.
        interval: of that share, 95 % (Wilson).
        chance: share of calls in which any rank would be last if all were alike.
        p_value: chance of being last so often if all were alike (binomial, one-sided); 1 where no call is told.
        is_persistent: last in more than half of `calls`, which chance cannot explain though every rank of the run was
            asked, and cause of more than half of the group's waiting. Else lateness is random, or too small to tell.
        is_own: more than half of what it causes is its own doing, not inherited, and it is last as persistently in
            the calls in which lateness arose since the collective before.
        caused_ns: waiting of the other ranks while it was last.
        own_ns: the part of it that arose since the collective before, of whatever group; the rest is inherited.
        median_late_ns: how much later than the rank before it, median over the calls in which it is last.
        p90_late_ns: the same, 90th percentile.
        reasons: what it did longer than the others, largest first.
    """

    ranks: tuple[int, ...]
    rank: int
    calls: int
    all_calls: int
    last_share: float
    interval: tuple[float, float]
    chance: float
    p_value: float
    is_persistent: bool
    is_own: bool
    caused_ns: int
    own_ns: int
    median_late_ns: int
    p90_late_ns: int
    reasons: tuple[Reason, ...]

    @property
    def does(self) -> tuple[tuple[str, int], ...]:
        """What it did longer than the others, by sort, mean ns a call, largest first."""
        return tuple((reason.doing, reason.excess_ns) for reason in self.reasons if reason.name == "")

    @property
    def correlation(self) -> float:
        """Of how late a rank comes with how long it did the first of these; NaN where there is none."""
        return next((reason.correlation for reason in self.reasons if reason.name == ""), float("nan"))


@once
def late_ranks(run: Run) -> tuple[LateRank, ...]:
    """One for each group with a common clock, most waiting by own lateness first.

    Raises:
        MissingEvidenceError: waiting cannot be told, or no group shares a clock.
    """
    common = clock(run)
    clocked = [group_waits for group_waits in waits(run).groups if common.is_common(*group_waits.group.traces)]
    if not clocked:
        raise MissingEvidenceError("no group shares a clock", "record all ranks of a group in the same steps")
    asked = sum(len(group_waits.group.traces) for group_waits in clocked)
    return tuple(sorted((_late(run, group_waits, asked) for group_waits in clocked), key=lambda late: -late.own_ns))


def late_rank(run: Run) -> LateRank | None:
    """The persistent late rank whose own lateness costs the run most; None where none is late by itself.

    Raises:
        MissingEvidenceError: as `late_ranks`.
    """
    return next((late for late in late_ranks(run) if late.is_persistent and late.is_own), None)


def wait_matrix(run: Run) -> Integers:
    """int64[n, n] over `run.traces`: what the rank of the row waited while that of the column was last.

    Raises:
        MissingEvidenceError: waiting cannot be told.
    """
    common = clock(run)
    matrix: Integers = np.zeros((len(run.traces), len(run.traces)), np.int64)
    for group_waits in waits(run).groups:
        if not common.is_common(*group_waits.group.traces):
            continue
        last = np.array(group_waits.group.traces)[_last(group_waits.start_ns)]
        for column, trace_index in enumerate(group_waits.group.traces):
            np.add.at(matrix[trace_index], last, group_waits.wait_ns[:, column])
    return matrix


def _last(start_ns: Floats) -> Integers:
    """int64[k]: column of the last arrival of each collective."""
    arrived = np.where(np.isnan(start_ns), -np.inf, start_ns)
    column: Integers = np.argmax(arrived, axis=1).astype(np.int64)
    return column


def _late(run: Run, group_waits: GroupWaits, asked: int) -> LateRank:
    last, size = _last(group_waits.start_ns), len(group_waits.group.traces)
    ordered = np.sort(np.where(np.isnan(group_waits.start_ns), -np.inf, group_waits.start_ns), axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    is_clear = margin > group_waits.error_ns
    way = approach(run, group_waits)
    caused = group_waits.wait_ns.sum(axis=1)
    own_share = _own_share(group_waits.start_ns, way, last)
    own_wait, arose = caused * own_share, is_clear & (own_share > OWN)
    cost = np.bincount(last[is_clear], own_wait[is_clear], size)
    times = np.bincount(last[is_clear], minlength=size)
    column = int(np.lexsort((times, cost))[-1])
    mine = is_clear & (last == column)
    p_value = _chance(mine, is_clear, size)
    return LateRank(
        ranks=group_waits.group.ranks,
        rank=group_waits.group.ranks[column],
        calls=int(is_clear.sum()),
        all_calls=len(is_clear),
        last_share=float(times[column] / max(int(is_clear.sum()), 1)),
        interval=_interval(int(times[column]), int(is_clear.sum())),
        chance=1 / size,
        p_value=p_value,
        is_persistent=bool(
            p_value * asked < SURE
            and times[column] > PERSISTENT * is_clear.sum()
            and caused[mine].sum() > PERSISTENT * caused.sum()
        ),
        is_own=bool(
            own_wait[mine].sum() > OWN * caused[mine].sum() and _chance(mine & arose, arose, size) * asked < SURE
        ),
        caused_ns=int(caused[mine].sum()),
        own_ns=int(own_wait[mine].sum()),
        median_late_ns=int(np.median(margin[mine])) if mine.any() else 0,
        p90_late_ns=int(np.percentile(margin[mine], 90)) if mine.any() else 0,
        reasons=reasons(run, group_waits, way, (column, mine)),
    )


def _chance(mine: Mask, calls: Mask, size: int) -> float:
    """Of being last so often in these calls if all ranks of so many were alike; 1 where there are none."""
    if not calls.any():
        return 1.0
    return binomial_tail(int(mine.sum()), int(calls.sum()), size)


def _interval(times: int, calls: int) -> tuple[float, float]:
    if calls == 0:
        return 0.0, 1.0
    return wilson_interval(times, calls)


def _own_share(start_ns: Floats, way: Approach, last: Integers) -> Floats:
    """float64[k]: of how late the last rank comes, against the middle of the others, the part since it began."""
    rows = np.arange(len(last))
    others: Mask = np.ones(start_ns.shape, np.bool_)
    others[rows, last] = False
    late = start_ns[rows, last] - np.nanmedian(np.where(others, start_ns, np.nan), axis=1)
    inherited = way.begun_ns[rows, last] - np.nanmedian(np.where(others, way.begun_ns, np.nan), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        arisen = np.where(late > 0, (late - inherited) / late, 0.0)
    return np.clip(arisen, 0, 1)
