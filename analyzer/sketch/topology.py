"""Where the ranks of a drawing are.

One word a rank, unless said otherwise:

nodes    a a b b
links    0-1=NV18 2-3=SYS        pairs of ranks
nics     mlx5_0 mlx5_1
numa     0 1                     NUMA node of the device
cpus     0 0,1                   NUMA nodes of the CPUs that the process may run on
resident 0=96,1=4 0=1            bytes of the process by NUMA node
environment NCCL_IB_DISABLE=1    of every process
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzer.model.topology import Process, Topology


def read_topology(facts: Mapping[str, str]) -> Topology:
    """What the lines say; nothing where no line names the nodes."""
    if "nodes" not in facts:
        return Topology()
    node_of = dict(enumerate(facts["nodes"].split()))
    return Topology(
        node_of,
        "declared",
        links=dict(_links(facts.get("links", ""))),
        nics_of={rank: (nic,) for rank, nic in enumerate(facts.get("nics", "").split())},
        numa_of={rank: int(node) for rank, node in enumerate(facts.get("numa", "").split())},
        processes=_processes(facts, len(node_of)),
    )


def _processes(facts: Mapping[str, str], ranks: int) -> dict[int, Process]:
    environment = dict(word.split("=", 1) for word in facts.get("environment", "").split())
    cpus = dict(enumerate(facts.get("cpus", "").split()))
    resident = dict(enumerate(facts.get("resident", "").split()))
    if not (environment or cpus or resident):
        return {}
    return {
        rank: Process(_nodes(cpus.get(rank, "")), _resident(resident.get(rank, "")), environment)
        for rank in range(ranks)
    }


def _nodes(text: str) -> tuple[int, ...]:
    return tuple(int(node) for node in text.split(",") if node)


def _resident(text: str) -> dict[int, int]:
    pairs = (entry.partition("=") for entry in text.split(",") if entry)
    return {int(node): int(held) for node, _, held in pairs}


def _links(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    for word in text.split():
        pair, _, kind = word.partition("=")
        first, _, second = pair.partition("-")
        yield (int(first), int(second)), kind
