"""Where the time goes: per rank, and per kind of step."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hidden:
    """Time under a nearer class; in no sum."""

    communication_ns: int
    movement_ns: int


@dataclass(frozen=True, slots=True)
class SyncCauses:
    """Why the device did nothing; the sum is `sync_ns`.

    Attributes:
        peer_wait_ns: inside a collective, before the last participant arrived.
        host_sync_ns: the host was blocked in a synchronizing call.
        host_launch_ns: the next activity was not launched yet.
        stream_wait_ns: launched, and it waited for an event, a host function, a dependency in a graph, or its turn.
        queue_ns: between steps.
        unknown_ns: no launch is recorded.
        unrecorded_ns: launched, nothing recorded runs and nothing recorded holds it back: another process on the
            device, or lost records. 0 in reports that were made before it was told apart from `stream_wait_ns`.
    """

    peer_wait_ns: int
    host_sync_ns: int
    host_launch_ns: int
    stream_wait_ns: int
    queue_ns: int
    unknown_ns: int
    unrecorded_ns: int = 0

    @property
    def by_cause(self) -> dict[str, int]:
        """Cause → nanoseconds."""
        return {
            "peer_wait": self.peer_wait_ns,
            "host_sync": self.host_sync_ns,
            "host_launch": self.host_launch_ns,
            "stream_wait": self.stream_wait_ns,
            "queue": self.queue_ns,
            "unrecorded": self.unrecorded_ns,
            "unknown": self.unknown_ns,
        }


@dataclass(frozen=True, slots=True)
class RankBreakdown:
    """The four terms of one rank; they sum to the window exactly.

    Attributes:
        rank: whose they are.
        window_ns: from the first to the last activity.
        compute_ns: a kernel computes.
        communication_ns: else a collective or transfer runs whose participants have all arrived.
        movement_ns: else a copy, fill, cache write or layout change runs.
        sync_ns: else; the sum of `sync_causes`.
        hidden: what ran under a nearer term.
        sync_causes: why the device did nothing.
        subclasses: exclusive time of each sort of kernel.
        unclassified_ns: the part of `compute_ns` in names that no pattern knows.
        device_busy_ns: anything but waiting ran, waiting inside collectives included.
        fused_ns: the part of `communication_ns` in kernels that compute as well; None where a report does not state it.
        overlapped_ns: the part of `compute_ns` in kernels that hold an exchange as well; None likewise.
    """

    rank: int
    window_ns: int
    compute_ns: int
    communication_ns: int
    movement_ns: int
    sync_ns: int
    hidden: Hidden
    sync_causes: SyncCauses
    subclasses: dict[str, int]
    unclassified_ns: int
    device_busy_ns: int
    fused_ns: int | None = None
    overlapped_ns: int | None = None

    @property
    def by_term(self) -> dict[str, int]:
        """Term → nanoseconds; they sum to the window."""
        return {
            "compute": self.compute_ns,
            "communication": self.communication_ns,
            "movement": self.movement_ns,
            "sync": self.sync_ns,
        }


@dataclass(frozen=True, slots=True)
class StepKind:
    """Steps of one kind over all ranks.

    Attributes:
        kind: prefill, decode, mixed, idle, … or unknown.
        source: how steps were found.
        count: steps of the rank that has most.
        median_ns: device span of the median step over all ranks, the lower one of two in the middle.
        p90_ns: the same, 90th percentile.
        period_ns: median time from the start of one step to the start of the next, None for a single step.
        terms: time per term inside that step; they sum to `median_ns`.
        left_out: why steps are not in the figures above, with how many over all ranks.
        tokens: median scheduled in a step, None where not stated.
        requests: median in a step, None where not stated.
    """

    kind: str
    source: str
    count: int
    median_ns: int
    p90_ns: int
    period_ns: int | None
    terms: dict[str, int]
    left_out: dict[str, int] = field(default_factory=dict)
    tokens: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class BreakdownTables:
    """Where the time goes: per rank, and per kind of step."""

    per_rank: list[RankBreakdown]
    steps: list[StepKind]
