"""A tensor-parallel or expert-parallel group talks over PCIe or across sockets although nearer ranks are at hand.

## What it measures

The links between the ranks of each group that communicates in every layer, as `shardscope collect topology` recorded
them. A group is found whose farthest pair talks across CPU sockets, or over PCIe while other pairs of it have a
scale-up link (NVLink, XGMI, HCCS).

## Why it costs

A ring is as fast as its slowest link. Measured on L40S over PCIe, large all-reduces reach 20 GB/s on two ranks, 5 on
four and 1.5 on eight, where four and eight span host bridges and sockets; two H100 reach 296 GB/s over NVLink.

## What to do

1. Choose devices that share the fastest link (`CUDA_VISIBLE_DEVICES` by `nvidia-smi topo -m`; AMD:
   `ROCR_VISIBLE_DEVICES` by `amd-smi topology`; Ascend: `ASCEND_RT_VISIBLE_DEVICES` by `npu-smi info -t topo`).
2. Lower the degree to the ranks that are near, and put pipeline or data parallelism between the rest.

## When it is wrong

Where all devices of the machine are this far from each other there is no nearer choice; a group whose messages are
small pays latency only.

## Sources

`nvidia-smi topo -m` (its legend orders the links); all-reduces measured on L40S and H100 by NVIDIA's aiconfigurator.
"""

from collections.abc import Iterator
from itertools import combinations

from analyzer.measures.advice.shared import OVERLAP_GRADIENTS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import LinkUse, links, unlinked, unplaced
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.topology import PCIE, PEER, SOCKET, Topology, rung_of
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import SHARDED, Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import ranks, share

EACH_LAYER = ("all_reduce", "reduce_scatter", "all_gather", "dispatch", "combine", "all_to_all")
_CHOOSE = "Choose devices that share the fastest link"
NEARER = (
    Advice(f"{_CHOOSE}: CUDA_VISIBLE_DEVICES by `nvidia-smi topo -m`."),
    Advice(f"{_CHOOSE}: ROCR_VISIBLE_DEVICES by `amd-smi topology`."),
    Advice(f"{_CHOOSE}: ASCEND_RT_VISIBLE_DEVICES by `npu-smi info -t topo`."),
    f"{_CHOOSE}.",
)
FEWER = (
    *OVERLAP_GRADIENTS,
    Advice("Lower the degree to the ranks that are near; pipeline or data parallelism between the rest.", uses=SHARDED),
)
NOTABLE = 0.05
"""Of the window; below it the path does not matter."""
AXES = ("tp", "ep", "cp", "dcp")
"""Whose groups communicate in every layer."""


@rule(
    Example(
        "two ranks on two sockets",
        "layout tp=2\nnodes a a\nlinks 0-1=SYS\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=True,
    ),
    Example(
        "two ranks with NVLink",
        "layout tp=2\nnodes a a\nlinks 0-1=NV18\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=False,
    ),
    Example(
        "two ranks below one PCIe switch of a machine without faster links",
        "layout tp=2\nnodes a a\nlinks 0-1=PIX\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    for row, use in zip(traffic(run), links(run), strict=True):
        axis = run.layout.axis_of(use.ranks, row.kind)
        of_layers = row.kind in EACH_LAYER and (axis is None or axis in AXES) and use.size != 1
        if not of_layers or row.exposed_ns < NOTABLE * window_ns:
            continue
        if use.nodes is None:
            raise unplaced(run)
        if use.rung == "node":
            raise unlinked("the links between the ranks are")
        if not _is_avoidable(run.topology, use):
            continue
        path = "across CPU sockets" if use.rung == SOCKET else "over PCIe"
        yield Finding(
            f"{row.kind} of {axis or 'a'} group {ranks(use.ranks)} runs {path} ({_kinds(run.topology, use)}) and takes "
            f"{share(row.exposed_ns / window_ns)} of the window",
            Severity.WARNING,
            Basis.DERIVED,
            Evidence(use.ranks, names=row.names),
            (
                NEARER,
                FEWER,
            ),
            cost_ns=row.exposed_ns,
            cost_share=row.exposed_ns / window_ns,
            locality=Locality.NUMA if use.rung == SOCKET else Locality.NETWORK,
        )


def _is_avoidable(topology: Topology, use: LinkUse) -> bool:
    """Across sockets; or over PCIe beside scale-up links in the same group."""
    if use.rung == PCIE:
        return any(rung_of(topology.links.get(pair, "")) == PEER for pair in combinations(sorted(use.ranks), 2))
    return use.rung == SOCKET


def _kinds(topology: Topology, use: LinkUse) -> str:
    """Kinds of the group's farthest links, as the tool prints them."""
    pairs = combinations(sorted(use.ranks), 2)
    return ", ".join(sorted({kind for pair in pairs if rung_of(kind := topology.links.get(pair, "")) == use.rung}))
