"""Waiting told from transfer: in every collective, the time before its last participant arrived.

Two methods. By arrival: wait = latest start over the ranks, on one clock, minus own start, no longer than the call
itself. By shortest: wait = own duration minus the shortest over the ranks, which needs no clock. Both are made; arrival
counts where the clock's error is small against the wait, and their agreement is stated.

Not every call waits for all ranks. Where a rank has left before another came (the send phase of a split dispatch, a
broadcast's root, a buffered send), arrivals say nothing of waiting, and the call is judged by shortest duration.
Kernels that set an exchange up (`comm_setup`) are barriers and are treated as the exchange. A kernel that also
computes (fused) counts its arithmetic as transfer. Where a rank's trace or call is missing, waiting is a lower bound:
it may have come later still.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.matching.clock import Clock, clock
from analyzer.matching.collectives import Group, match
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.stats.arrays import Floats, Integers, Mask
from analyzer.units import count, duration, share


class WaitVerdict(str, Enum):
    """What the time of a group's collectives is."""

    TRANSFER = "transfer"
    SKEW = "skew"
    MIXED = "mixed"
    INCONCLUSIVE = "inconclusive"


MOSTLY = 0.5
HARDLY = 0.2
"""Shares of waiting in a group's time from which it is called skew, and below which transfer. Public cases of arrival
skew show 50 to 80 %."""

AGREE = 0.2
"""Of the larger: two methods that differ by more, and by more than the clock error a call, do not agree."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupWaits:
    """Waiting within one group: k collectives over p ranks.

    Attributes:
        group: whose collectives.
        start_ns: float64[k, p], arrivals on one clock; NaN where missing.
        wait_ns: int64[k, p], 0 where missing.
        duration_ns: int64[k, p], 0 where missing.
        by_arrival_ns, by_shortest_ns: total waiting by each method; arrival None where the clock is not common.
        is_by_arrival: whether `wait_ns` is by arrival; else by shortest duration.
        is_lower_bound: a rank of the group is not in the run.
        error_ns: of one call's wait by arrival.
        agrees: the two methods do, within the clock's error; None where there is but one.
        verdict: of all kinds of the group together, with `reason`.
    """

    group: Group
    start_ns: Floats
    wait_ns: Integers
    duration_ns: Integers
    by_arrival_ns: int | None
    by_shortest_ns: int
    is_by_arrival: bool
    is_lower_bound: bool
    error_ns: int
    agrees: bool | None
    verdict: WaitVerdict
    reason: str

    @property
    def share(self) -> float:
        """Waiting as a share of the time in these collectives."""
        return float(self.wait_ns.sum() / max(int(self.duration_ns.sum()), 1))


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Waiting of a run.

    Attributes:
        wait_ns: for each trace int64[n] over its activities, 0 for what is no collective; it is at the call's start.
        groups: with most calls first.
        method: in words, with the clock and its error.
    """

    wait_ns: tuple[Integers, ...]
    groups: tuple[GroupWaits, ...]
    method: str


@once
def waits(run: Run) -> Waits:
    """Waiting inside every matched collective. Linear in calls.

    Raises:
        MissingEvidenceError: one rank alone, or no collective that two ranks share.
    """
    if len(run.traces) == 1:
        raise MissingEvidenceError(
            "one rank's trace alone cannot tell waiting from transfer", "record all ranks of the group"
        )
    common = clock(run)
    groups = tuple(_group(run, common, group) for group in match(run).groups if len(group))
    columns = tuple(np.zeros(len(trace.activities), np.int64) for trace in run.traces)
    for group_waits in groups:
        for column, trace_index in enumerate(group_waits.group.traces):
            has = group_waits.group.row[:, column] != ABSENT
            columns[trace_index][group_waits.group.row[has, column]] = group_waits.wait_ns[has, column]
    return Waits(columns, groups, _method(run, common, groups))


def is_told(run: Run, *kinds: str) -> bool:
    """Whether waiting is told from transfer in every group with collectives of these kinds, without a contradiction."""
    try:
        groups = [group_waits for group_waits in waits(run).groups if set(kinds) & set(group_waits.group.kinds)]
    except MissingEvidenceError:
        return False
    return bool(groups) and all(group_waits.verdict is not WaitVerdict.INCONCLUSIVE for group_waits in groups)


def wait_columns(run: Run) -> tuple[Integers, ...]:
    """Waiting of every activity, aligned with each trace's activities; zeros where it cannot be told from transfer."""
    try:
        return waits(run).wait_ns
    except MissingEvidenceError:
        return tuple(np.zeros(len(trace.activities), np.int64) for trace in run.traces)


def _group(run: Run, common: Clock, group: Group) -> GroupWaits:
    present = group.row != ABSENT
    start, length = _columns(run, common, group, present)
    shortest = np.where(present, length, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    by_shortest = np.where(present, length - shortest, 0)
    by_arrival = _by_arrival(start, length, common.error_ns, by_shortest) if common.is_common(*group.traces) else None
    is_by_arrival = by_arrival is not None and _clock_allows(common, by_arrival, by_shortest, present)
    used = by_arrival if by_arrival is not None and is_by_arrival else by_shortest
    totals = (None if by_arrival is None else int(by_arrival.sum()), int(by_shortest.sum()))
    agrees = _agree(totals, common.error_ns * int(present.sum()))
    verdict, reason = _verdict(group, used, length, totals, agrees)
    if agrees is False:
        reason += _ends_apart(start + length, common.error_ns)
    return GroupWaits(
        group=group,
        start_ns=start,
        wait_ns=used,
        duration_ns=length,
        by_arrival_ns=totals[0],
        by_shortest_ns=totals[1],
        is_by_arrival=is_by_arrival,
        is_lower_bound=bool(group.absent),
        error_ns=common.error_ns,
        agrees=agrees,
        verdict=verdict,
        reason=reason,
    )


def _columns(run: Run, common: Clock, group: Group, present: Mask) -> tuple[Floats, Integers]:
    """float64[k, p] starts on one clock, NaN where missing; int64[k, p] durations, 0 where missing."""
    start, length = np.full(present.shape, np.nan), np.zeros(present.shape, np.int64)
    for column, trace_index in enumerate(group.traces):
        has = present[:, column]
        activities, rows = run.traces[trace_index].activities, group.row[has, column]
        start[has, column] = common.to_reference(trace_index, activities.start_ns[rows])
        length[has, column] = activities.duration_ns[rows]
    return start, length


def _by_arrival(start: Floats, length: Integers, error_ns: int, by_shortest: Integers) -> Integers:
    """int64[k, p]: latest start less own start, within the call; of calls that a rank left early, by shortest."""
    latest = np.nanmax(start, axis=1, keepdims=True)
    early = np.where(np.isnan(start), 0.0, latest - start)
    waiting = np.clip(np.rint(early), 0, length).astype(np.int64)
    left_early = np.nanmin(start + length, axis=1, keepdims=True) < latest - error_ns
    chosen: Integers = np.where(left_early, by_shortest, waiting)
    return chosen


def _clock_allows(common: Clock, by_arrival: Integers, by_shortest: Integers, present: Mask) -> bool:
    """Whether the clock's error is small against a call's wait by either method."""
    calls = max(int(np.count_nonzero(present)), 1)
    return common.error_ns <= max(int(by_arrival.sum()), int(by_shortest.sum())) / calls


def _agree(totals: tuple[int | None, int], error_ns: int) -> bool | None:
    by_arrival, by_shortest = totals
    if by_arrival is None:
        return None
    return abs(by_arrival - by_shortest) <= max(error_ns, AGREE * max(by_arrival, by_shortest))


def _ends_apart(end: Floats, error_ns: int) -> str:
    """Why two methods may not agree: ranks that leave a collective apart waited for other ranks, or for other data."""
    apart_ns = int(np.median(np.nanmax(end, axis=1) - np.nanmin(end, axis=1)))
    if apart_ns <= error_ns:
        return ""
    return (
        f"; ranks leave a call {duration(apart_ns)} apart (median), the clock's error is {duration(error_ns)}: not all "
        "of them wait for the last one alone"
    )


def judge(waiting_ns: int, duration_ns: int) -> tuple[WaitVerdict, str]:
    """What so much waiting in so much time is called."""
    waiting = waiting_ns / max(duration_ns, 1)
    if waiting >= MOSTLY:
        return WaitVerdict.SKEW, f"{share(waiting)} of its time is waiting for the last rank"
    if waiting < HARDLY:
        return WaitVerdict.TRANSFER, f"{share(1 - waiting)} of its time is transfer"
    return WaitVerdict.MIXED, f"{share(waiting)} of its time is waiting"


def _verdict(
    group: Group,
    used: Integers,
    length: Integers,
    totals: tuple[int | None, int],
    agrees: bool | None,  # noqa: FBT001 (None: there is nothing to agree)
) -> tuple[WaitVerdict, str]:
    verdict, reason = judge(int(used.sum()), int(length.sum()))
    if agrees is False and totals[0] is not None:
        by_arrival, by_shortest = totals
        return (
            WaitVerdict.INCONCLUSIVE,
            f"arrival says {duration(by_arrival or 0)}, shortest duration {duration(by_shortest)}: they do not agree",
        )
    if group.absent:
        lacking = f"{count(len(group.absent), 'rank')} of {group.size} without a trace: waiting is a lower bound"
        return (
            (verdict, f"{reason} at least; {lacking}")
            if verdict is WaitVerdict.SKEW
            else (WaitVerdict.INCONCLUSIVE, lacking)
        )
    return verdict, reason


def _method(run: Run, common: Clock, groups: tuple[GroupWaits, ...]) -> str:
    matching = match(run)
    ways = {group_waits.is_by_arrival for group_waits in groups}
    way = "by both methods" if len(ways) > 1 else "by arrival" if True in ways else "by shortest duration"
    disagree = sum(group_waits.agrees is False for group_waits in groups)
    check = f"; the two methods do not agree in {count(disagree, 'group')}" if disagree else ""
    return (
        f"{share(matching.share)} of collective calls matched ({matching.method}); waiting {way}{check}; "
        f"{common.method}, error {duration(common.error_ns)}"
    )
