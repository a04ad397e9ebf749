"""What a report says of the links that collectives cross."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LinkRow:
    """What one kind of collective crosses on one group, and what one call should take there.

    Attributes:
        nodes: that hold the group, None where unknown.
        rail_aligned: same device numbers on each node; None on one node or where unknown.
        transfer_ns: one call without waiting, median; None where waiting cannot be told.
        expected_ns: of a call of this size on this rung, None where unknown.
        expected_low_ns: lower end of its range.
        expected_high_ns: upper end.
        expected_from: where the expected time is from.
        in_node_ns: what the same call should take inside one node; None for a group that is in one.
        bound: latency, bandwidth, both or unknown: what the message size makes it.
        band: normal, low, slow, implausible or unknown: expected over measured time.
    """

    nodes: int | None
    rail_aligned: bool | None
    transfer_ns: int | None
    expected_ns: int | None
    expected_low_ns: int | None
    expected_high_ns: int | None
    expected_from: str
    in_node_ns: int | None
    bound: Literal["latency", "bandwidth", "both", "unknown"]
    band: Literal["normal", "low", "slow", "implausible", "unknown"]
