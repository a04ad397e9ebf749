"""A group's calls as a table: one collective a line, one rank a column."""

from __future__ import annotations

import numpy as np

from analyzer.matching.align import TOUCH_SPREADS
from analyzer.matching.clock_fit import ClockFit
from analyzer.matching.groups import MatchedGroup
from analyzer.matching.lag import FINEST_NS
from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Floats, Integers, Mask

TOGETHER_NS = 20_000.0
TOGETHER_SPREADS = 6.0
"""Calls that the reference rank lacks are one collective where their ends are within either."""

JOINT = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Kinds that no rank can leave before the last one has come."""


def table(group: MatchedGroup, kinds: tuple[str, ...]) -> tuple[Integers, Floats]:
    """The k collectives of a group, in order of end, and their ends on the clock of its first trace.

    The first column is int64[k, p]: position in the channel's calls of each of `group.traces`, ABSENT where a rank has
    no such call; two of a line are not.

    Args:
        group: the ranks that were aligned.
        kinds: kinds by code.
    """
    traces, calls = group.traces, group.channel.calls
    column_of = {trace_index: column for column, trace_index in enumerate(traces)}
    positions = np.full((len(calls[group.ref]), len(traces)), ABSENT, np.int64)
    positions[:, column_of[group.ref]] = np.arange(len(calls[group.ref]))
    for trace_index, alignment in group.aligned.items():
        paired = np.flatnonzero(alignment.partner != ABSENT)
        positions[alignment.partner[paired], column_of[trace_index]] = paired
    positions = np.concatenate((positions, _beyond(group, column_of)))
    positions = positions[np.count_nonzero(positions != ABSENT, axis=1) > 1]
    start, end = _on_one_clock(group, positions)
    if not group.channel.is_one_way and len(group.by_sequence) < len(group.aligned):
        possible = ~_apart(group, positions, kinds, (start, end))
        positions, end = positions[possible], end[possible]
    last = np.nanmin(end, axis=1) if len(positions) else np.zeros(0)
    last = _fits(group)[group.traces[0]].back().at(last)
    order = np.argsort(last, kind="stable")
    return positions[order], last[order]


def _fits(group: MatchedGroup) -> dict[int, ClockFit]:
    return {
        group.ref: ClockFit(),
        **{trace_index: alignment.clock_fit for trace_index, alignment in group.aligned.items()},
    }


def _beyond(group: MatchedGroup, column_of: dict[int, int]) -> Integers:
    """int64[k, p]: collectives that the reference rank has no record of, by token and common end."""
    calls, fits = group.channel.calls, _fits(group)
    rows = {
        trace_index: np.flatnonzero(alignment.partner == ABSENT) for trace_index, alignment in group.aligned.items()
    }
    row = np.concatenate([np.zeros(0, np.int64), *rows.values()])
    if row.size == 0:
        return np.zeros((0, len(column_of)), np.int64)
    column = np.concatenate(
        [np.full(alone.size, column_of[trace_index], np.int64) for trace_index, alone in rows.items()]
    )
    token = np.concatenate([calls[trace_index].name[alone] for trace_index, alone in rows.items()])
    end = np.concatenate(
        [fits[trace_index].at(calls[trace_index].end_ns[alone]) for trace_index, alone in rows.items()]
    )
    order = np.lexsort((end, token))
    row, column, token, end = row[order], column[order], token[order], end[order]
    apart = np.diff(end) > max(TOGETHER_NS, TOGETHER_SPREADS * group.spread_ns)
    opens = np.concatenate(([True], apart | (np.diff(token) != 0)))
    line = np.cumsum(opens) - 1
    # The first call of a rank in a line stays; later ones are of a rank that calls faster than ends can tell.
    _, first = np.unique(line * len(column_of) + column, return_index=True)
    positions = np.full((int(line[-1]) + 1, len(column_of)), ABSENT, np.int64)
    positions[line[first], column[first]] = row[first]
    return positions


def _on_one_clock(group: MatchedGroup, positions: Integers) -> tuple[Floats, Floats]:
    """float64[k, p] starts and ends, NaN where the rank has no call."""
    fits = _fits(group)
    start, end = np.full(positions.shape, np.nan), np.full(positions.shape, np.nan)
    for column, trace_index in enumerate(group.traces):
        has = positions[:, column] != ABSENT
        calls = group.channel.calls[trace_index]
        start[has, column] = fits[trace_index].at(calls.start_ns[positions[has, column]])
        end[has, column] = fits[trace_index].at(calls.end_ns[positions[has, column]])
    return start, end


def _apart(group: MatchedGroup, positions: Integers, kinds: tuple[str, ...], times: tuple[Floats, Floats]) -> Mask:
    """bool[k]: a rank has left before another came, which cannot be in one joint collective."""
    start, end = times
    if len(positions) == 0:
        return np.zeros(0, np.bool_)
    joint = np.zeros(len(positions), np.bool_)
    is_joint = np.array([kind in JOINT for kind in kinds] or [False])
    for column, trace_index in enumerate(group.traces):
        has = positions[:, column] != ABSENT
        joint[has] = is_joint[group.channel.calls[trace_index].kind[positions[has, column]]]
    slack = TOUCH_SPREADS * group.spread_ns + FINEST_NS
    impossible: Mask = joint & (np.nanmax(start, axis=1) > np.nanmin(end, axis=1) + slack)
    return impossible
