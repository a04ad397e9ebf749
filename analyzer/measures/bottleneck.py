"""Whether the link is what a group waits for: arrivals, latency, the link at its speed, or a link slower than its like.

Speed is weak evidence: congestion, a shared NIC and a slower link look alike in a trace of one rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import LATENCY_BYTES, LinkUse, links
from analyzer.measures.skew import group_waiting
from analyzer.measures.traffic import Traffic, traffic
from analyzer.measures.waits import WaitVerdict
from analyzer.model.run import Run
from analyzer.units import duration, rate, share, size

NOTABLE = 0.05
"""Of the window: collectives that take less are no bottleneck, whatever they cross."""

ONE_NIC_BYTES_PER_S = 55e9
"""What one NIC of 400 Gbit/s carries at most, with its rounding; faster exchanges between pairs cannot have left a
node that has one a rank. Reductions prove nothing: their wire bytes are shared by all NICs of a node."""
ONE_DOMAIN_NS = 9_000
SEVERAL_NODES_NS = 40_000
SMALL_BYTES = 32 << 10
"""Small all-reduces below 9 µs were only measured inside one NVLink domain, those of 40 µs and more only over nodes."""
CROWDED_BYTES_PER_S = 6e9
CROWDED_RANKS = 4
"""Large messages below it, on four ranks and more: PCIe across sockets, a shared network or TCP."""


class Limit(str, Enum):
    """What limits the collectives of one row."""

    LITTLE = "little"
    WAITING = "waiting"
    LATENCY = "latency"
    SPEED = "speed"
    SLOW = "slow"
    UNKNOWN = "unknown"


NOT_THE_LINK = (Limit.LITTLE, Limit.WAITING, Limit.LATENCY)


@dataclass(frozen=True, slots=True)
class Limited:
    """What limits one row of traffic, with the sentence that says why."""

    use: LinkUse
    limit: Limit
    why: str


def limits(run: Run) -> tuple[Limited, ...]:
    """One for each kind and group, in the order of `traffic`."""
    window_ns = mean_window_ns(run)
    return tuple(_limited(run, row, use, window_ns) for row, use in zip(traffic(run), links(run), strict=True))


def says(run: Run) -> str:
    """Whether the link is the bottleneck, in one sentence; "" where that cannot be told."""
    limited_rows = limits(run)
    notable = [row for row in limited_rows if row.limit is not Limit.LITTLE]
    if not notable:
        return f"the link is not the bottleneck: {limited_rows[0].why}" if limited_rows else ""
    slow = next((row for row in notable if row.limit is Limit.SLOW), None)
    if slow:
        return f"slower than its like: {slow.why}; congestion looks the same"
    if any(row.limit is Limit.UNKNOWN for row in notable):
        return ""
    if all(row.limit in NOT_THE_LINK for row in notable):
        return f"the link is not the bottleneck: {notable[0].why}"
    at_speed = next(row for row in notable if row.limit is Limit.SPEED)
    return f"the link is as fast as its like: {at_speed.why}; only fewer bytes or a nearer rung would shorten it"


def speed_says(use: LinkUse) -> str:
    """What the speed of a group rules out or is consistent with where its place is unknown; "" where nothing."""
    if use.transfer_ns is None or use.message_bytes is None:
        return ""
    busbw = use.busbw_bytes_per_s or 0.0
    if use.kind in {"all_to_all", "send_recv"} and busbw > ONE_NIC_BYTES_PER_S:
        return f"{use.kind} at {rate(busbw)} is more than one 400 Gbit/s NIC a rank carries"
    if use.kind == "all_reduce" and use.message_bytes <= SMALL_BYTES:
        took = f"all_reduce of {size(use.message_bytes)} in {duration(use.transfer_ns)}"
        if use.transfer_ns < ONE_DOMAIN_NS:
            return f"{took} is consistent with one scale-up domain"
        if use.transfer_ns >= SEVERAL_NODES_NS:
            return f"{took} is consistent with several nodes"
    if use.message_bytes > LATENCY_BYTES and 0 < busbw < CROWDED_BYTES_PER_S and use.size >= CROWDED_RANKS:
        return f"{use.kind} at {rate(busbw)} is consistent with PCIe across sockets, a shared network or TCP"
    return ""


def _limited(run: Run, row: Traffic, use: LinkUse, window_ns: int) -> Limited:
    waiting = group_waiting(run, row)
    window_share = row.exposed_ns / window_ns if window_ns else 0.0
    if window_share < NOTABLE:
        return Limited(use, Limit.LITTLE, f"{row.kind} takes {share(window_share)} of the window")
    if waiting and waiting.verdict is WaitVerdict.SKEW:
        waited = waiting.wait_ns / max(waiting.wait_ns + waiting.transfer_ns, 1)
        return Limited(use, Limit.WAITING, f"{share(waited)} of the time in {row.kind} is waiting for the last rank")
    if use.band in {"unknown", "implausible"} or use.expected is None or use.message_bytes is None:
        return Limited(use, Limit.UNKNOWN, "")
    why = (
        f"{row.kind} of {size(use.message_bytes)} takes {duration(use.transfer_ns or 0)} without waiting, "
        f"{duration(use.expected.time_ns)} expected ({use.expected.says})"
    )
    if use.band != "normal":
        return Limited(use, Limit.SLOW, why)
    if use.bound == "latency":
        return Limited(use, Limit.LATENCY, f"{why}, which is latency a call, not bandwidth")
    return Limited(use, Limit.SPEED, why)
