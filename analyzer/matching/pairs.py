"""Two ranks' calls of one channel, paired: by sequence number where recorded, else by order and time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analyzer.matching.align import Alignment, align, in_order, summary
from analyzer.matching.calls import CallColumns, CallTable
from analyzer.matching.channels import Channel
from analyzer.matching.clock_groups import ClockGroups
from analyzer.matching.instances import EngineInstance
from analyzer.matching.lag import Sequence
from analyzer.matching.partition import KnownGroup
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.stats.arrays import Integers

_REPEATS = 1 << 20
"""More calls than ever share one sequence number (those of a coalesced group do)."""


@dataclass(frozen=True, slots=True)
class Known:
    """What matching one channel after another needs, and learns.

    Attributes:
        run: the run.
        call_table: its calls.
        clocks: related so far.
        whole: engine instances in which all ranks end together.
        groups: of the channel with most calls of each engine instance.
    """

    run: Run
    call_table: CallTable
    clocks: ClockGroups
    whole: set[EngineInstance] = field(default_factory=set)
    groups: dict[EngineInstance, list[KnownGroup]] = field(default_factory=dict)


def pair(known: Known, channel: Channel, trace_index: int, ref: int) -> tuple[Alignment | None, bool]:
    """The alignment of two traces, and whether sequence numbers alone gave it."""
    mine, other = channel.calls[trace_index], channel.calls[ref]
    raw_ns = float(known.call_table.base_ns[trace_index] - known.call_table.base_ns[ref])
    host = known.run.traces[trace_index].origin.host
    one_clock = host != "" and host == known.run.traces[ref].origin.host
    prior = known.clocks.relation(trace_index, ref)
    left, right = _sequence(other, channel), _sequence(mine, channel)
    if channel.is_one_way:
        return in_order(left, right, raw_ns, prior), False
    partner = _by_sequence(other, mine)
    if np.all(partner == ABSENT):
        return align(left, right, raw_ns, prior, one_clock=one_clock), False
    whole = summary(left, right, partner, prior)
    numbered_left, numbered_right = other.sequence != ABSENT, mine.sequence != ABSENT
    if whole is None or (numbered_left.all() and numbered_right.all()):
        return whole, True
    taken = np.zeros(len(other), np.bool_)
    taken[partner[partner != ABSENT]] = True
    rest_left, rest_right = np.flatnonzero(~taken), np.flatnonzero(partner == ABSENT)
    rest = align(left.take(rest_left), right.take(rest_right), raw_ns, whole.clock_fit, one_clock=one_clock)
    if rest is not None:
        own_positions, ref_positions = (
            rest_right[rest.partner != ABSENT],
            rest_left[rest.partner[rest.partner != ABSENT]],
        )
        unlike = numbered_right[own_positions] & numbered_left[ref_positions]
        partner[own_positions[~unlike]] = ref_positions[~unlike]
    return summary(left, right, partner, prior), False


def _sequence(calls: CallColumns, channel: Channel) -> Sequence:
    """Calls as what alignment compares: names, unless one side sends what the other receives."""
    token = np.zeros_like(calls.name) if channel.is_one_way else calls.name
    return Sequence(token, calls.size_bytes, calls.start_ns, calls.end_ns)


def _by_sequence(ref_calls: CallColumns, own_calls: CallColumns) -> Integers:
    """int64[n]: partner by equal sequence number; of several calls with one number, the first with the first."""
    partner = np.full(len(own_calls), ABSENT, np.int64)
    left, right = np.flatnonzero(ref_calls.sequence != ABSENT), np.flatnonzero(own_calls.sequence != ABSENT)
    if left.size == 0 or right.size == 0:
        return partner
    key, mine = _counted(ref_calls.sequence[left]), _counted(own_calls.sequence[right])
    order = np.argsort(key, kind="stable")
    index = np.minimum(np.searchsorted(key[order], mine), key.size - 1)
    hit = key[order][index] == mine
    partner[right[hit]] = left[order[index[hit]]]
    return partner


def _counted(sequence: Integers) -> Integers:
    """A key of each sequence number and its occurrence."""
    order = np.argsort(sequence, kind="stable")
    ordered = sequence[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    since = np.arange(ordered.size) - np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    key = np.empty_like(sequence)
    key[order] = ordered * _REPEATS + since
    return key
