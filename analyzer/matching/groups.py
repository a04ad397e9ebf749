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
        return max((part.scatter_ns for part in self.aligned.values()), default=0.0)

    @property
    def spread_ns(self) -> float:
        """The same, no less than what other channels showed of the clocks."""
        return max((part.line.spread_ns for part in self.aligned.values()), default=0.0)


def joined(known: Known, channel: Channel, traces: tuple[int, ...]) -> MatchedGroup:
    """All of the traces that can be aligned, taken as one group."""
    ref = max(traces, key=lambda at: (len(channel.calls[at]), -at))
    pairs = {at: pair(known, channel, at, ref) for at in traces if at != ref}
    aligned = {at: part for at, (part, _) in pairs.items() if part is not None and part.share >= COMMON}
    return MatchedGroup(channel, ref, aligned, frozenset(at for at in aligned if pairs[at][1]))


def ends(tie: MatchedGroup) -> Floats:
    """float64[k, p]: ends of each call of the reference rank on its clock; NaN where a rank has none."""
    calls = tie.channel.calls
    end = np.full((len(calls[tie.ref]), len(tie.traces)), np.nan)
    for column, at in enumerate(tie.traces):
        if at == tie.ref:
            end[:, column] = calls[at].end_ns
        else:
            part = tie.aligned[at]
            own = np.flatnonzero(part.partner != ABSENT)
            end[part.partner[own], column] = part.line.at(calls[at].end_ns[own])
    return end
