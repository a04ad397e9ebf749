"""Ends of collectives as anchors between clocks: which kinds serve, and the fits they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.matching.clock_fit import ClockFit, fit, spread
from analyzer.matching.collectives import Group
from analyzer.matching.table import JOINT
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.stats.arrays import Floats, Mask

LEAVE_TOGETHER = frozenset({"dispatch", "combine", "collective", "comm_setup", "send_recv"})
"""Kinds that ranks mostly leave together; a broadcast's root or a buffered sender may leave at once."""

ENOUGH = 8
"""Anchors from which their scatter is told from their place."""

COVERED = 2.0
"""Standard deviations that an error covers: 19 of 20."""

LOOSER = 3.0
"""A kind whose ends scatter so many times more than those of the tightest kind of its group is no anchor."""


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Collectives of one group that serve as anchors.

    Attributes:
        traces: positions in `run.traces` of the p ranks.
        end_ns: float64[k, p], since each trace's own base; NaN where a rank has no such call. In order of time.
        shortest_ns: float64[k], the shortest duration over the ranks.
        rank: how good they are; the least is best.
    """

    traces: tuple[int, ...]
    end_ns: Floats
    shortest_ns: Floats
    rank: int


def anchors(run: Run, groups: tuple[Group, ...], base_ns: tuple[int, ...]) -> list[Anchors]:
    """The best anchors of every group with two ranks or more, best and most of them first."""
    anchor_sets = [_anchors(run, group, base_ns) for group in groups if len(group.traces) > 1 and len(group)]
    return sorted(anchor_sets, key=lambda anchor_set: (anchor_set.rank, -len(anchor_set.end_ns)))


def _anchors(run: Run, group: Group, base_ns: tuple[int, ...]) -> Anchors:
    joint = np.array([kind in JOINT for kind in group.kind], np.bool_)
    mostly = joint | np.array([kind in LEAVE_TOGETHER for kind in group.kind], np.bool_)
    end = np.full(group.row.shape, np.nan)
    length = np.full(group.row.shape, np.nan)
    for column, trace_index in enumerate(group.traces):
        has = group.row[:, column] != ABSENT
        activities, rows = run.traces[trace_index].activities, group.row[has, column]
        end[has, column] = activities.end_ns[rows] - base_ns[trace_index]
        length[has, column] = activities.duration_ns[rows]
    # A few joint collectives among many others scatter too little to say how good they are.
    rank, chosen = next(
        (rank, mask)
        for rank, mask in enumerate((joint, mostly, np.ones(len(group), np.bool_)))
        if np.count_nonzero(mask) >= min(ENOUGH, len(group))
    )
    chosen &= _tight(end, np.array(group.kind), chosen)
    return Anchors(group.traces, end[chosen], np.nanmin(length[chosen], axis=1), rank)


def _tight(end_ns: Floats, kind: np.ndarray, chosen: Mask) -> Mask:
    """bool[k]: calls of kinds whose ends keep together about as well as those of the tightest kind."""
    kinds = list(dict.fromkeys(kind[chosen].tolist()))
    scatter = {word: _scatter(end_ns[chosen & (kind == word)]) for word in kinds}
    known = [value for value in scatter.values() if value is not None]
    if not known:
        return chosen
    limit = LOOSER * min(known) + 1
    good = [word for word, value in scatter.items() if value is None or value <= limit]
    tight: Mask = np.isin(kind, good)
    return tight


def _scatter(end_ns: Floats) -> float | None:
    """The widest robust spread of a rank's ends against the first rank's; None where calls are too few to tell."""
    widest = 0.0
    for column in range(1, end_ns.shape[1]):
        both = np.isfinite(end_ns[:, 0]) & np.isfinite(end_ns[:, column])
        if np.count_nonzero(both) < ENOUGH:
            return None
        widest = max(widest, fit(end_ns[both, column], end_ns[both, 0]).spread_ns)
    return widest


def relate(anchor_sets: list[Anchors], fits: dict[int, ClockFit]) -> dict[int, ClockFit]:
    """Fits of all ranks that chains of anchors join to those with a fit.

    Args:
        anchor_sets: anchors, best first.
        fits: of the reference.
    """
    related = dict(fits)
    waiting = list(anchor_sets)
    while waiting:
        ready = next(
            (anchor_set for anchor_set in waiting if any(trace_index in related for trace_index in anchor_set.traces)),
            None,
        )
        if ready is None:
            break
        waiting.remove(ready)
        known = [column for column, trace_index in enumerate(ready.traces) if trace_index in related]
        common = consensus(ready, related, known)
        for column, trace_index in enumerate(ready.traces):
            if trace_index not in related:
                both = np.isfinite(common) & np.isfinite(ready.end_ns[:, column])
                if both.any():
                    related[trace_index] = fit(ready.end_ns[both, column], common[both])
    return related


def settle(anchor_sets: list[Anchors], fits: dict[int, ClockFit], reference: int) -> dict[int, ClockFit]:
    """The same fits, each made against the middle of all ranks in place of one; the reference keeps its own."""
    pieces_by_trace: dict[int, list[tuple[Floats, Floats]]] = {trace_index: [] for trace_index in fits}
    for anchor_set in anchor_sets:
        known = [column for column, trace_index in enumerate(anchor_set.traces) if trace_index in fits]
        common = consensus(anchor_set, fits, known)
        for column in known:
            both = np.isfinite(common) & np.isfinite(anchor_set.end_ns[:, column])
            pieces_by_trace[anchor_set.traces[column]].append((anchor_set.end_ns[both, column], common[both]))
    fitted = {trace_index: _fit_all(pieces, fits[trace_index]) for trace_index, pieces in pieces_by_trace.items()}
    home = fitted[reference].back()
    return {
        trace_index: ClockFit() if trace_index == reference else clock_fit.then(home)
        for trace_index, clock_fit in fitted.items()
    }


def _fit_all(pieces: list[tuple[Floats, Floats]], clock_fit: ClockFit) -> ClockFit:
    mine = np.concatenate([piece[0] for piece in pieces]) if pieces else np.zeros(0)
    other = np.concatenate([piece[1] for piece in pieces]) if pieces else np.zeros(0)
    if mine.size == 0:
        return clock_fit
    order = np.argsort(mine, kind="stable")
    return fit(mine[order], other[order])


def consensus(anchor_set: Anchors, fits: dict[int, ClockFit], known: list[int]) -> Floats:
    """float64[k]: the middle of the known ranks' ends on the reference's clock; NaN where none has the call."""
    read = np.stack([fits[anchor_set.traces[column]].at(anchor_set.end_ns[:, column]) for column in known], axis=1)
    ordered = np.sort(read, axis=1)
    count = np.count_nonzero(np.isfinite(read), axis=1)
    rows = np.arange(len(read))
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    middle: Floats = (ordered[rows, low] + ordered[rows, np.minimum(high, np.maximum(count - 1, 0))]) / 2
    return np.where(count > 0, middle, np.nan)


def residuals(anchor_set: Anchors, fits: dict[int, ClockFit]) -> Floats:
    """float64[k, q]: ends of the q ranks with a fit, less their middle; NaN where a rank has no such call."""
    known = [column for column, trace_index in enumerate(anchor_set.traces) if trace_index in fits]
    read = np.stack([fits[anchor_set.traces[column]].at(anchor_set.end_ns[:, column]) for column in known], axis=1)
    rest: Floats = read - consensus(anchor_set, fits, known)[:, None]
    return rest


def error_ns(anchor_set: Anchors, fits: dict[int, ClockFit]) -> float:
    """How far apart two ranks' ends of one collective are on the reference's clock, in 19 of 20; of few, at most.

    The middle of q ends scatters with them: what is left of one end is less by the root of 1 - 1/q.
    """
    rest = residuals(anchor_set, fits)
    whole = rest[np.count_nonzero(np.isfinite(rest), axis=1) > 1]
    if len(whole) == 0:
        return 0.0
    if len(whole) < ENOUGH:
        return float(np.max(np.nanmax(whole, axis=1) - np.nanmin(whole, axis=1)))
    widest = max(spread(column[np.isfinite(column)]) for column in whole.T)
    return COVERED * widest * float(np.sqrt(2 / (1 - 1 / rest.shape[1])))
