"""Who waits for whom, as the report states it: groups, late ranks with their reasons, pairs of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GroupWaiting:
    """Collectives of one group, all kinds together; times are totals, mean over its ranks.

    Attributes:
        group: ranks.
        dimension: tp, ep, … or unknown.
        kinds: operations.
        collectives: matched ones.
        matched: how they were told from each other.
        complete_share: of the calls that these collectives should have on the group's recorded ranks, those found.
        wait_by_arrival_ns, transfer_by_arrival_ns: by latest arrival; None where the ranks share no clock.
        wait_by_shortest_ns, transfer_by_shortest_ns: by the shortest duration over the ranks, which needs no clock.
        used: arrival or shortest duration, the one that all other figures rest on.
        agrees: the two do, within the clock's error; None where there is but one.
        clock_error_ns: of one call's wait by arrival.
        verdict: transfer, skew, mixed or inconclusive, with `reason`.
    """

    group: list[int]
    dimension: str
    kinds: list[str]
    collectives: int
    matched: str
    complete_share: float
    wait_by_arrival_ns: int | None
    transfer_by_arrival_ns: int | None
    wait_by_shortest_ns: int
    transfer_by_shortest_ns: int
    used: str
    agrees: bool | None
    clock_error_ns: int
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class LateReason:
    """What a late rank does longer than the others before it comes.

    Attributes:
        doing: compute, movement, launch, blocked, stream or unrecorded.
        name: the kernel or the blocking call, "" for all of its sort together.
        work: subclass of the kernel (gemm, attention, moe_gemm, …), "" for calls and for all together.
        excess_ns: longer than the mean of the others, mean a call.
        share: of its own lateness; None where it has none.
        correlation: with how late a rank comes; None where either is constant.
        more_calls: kernels more than the mean of the others, mean a call.
    """

    doing: str
    name: str
    work: str
    excess_ns: int
    share: float | None
    correlation: float | None
    more_calls: float


@dataclass(frozen=True, slots=True)
class LateRankRow:
    """The rank of a group that the others wait for most.

    Attributes:
        group: ranks.
        rank: the late one.
        calls: collectives whose last rank is told, of `all_calls`.
        last_share: share of them in which it is last, with its 95 % interval (Wilson).
        chance: the same share if all ranks were alike.
        p_value: chance of being last so often if all were alike (binomial, one-sided).
        is_persistent: neither chance nor too small to tell.
        is_own: most of it arises at this rank, not from an earlier collective.
        caused_ns: what the others waited for it, all together.
        own_ns: the part that is its own doing; rows are ranked by it.
        median_late_ns, p90_late_ns: after the rank before it, in the calls in which it is last.
        more_tokens: scheduled in its steps more than in those of the others, mean; None where not stated.
        reasons: largest first.
    """

    group: list[int]
    rank: int
    calls: int
    all_calls: int
    last_share: float
    last_share_low: float
    last_share_high: float
    chance: float
    p_value: float
    is_persistent: bool
    is_own: bool
    caused_ns: int
    own_ns: int
    median_late_ns: int
    p90_late_ns: int
    more_tokens: float | None
    reasons: list[LateReason]


@dataclass(frozen=True, slots=True)
class WaitPair:
    """What one rank waited while another was the last to come."""

    rank: int
    last: int
    wait_ns: int


@dataclass(frozen=True, slots=True)
class WaitingTable:
    """Waiting across ranks.

    Attributes:
        matched_share: of all communication calls of the run; None where waiting cannot be told.
        groups: most calls first.
        late: one a group whose ranks share a clock and whose last rank is told; most waiting by own lateness first.
        pairs: longest first; pairs without waiting are left out.
        unlisted_pairs_ns: waiting of the pairs beyond the longest.
        missing: why there is nothing, with the cure.
    """

    matched_share: float | None = None
    groups: list[GroupWaiting] = field(default_factory=list)
    late: list[LateRankRow] = field(default_factory=list)
    pairs: list[WaitPair] = field(default_factory=list)
    unlisted_pairs_ns: int = 0
    missing: str = ""
