"""Ranks of a channel taken as one group: each aligned to one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.matching.align import Alignment
from analyzer.matching.channels import Channel
from analyzer.matching.pairs import Known, pair
from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Floats

COMMON = 0.5
"""Share of calls in the common window that must have a partner; where the group is not recorded, of all calls."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchedGroup:
    """Ranks whose calls of one channel are the same collectives.

    Attributes:
        channel: whose calls.
        ref: position in `run.traces` of the rank that the others are aligned to.
        aligned: the others.
        by_sequence: ranks of which every pair was found by its sequence number.
    """

    channel: Channel
    ref: int
    aligned: dict[int, Alignment]
    by_sequence: frozenset[int]

    @property
    def traces(self) -> tuple[int, ...]:
        """All ranks, ascending."""
        return tuple(sorted((self.ref, *self.aligned)))

    @property
    def scatter_ns(self) -> float:
        """The widest scatter of ends."""
        return max((alignment.scatter_ns for alignment in self.aligned.values()), default=0.0)

    @property
    def spread_ns(self) -> float:
        """The same, no less than what other channels showed of the clocks."""
        return max((alignment.clock_fit.spread_ns for alignment in self.aligned.values()), default=0.0)


def joined(known: Known, channel: Channel, traces: tuple[int, ...]) -> MatchedGroup:
    """All of the traces that can be aligned, taken as one group."""
    ref = max(traces, key=lambda trace_index: (len(channel.calls[trace_index]), -trace_index))
    pairs = {trace_index: pair(known, channel, trace_index, ref) for trace_index in traces if trace_index != ref}
    aligned = {
        trace_index: alignment
        for trace_index, (alignment, _) in pairs.items()
        if alignment is not None and alignment.share >= COMMON
    }
    return MatchedGroup(
        channel, ref, aligned, frozenset(trace_index for trace_index in aligned if pairs[trace_index][1])
    )


def ends(group: MatchedGroup) -> Floats:
    """float64[k, p]: ends of each call of the reference rank on its clock; NaN where a rank has none."""
    calls = group.channel.calls
    end = np.full((len(calls[group.ref]), len(group.traces)), np.nan)
    for column, trace_index in enumerate(group.traces):
        if trace_index == group.ref:
            end[:, column] = calls[trace_index].end_ns
        else:
            alignment = group.aligned[trace_index]
            paired = np.flatnonzero(alignment.partner != ABSENT)
            end[alignment.partner[paired], column] = alignment.clock_fit.at(calls[trace_index].end_ns[paired])
    return end
