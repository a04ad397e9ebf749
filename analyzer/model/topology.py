"""Where ranks are: nodes, devices, NICs, NUMA nodes, and what is known of the links between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import combinations

PEER, PCIE, SOCKET, NETWORK = "peer", "pcie", "socket", "network"
RUNGS = (PEER, PCIE, SOCKET, NETWORK)
"""Between ranks, nearest first: scale-up links, PCIe below one CPU, PCIe across CPUs, NICs."""

_RUNG_OF_KIND = (
    (re.compile(r"NV\d*|NVL|NVB|XGMI|HCCS(_SW)?|SIO|C2C|LOC"), PEER),
    (re.compile(r"PIX|PXB|P2C|PXN|PHB|NODE|PCIE"), PCIE),
    (re.compile(r"SYS|SOC"), SOCKET),
)
"""Kinds as nvidia-smi, rocm-smi, npu-smi and NCCL print them."""

_NEARNESS = ("LOC", "NV", "C2C", "PIX", "PXB", "P2C", "PHB", "NODE", "SYS")
"""Kinds of path between a device and a NIC, nearest first; others are farther."""


@dataclass(frozen=True, slots=True)
class Process:
    """A rank's process, as its host saw it.

    Attributes:
        cpu_nodes: NUMA nodes of the CPUs that it may run on; empty where unknown.
        resident_bytes: memory by NUMA node that holds it.
        environment: variables that bear on communication.
    """

    cpu_nodes: tuple[int, ...] = ()
    resident_bytes: dict[int, int] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topology:
    """Placement of ranks. Whatever a rank is absent from is unknown of it.

    Attributes:
        node_of: node name of each rank.
        source: of `node_of`: `declared`, `metadata`, `topology.json` or `unknown`.
        device_of: device number of each rank within its node.
        domain_of: scale-up domain of each rank where one spans nodes (a super pod).
        links: kind of link between two ranks of one node, lower rank first ("NV18", "PIX", "SYS").
        nics_of: NICs nearest to each rank's device, several where equally near.
        numa_of: NUMA node of each rank's device.
        processes: of each rank.
        cores_of: processor cores of each node, as its system counts them.
    """

    node_of: dict[int, str] = field(default_factory=dict)
    source: str = "unknown"
    device_of: dict[int, int] = field(default_factory=dict)
    domain_of: dict[int, str] = field(default_factory=dict)
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    nics_of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    numa_of: dict[int, int] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    cores_of: dict[str, int] = field(default_factory=dict)

    def nodes(self, ranks: tuple[int, ...]) -> tuple[str, ...] | None:
        """Distinct nodes of a group in order of first rank; None where a rank is unplaced."""
        if any(rank not in self.node_of for rank in ranks):
            return None
        return tuple(dict.fromkeys(self.node_of[rank] for rank in ranks))

    def rung(self, ranks: tuple[int, ...]) -> str | None:
        """The farthest rung that any two ranks of a group talk over; None where it is not recorded."""
        nodes = self.nodes(ranks)
        domains = {self.domain_of.get(rank) for rank in ranks}
        if nodes is None or len(ranks) <= 1:
            return None
        if len(nodes) > 1:
            return PEER if len(domains) == 1 and None not in domains else NETWORK
        rungs = {rung_of(self.links.get(pair, "")) for pair in combinations(sorted(ranks), 2)}
        known = {rung for rung in rungs if rung}
        return max(known, key=RUNGS.index) if len(known) == len(rungs) else None

    def is_rail_aligned(self, ranks: tuple[int, ...]) -> bool | None:
        """Whether a group has the same device numbers on each of its nodes; None where a device is unknown."""
        nodes = self.nodes(ranks)
        if nodes is None or any(rank not in self.device_of for rank in ranks):
            return None
        rails = {frozenset(self.device_of[rank] for rank in ranks if self.node_of[rank] == node) for node in nodes}
        return len(rails) == 1


def rung_of(kind: str) -> str | None:
    """The rung that a kind of link belongs to; None for a kind that is not known."""
    return next((rung for pattern, rung in _RUNG_OF_KIND if pattern.fullmatch(kind)), None)


def farness(kind: str) -> int:
    """Order of the kinds of path between a device and a NIC, 0 nearest."""
    stem = "NV" if kind.startswith("NV") else kind
    return _NEARNESS.index(stem) if stem in _NEARNESS else len(_NEARNESS)
