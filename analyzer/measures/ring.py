"""Times of collectives on a ring from three figures of a link, where no measured table is at hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RingLink:
    """One rung as NCCL's tuning sees it.

    Attributes:
        base_ns: of any collective.
        hop_ns: each step of the ring from rank to rank.
        bytes_per_s: of one GPU in one direction.
    """

    base_ns: float
    hop_ns: float
    bytes_per_s: float


LL_BASE_NS = 6600.0
"""NCCL's LL protocol on a ring, from NVIDIA/nccl src/graph/tuning.cc, 2026-06."""
LL_HOP_NS = {"nvlink": 600.0, "pcie": 1000.0, "network": 2700.0}

_SHARES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
"""How often the whole message passes a ring."""


def ring_ns(link: RingLink, operation: str, message_bytes: float, ranks: int) -> float:
    """Nanoseconds of one call on a ring: base + steps × hop + share × (n - 1)/n × S/B.

    Args:
        link: the slowest of the ring.
        operation: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`; others count as one send.
        message_bytes: the reduced tensor, the gathered output, the scattered input, the whole send buffer.
        ranks: of the group.
    """
    if ranks <= 1:
        return 0.0
    passes = _SHARES.get(operation)
    if passes is None:
        return link.base_ns + message_bytes / link.bytes_per_s * 1e9
    wire_ns = passes * (1 - 1 / ranks) * message_bytes / link.bytes_per_s * 1e9
    return link.base_ns + passes * (ranks - 1) * link.hop_ns + wire_ns
