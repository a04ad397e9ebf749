"""The four terms of every rank: exact, exclusive, summing to the window to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.measures.causes import causes
from analyzer.measures.waits import wait_columns
from analyzer.model.events import Activities
from analyzer.model.kind import Cause, Kind
from analyzer.model.pattern import Blend
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.stats.arrays import Integers

UNCLASSIFIED = "other"


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """One rank's window, every instant of it in exactly one term.

    Attributes:
        rank: whose window it is.
        window: from the first to the last activity.
        compute: at least one compute activity runs.
        communication: else at least one collective or transfer runs whose participants have all arrived.
        movement: else at least one copy, fill, cache write or layout change runs.
        sync: else; the union of `causes`.
        causes: why the device did nothing; disjoint.
        hidden_communication_ns: communication that ran under compute; in no sum.
        hidden_movement_ns: movement that ran under compute or communication; in no sum.
        owned_ns: int64[m], exclusive time of each activity: of those of one term that overlap, the one that started
            first owns. The sum over the activities of a term is the term.
        subclass_ns: exclusive time of each (term, subclass); the sums over a term are the term.
        unclassified_ns: compute time of names that no pattern knows.
        fused_ns: communication time of kernels that compute as well.
        overlapped_ns: compute time of kernels that hold an exchange as well.
    """

    rank: int
    window: Intervals
    compute: Intervals
    communication: Intervals
    movement: Intervals
    sync: Intervals
    causes: dict[Cause, Intervals]
    hidden_communication_ns: int
    hidden_movement_ns: int
    owned_ns: Integers
    subclass_ns: dict[tuple[Kind, str], int]
    unclassified_ns: int
    fused_ns: int
    overlapped_ns: int

    def term(self, kind: Kind) -> Intervals:
        """The instants of one term."""
        return {
            Kind.COMPUTE: self.compute,
            Kind.COMMUNICATION: self.communication,
            Kind.MOVEMENT: self.movement,
            Kind.SYNC: self.sync,
        }[kind]

    @property
    def device_busy_ns(self) -> int:
        """Time in which anything but waiting ran on the device, waiting inside collectives included."""
        peer_wait_ns = self.causes[Cause.PEER_WAIT].total_ns
        return self.compute.total_ns + self.communication.total_ns + self.movement.total_ns + peer_wait_ns


@once
def breakdown(run: Run) -> tuple[Breakdown, ...]:
    """One partition a rank, in rank order."""
    return tuple(_split(trace, wait_ns) for trace, wait_ns in zip(run.traces, wait_columns(run), strict=True))


def _split(trace: Trace, wait_ns: Integers) -> Breakdown:
    activities = trace.activities
    compute = activities.busy(Kind.COMPUTE)
    collectives = activities.kind == Kind.COMMUNICATION
    start, end = activities.start_ns[collectives], activities.end_ns[collectives]
    arrived = np.minimum(start + wait_ns[collectives], end)
    transfer, waiting = Intervals.from_arrays(arrived, end), Intervals.from_arrays(start, arrived)
    copies = activities.busy(Kind.MOVEMENT)

    communication = transfer - compute
    covered = compute | communication
    movement = copies - covered
    sync = trace.window - (covered | movement)
    peer_wait = waiting & sync
    terms = {Kind.COMPUTE: compute, Kind.COMMUNICATION: communication, Kind.MOVEMENT: movement}
    owned_ns = _owned(activities, terms, wait_ns)
    subclass_ns = _by_subclass(activities, owned_ns)
    return Breakdown(
        rank=trace.rank,
        window=trace.window,
        compute=compute,
        communication=communication,
        movement=movement,
        sync=sync,
        causes={Cause.PEER_WAIT: peer_wait, **causes(trace, sync - peer_wait)},
        hidden_communication_ns=(transfer & compute).total_ns,
        hidden_movement_ns=(copies & covered).total_ns,
        owned_ns=owned_ns,
        subclass_ns=subclass_ns,
        unclassified_ns=subclass_ns.get((Kind.COMPUTE, UNCLASSIFIED), 0),
        fused_ns=int(owned_ns[activities.blends(Blend.FUSED)].sum()),
        overlapped_ns=int(owned_ns[activities.blends(Blend.OVERLAPPED)].sum()),
    )


def _owned(activities: Activities, terms: dict[Kind, Intervals], wait_ns: Integers) -> Integers:
    """int64[m]: exclusive time of each activity."""
    owned = np.zeros(len(activities), np.int64)
    kinds = activities.kind
    for kind, term in terms.items():
        rows = np.flatnonzero(kinds == kind)
        start = activities.start_ns[rows] + wait_ns[rows]
        order = np.argsort(start, kind="stable")
        rows, start = rows[order], start[order]
        end = np.maximum(activities.end_ns[rows], start)
        reach = np.maximum.accumulate(end)
        begin = np.minimum(np.maximum(start, np.concatenate((start[:1], reach[:-1]))), end)
        owned[rows] = term.within(begin, end)
    return owned


def _by_subclass(activities: Activities, owned_ns: Integers) -> dict[tuple[Kind, str], int]:
    """Exclusive time of each subclass."""
    subclass_ns: dict[tuple[Kind, str], int] = {}
    kinds, subclasses = activities.kind, activities.subclass
    for kind in (Kind.COMPUTE, Kind.COMMUNICATION, Kind.MOVEMENT):
        rows = np.flatnonzero(kinds == kind)
        sums = np.zeros(len(subclasses.values), np.int64)
        np.add.at(sums, subclasses.codes[rows], owned_ns[rows])
        subclass_ns.update({(kind, subclasses.values[code]): int(sums[code]) for code in np.flatnonzero(sums)})
    return subclass_ns
