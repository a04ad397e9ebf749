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


def table(tie: MatchedGroup, kinds: tuple[str, ...]) -> tuple[Integers, Floats]:
    """The k collectives of a group, in order of end, and their ends on the clock of its first trace.

    The first column is int64[k, p]: position in the channel's calls of each of `tie.traces`, ABSENT where a rank has no
    such call; two of a line are not.

    Args:
        tie: the group.
        kinds: kinds by code.
    """
    traces, calls = tie.traces, tie.channel.calls
    column = {at: place for place, at in enumerate(traces)}
    found = np.full((len(calls[tie.ref]), len(traces)), ABSENT, np.int64)
    found[:, column[tie.ref]] = np.arange(len(calls[tie.ref]))
    for at, part in tie.aligned.items():
        own = np.flatnonzero(part.partner != ABSENT)
        found[part.partner[own], column[at]] = own
    found = np.concatenate((found, _beyond(tie, column)))
    found = found[np.count_nonzero(found != ABSENT, axis=1) > 1]
    start, end = _on_one_clock(tie, found)
    if not tie.channel.is_one_way and len(tie.by_sequence) < len(tie.aligned):
        possible = ~_apart(tie, found, kinds, (start, end))
        found, end = found[possible], end[possible]
    last = np.nanmin(end, axis=1) if len(found) else np.zeros(0)
    last = _lines(tie)[tie.traces[0]].back().at(last)
    order = np.argsort(last, kind="stable")
    return found[order], last[order]


def _lines(tie: MatchedGroup) -> dict[int, ClockFit]:
    return {tie.ref: ClockFit(), **{at: part.line for at, part in tie.aligned.items()}}


def _beyond(tie: MatchedGroup, column: dict[int, int]) -> Integers:
    """int64[k, p]: collectives that the reference rank has no record of, by token and common end."""
    calls, lines = tie.channel.calls, _lines(tie)
    rows = {at: np.flatnonzero(part.partner == ABSENT) for at, part in tie.aligned.items()}
    row = np.concatenate([np.zeros(0, np.int64), *rows.values()])
    if row.size == 0:
        return np.zeros((0, len(column)), np.int64)
    place = np.concatenate([np.full(own.size, column[at], np.int64) for at, own in rows.items()])
    token = np.concatenate([calls[at].name[own] for at, own in rows.items()])
    end = np.concatenate([lines[at].at(calls[at].end_ns[own]) for at, own in rows.items()])
    order = np.lexsort((end, token))
    row, place, token, end = row[order], place[order], token[order], end[order]
    apart = np.diff(end) > max(TOGETHER_NS, TOGETHER_SPREADS * tie.spread_ns)
    opens = np.concatenate(([True], apart | (np.diff(token) != 0)))
    line = np.cumsum(opens) - 1
    # The first call of a rank in a line stays; later ones are of a rank that calls faster than ends can tell.
    _, first = np.unique(line * len(column) + place, return_index=True)
    found = np.full((int(line[-1]) + 1, len(column)), ABSENT, np.int64)
    found[line[first], place[first]] = row[first]
    return found


def _on_one_clock(tie: MatchedGroup, found: Integers) -> tuple[Floats, Floats]:
    """float64[k, p] starts and ends, NaN where the rank has no call."""
    lines = _lines(tie)
    start, end = np.full(found.shape, np.nan), np.full(found.shape, np.nan)
    for place, at in enumerate(tie.traces):
        has = found[:, place] != ABSENT
        calls = tie.channel.calls[at]
        start[has, place] = lines[at].at(calls.start_ns[found[has, place]])
        end[has, place] = lines[at].at(calls.end_ns[found[has, place]])
    return start, end


def _apart(tie: MatchedGroup, found: Integers, kinds: tuple[str, ...], times: tuple[Floats, Floats]) -> Mask:
    """bool[k]: a rank has left before another came, which cannot be in one joint collective."""
    start, end = times
    if len(found) == 0:
        return np.zeros(0, np.bool_)
    joint = np.zeros(len(found), np.bool_)
    is_joint = np.array([kind in JOINT for kind in kinds] or [False])
    for place, at in enumerate(tie.traces):
        has = found[:, place] != ABSENT
        joint[has] = is_joint[tie.channel.calls[at].kind[found[has, place]]]
    slack = TOUCH_SPREADS * tie.spread_ns + FINEST_NS
    impossible: Mask = joint & (np.nanmax(start, axis=1) > np.nanmin(end, axis=1) + slack)
    return impossible
