"""Waiting across ranks as rows of the report."""

from __future__ import annotations

import math

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.matching.collectives import match
from analyzer.measures.skew import LateRank, late_ranks, wait_matrix
from analyzer.measures.waits import GroupWaits, waits
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.schema.waiting import GroupWaiting, LateRankRow, LateReason, WaitingTable, WaitPair
from analyzer.steps.steps import steps

MOST_PAIRS = 4096
"""Of ranks: all of a job of 64; beyond, those that wait longest."""


def waiting_table(run: Run) -> WaitingTable:
    """Groups, late ranks and pairs; of a run that cannot tell, why."""
    try:
        groups = waits(run).groups
    except MissingEvidenceError as lack:
        return WaitingTable(missing=str(lack))
    try:
        late, missing = late_ranks(run), ""
    except MissingEvidenceError as lack:
        late, missing = (), str(lack)
    pairs, unlisted_ns = _pairs(run)
    return WaitingTable(
        matched_share=match(run).share,
        groups=[_group(run, group_waits) for group_waits in groups],
        late=[_late(run, row) for row in late if row.calls],
        pairs=pairs,
        unlisted_pairs_ns=unlisted_ns,
        missing=missing,
    )


def _group(run: Run, group_waits: GroupWaits) -> GroupWaiting:
    group, n = group_waits.group, len(group_waits.group.ranks)
    total_ns = int(group_waits.duration_ns.sum())
    arrival_ns = group_waits.by_arrival_ns
    return GroupWaiting(
        group=list(group.ranks),
        dimension=next((axis for kind in group.kinds if (axis := run.layout.axis_of(group.ranks, kind))), "unknown"),
        kinds=list(group.kinds),
        collectives=len(group),
        matched=group.method.value,
        complete_share=float(np.mean(group.row != ABSENT)),
        wait_by_arrival_ns=None if arrival_ns is None else arrival_ns // n,
        transfer_by_arrival_ns=None if arrival_ns is None else (total_ns - arrival_ns) // n,
        wait_by_shortest_ns=group_waits.by_shortest_ns // n,
        transfer_by_shortest_ns=(total_ns - group_waits.by_shortest_ns) // n,
        used="arrival" if group_waits.is_by_arrival else "shortest duration",
        agrees=group_waits.agrees,
        clock_error_ns=group_waits.error_ns,
        verdict=group_waits.verdict.value,
        reason=group_waits.reason,
    )


def _late(run: Run, row: LateRank) -> LateRankRow:
    low, high = row.interval
    return LateRankRow(
        group=list(row.ranks),
        rank=row.rank,
        calls=row.calls,
        all_calls=row.all_calls,
        last_share=row.last_share,
        last_share_low=low,
        last_share_high=high,
        chance=row.chance,
        p_value=row.p_value,
        is_persistent=row.is_persistent,
        is_own=row.is_own,
        caused_ns=row.caused_ns,
        own_ns=row.own_ns,
        median_late_ns=row.median_late_ns,
        p90_late_ns=row.p90_late_ns,
        more_tokens=_more_tokens(run, row),
        reasons=[
            LateReason(
                reason.doing,
                reason.name,
                reason.work,
                reason.excess_ns,
                _stated(reason.share),
                _stated(reason.correlation),
                reason.more_calls,
            )
            for reason in row.reasons
        ],
    )


def _stated(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _more_tokens(run: Run, row: LateRank) -> float | None:
    """Tokens of the late rank's steps less those of the others', mean; None where a rank states none."""
    means = {}
    for rank, rank_steps in zip(run.ranks, steps(run), strict=True):
        stated = rank_steps.tokens[rank_steps.tokens != ABSENT]
        if rank in row.ranks and stated.size:
            means[rank] = float(stated.mean())
    if set(means) != set(row.ranks):
        return None
    return means[row.rank] - float(np.mean([mean for rank, mean in means.items() if rank != row.rank]))


def _pairs(run: Run) -> tuple[list[WaitPair], int]:
    matrix, ranks = wait_matrix(run), run.ranks
    order = np.argsort(-matrix, axis=None, kind="stable")[: min(MOST_PAIRS, np.count_nonzero(matrix))]
    rows, columns = np.unravel_index(order, matrix.shape)
    listed = [
        WaitPair(ranks[row], ranks[column], int(matrix[row, column]))
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return listed, int(matrix.sum()) - sum(pair.wait_ns for pair in listed)
