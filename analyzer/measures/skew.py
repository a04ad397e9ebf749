"""Who waits for whom: the last rank of every collective, how often and by how much, and what it did before it came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from analyzer.errors import MissingEvidenceError
from analyzer.intervals import Nanoseconds
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.clock import clock
from analyzer.measures.traffic import Traffic
from analyzer.measures.waits import GroupWaits, RealTable, Verdict, waits
from analyzer.model.events import ABSENT, Mask
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.once import once

PERSISTENT = 0.5
"""Share of calls in which one rank is last, beyond which its lateness is its own and not chance."""
SURE = 0.01
"""Chance, at most, that a rank is last so often though all are alike."""
DOING = ("compute", "movement", "launch", "blocked")
"""What a rank can do between two collectives: compute, copy, wait for its host to launch or to be unblocked."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waiting of the calls of one kind within one group, mean over its ranks."""

    ranks: tuple[int, ...]
    wait_ns: int
    transfer_ns: int
    verdict: Verdict
    reason: str


def group_waiting(run: Run, row: Traffic) -> Waiting | None:
    """Waiting of a row of traffic: its kind in the group of its ranks, or in the one group that has the kind."""
    try:
        groups = waits(run).groups
    except MissingEvidenceError:
        return None
    having = [part for part in groups if row.kind in part.group.kinds]
    chosen = [part for part in having if part.group.ranks == row.group] if row.group else having
    if len(chosen) != 1:
        return None
    (part,) = chosen
    rows = np.array([kind == row.kind for kind in part.group.kind], np.bool_)
    wait_ns, length_ns = int(part.wait_ns[rows].sum()), int(part.duration_ns[rows].sum())
    n = len(part.group.ranks)
    return Waiting(part.group.ranks, wait_ns // n, (length_ns - wait_ns) // n, part.verdict, part.reason)


@dataclass(frozen=True, slots=True)
class LateRank:
    """The rank that a group most often waits for.

    Attributes:
        ranks: of the group.
        rank: last most often.
        calls: collectives whose last rank is told.
        last_share: share of them in which it is last; chance would be one over the number of ranks.
        is_persistent: more than half, and more than chance can explain.
        caused_ns: waiting of the other ranks while it was last.
        median_late_ns: how much later than the rank before it, median over the calls in which it is last.
        does: what it did longer than the others between collectives, mean ns a call, largest first.
        correlation: of how late a rank comes with how long it did the first of these; nan where either is constant.
    """

    ranks: tuple[int, ...]
    rank: int
    calls: int
    last_share: float
    is_persistent: bool
    caused_ns: int
    median_late_ns: int
    does: tuple[tuple[str, int], ...]
    correlation: float


@once
def late_ranks(run: Run) -> tuple[LateRank, ...]:
    """One for each group with a common clock, most waiting first.

    Raises:
        MissingEvidenceError: waiting cannot be told, or no group shares a clock.
    """
    common = clock(run)
    told = [part for part in waits(run).groups if all(common.is_common(at) for at in part.group.traces)]
    if not told:
        raise MissingEvidenceError("no group shares a clock", "record all ranks of a group in the same steps")
    found = [_late(run, part) for part in told if len(part.group)]
    return tuple(sorted(found, key=lambda late: -late.caused_ns))


def wait_matrix(run: Run) -> Nanoseconds:
    """int64[n, n] over `run.traces`: what the rank of the row waited while that of the column was last.

    Raises:
        MissingEvidenceError: waiting cannot be told.
    """
    matrix: Nanoseconds = np.zeros((len(run.traces), len(run.traces)), np.int64)
    for part in waits(run).groups:
        last = _last(part.start_ns)
        for place, at in enumerate(part.group.traces):
            for other, late in enumerate(part.group.traces):
                matrix[at, late] += part.wait_ns[last == other, place].sum()
    return matrix


def _last(start_ns: RealTable) -> Nanoseconds:
    """int64[k]: place of the last arrival of each collective."""
    arrived = np.where(np.isnan(start_ns), -np.inf, start_ns)
    place: Nanoseconds = np.argmax(arrived, axis=1).astype(np.int64)
    return place


def _late(run: Run, part: GroupWaits) -> LateRank:
    last = _last(part.start_ns)
    several = (part.group.row != ABSENT).sum(axis=1) > 1
    counts = np.bincount(last[several], minlength=len(part.group.traces))
    place, calls = int(np.argmax(counts)), int(several.sum())
    mine = several & (last == place)
    ordered = np.sort(np.where(np.isnan(part.start_ns), -np.inf, part.start_ns), axis=1)
    margin = ordered[mine, -1] - ordered[mine, -2]
    likely = binomtest(int(counts[place]), calls, 1 / len(part.group.traces), "greater").pvalue if calls else 1.0
    does, correlation = _doing(run, part, place, several)
    return LateRank(
        ranks=part.group.ranks,
        rank=part.group.ranks[place],
        calls=calls,
        last_share=float(counts[place] / max(calls, 1)),
        is_persistent=bool(counts[place] > PERSISTENT * calls and likely < SURE),
        caused_ns=int(part.wait_ns[mine].sum()),
        median_late_ns=int(np.median(margin)) if margin.size else 0,
        does=does,
        correlation=correlation,
    )


def _doing(run: Run, part: GroupWaits, place: int, several: Mask) -> tuple[tuple[tuple[str, int], ...], float]:
    """What the late rank did longer than the others since the collective before, and how lateness goes with it."""
    whole = np.flatnonzero(several & (part.group.row != ABSENT).all(axis=1))
    if whole.size < 2:  # noqa: PLR2004 (one call has none before it)
        return (), float("nan")
    parts = breakdown(run)
    spent: dict[str, list[Nanoseconds]] = {word: [] for word in DOING}
    for column, at in enumerate(part.group.traces):
        activities, rows = run.traces[at].activities, part.group.row[whole, column]
        begin = np.minimum(activities.end_ns[rows][:-1], activities.start_ns[rows][1:])
        for word, times in _between(parts[at], begin, activities.start_ns[rows][1:]).items():
            spent[word].append(times)
    table = {word: np.stack(columns, axis=1) for word, columns in spent.items()}
    others = [column for column in range(len(part.group.traces)) if column != place]
    excess = {word: int(np.mean(times[:, place]) - np.mean(times[:, others])) for word, times in table.items()}
    ranked = tuple(sorted(((word, ns) for word, ns in excess.items() if ns > 0), key=lambda pair: -pair[1]))
    if not ranked:
        return (), float("nan")
    arrivals = part.start_ns[whole][1:]
    late = arrivals - arrivals.mean(axis=1, keepdims=True)
    longer = table[ranked[0][0]] - table[ranked[0][0]].mean(axis=1, keepdims=True)
    if not late.std() or not longer.std():
        return ranked, float("nan")
    return ranked, float(np.corrcoef(late.ravel(), longer.ravel())[0, 1])


def _between(part: Breakdown, begin: Nanoseconds, end: Nanoseconds) -> dict[str, Nanoseconds]:
    """Time of each sort of doing within each span."""
    return {
        "compute": part.term(Kind.COMPUTE).within(begin, end),
        "movement": part.term(Kind.MOVEMENT).within(begin, end),
        "launch": part.causes[Cause.HOST_LAUNCH].within(begin, end),
        "blocked": part.causes[Cause.HOST_SYNC].within(begin, end),
    }
