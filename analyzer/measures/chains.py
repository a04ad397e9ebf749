"""Kernels of one kind that follow each other on a stream and could have been one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import Activities
from analyzer.model.kind import Kind
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """n chains of one rank.

    Attributes:
        rows: int64[m], activities in chains, by stream and time.
        chain_of: int64[m], ascending.
        count: n.
    """

    rows: Integers
    chain_of: Integers
    count: int

    @property
    def lengths(self) -> Integers:
        """int64[n], activities of each chain."""
        return np.bincount(self.chain_of, minlength=self.count).astype(np.int64)


def chains(activities: Activities, fits: Mask, *, at_least: int, gap_ns: int) -> Chains:
    """Runs of activities that fit, with no other between them on their stream and no pause longer than `gap_ns`.

    Args:
        activities: of one rank.
        fits: bool[len(activities)].
        at_least: activities that make a chain.
        gap_ns: longest pause inside a chain.
    """
    order = np.lexsort((activities.start_ns, activities.lane, activities.process))
    fitting = fits[order]
    previous, following = order[:-1], order[1:]
    opens = np.ones(order.size, np.bool_)
    opens[1:] = (
        (activities.lane[previous] != activities.lane[following])
        | (activities.process[previous] != activities.process[following])
        | (fitting[:-1] != fitting[1:])
        | (activities.start_ns[following] - activities.end_ns[previous] > gap_ns)
    )
    number = np.cumsum(opens) - 1
    length = np.bincount(number, minlength=1)
    kept = fitting & (length[number] >= at_least)
    distinct, chain_of = np.unique(number[kept], return_inverse=True)
    return Chains(order[kept].astype(np.int64), chain_of.astype(np.int64), int(distinct.size))


def beyond_the_longest(trace: Trace, rank_chains: Chains, *, gaps: bool, nearer: Sequence[Kind]) -> Intervals:
    """Time of the chains without the longest activity of each, where nothing nearer runs: what joining could save.

    Args:
        trace: whose chains they are.
        rank_chains: its chains.
        gaps: whether the pauses inside a chain count.
        nearer: terms that hide it.
    """
    if not rank_chains.count:
        return Intervals.empty()
    activities = trace.activities
    start, end = activities.start_ns[rank_chains.rows], activities.end_ns[rank_chains.rows]
    by_length = np.lexsort((start - end, rank_chains.chain_of))
    longest = by_length[np.concatenate(([True], np.diff(rank_chains.chain_of[by_length]) > 0))]
    whole = Intervals.from_arrays(start, end)
    if gaps:
        first, last = np.full(rank_chains.count, np.iinfo(np.int64).max), np.zeros(rank_chains.count, np.int64)
        np.minimum.at(first, rank_chains.chain_of, start)
        np.maximum.at(last, rank_chains.chain_of, end)
        whole = Intervals.from_arrays(first, last)
    saved = whole - Intervals.from_arrays(start[longest], end[longest])
    for kind in nearer:
        saved = saved - activities.busy(kind)
    return saved
