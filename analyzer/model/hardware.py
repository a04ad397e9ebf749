"""Figures of a site's own machines: what they override of the figures that ship."""

from __future__ import annotations

from dataclasses import dataclass, field

NVLINK, PCIE, NETWORK = "nvlink", "pcie", "network"
LINKS = (NVLINK, PCIE, NETWORK)
"""Links that a site may state, nearest first."""


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """A link as the site states it.

    Attributes:
        gigabytes_per_s: bus bandwidth that large messages reach (nccl-tests' busbw), None to keep what ships.
        hop_us: latency of one hop, None to keep what ships.
    """

    gigabytes_per_s: float | None = None
    hop_us: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """Times of one collective over message sizes, measured on the site.

    Attributes:
        operation: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `send_recv`.
        ranks: of the group.
        nodes: that held them.
        device: its name as the driver writes it, "" for any.
        source: where the times are from.
        message_bytes: sizes, as nccl-tests counts them.
        time_us: one call, as many as sizes.
    """

    operation: str
    ranks: int
    nodes: int
    device: str
    source: str
    message_bytes: tuple[int, ...]
    time_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a site states; empty where it states nothing.

    Attributes:
        links: by name, as in `LINKS`.
        series: measured collectives.
    """

    links: dict[str, LinkFigures] = field(default_factory=dict)
    series: tuple[MeasuredCurve, ...] = ()
