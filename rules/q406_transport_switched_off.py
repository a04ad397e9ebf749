"""A setting keeps collectives from the fastest transport that the machine has.

## What it measures

Environment variables of the ranks' processes that switch off RDMA, peer access or NVLink sharing, for groups that cross
the rung these serve.

## Why it costs

Over TCP sockets every byte passes the host's memory and CPU: a few gigabytes a second in place of 25 to 50 a NIC, and
latency of tens of microseconds. Without peer access the ranks of a node exchange through host memory.

## What to do

1. Unset the variable and read NCCL's lines at start-up (`NCCL_DEBUG=INFO`): `via NET/IB`, `via P2P`.
2. Where it works around a fault (a hang, wrong virtualization settings), report and repair that instead.

## When it is wrong

The machine may have no RDMA device, or peer access may not work on it (consumer boards, some hypervisors).

## Sources

NCCL, environment variables (NCCL_IB_DISABLE, NCCL_NET, NCCL_P2P_DISABLE, NCCL_P2P_LEVEL).
"""

from collections.abc import Iterator

from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import links, unlinked, unplaced
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK, PEER
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import ranks, share

NOTABLE = 0.05
"""Of the window."""
ON = ("1", "true", "TRUE", "y", "Y")
SWITCHES = {
    NETWORK: {
        "NCCL_IB_DISABLE": ON,
        "NCCL_NET": ("Socket", "socket"),
        "NCCL_NET_GDR_LEVEL": ("0", "LOC"),
    },
    PEER: {"NCCL_P2P_DISABLE": ON, "NCCL_P2P_LEVEL": ("0", "LOC")},
}
"""Rung → variables that switch off its fastest transport → the values that do."""
START_UP = Advice("Read the library's lines at start-up: NCCL_DEBUG=INFO.")
INSTEAD = {NETWORK: "RDMA", PEER: "peer access"}


@rule(
    Example(
        "RDMA is switched off",
        "layout tp=2\nnodes a b\nnics mlx5_0 mlx5_0\nenvironment NCCL_IB_DISABLE=1\n"
        "rank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=True,
    ),
    Example(
        "nothing is switched off",
        "layout tp=2\nnodes a b\nnics mlx5_0 mlx5_0\nenvironment NCCL_DEBUG=INFO\n"
        "rank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=False,
    ),
    Example(
        "RDMA is switched off inside a node",
        "layout tp=2\nnodes a a\nlinks 0-1=NV18\nenvironment NCCL_IB_DISABLE=1\n"
        "rank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    seen: set[tuple[int, ...]] = set()
    for row, use in zip(traffic(run), links(run), strict=True):
        if use.size == 1 or row.exposed_ns < NOTABLE * window_ns or use.ranks in seen or use.is_custom:
            continue
        seen.add(use.ranks)
        if use.nodes is None:
            raise unplaced(run)
        if use.rung not in SWITCHES:
            continue
        processes = [run.topology.processes.get(rank) for rank in use.ranks]
        if not any(processes):
            raise unlinked("the environment of the ranks' processes is")
        values = {item for process in processes if process for item in process.environment.items()}
        switched = sorted(f"{name}={value}" for name, value in values if value in SWITCHES[use.rung].get(name, ()))
        if switched:
            yield Finding(
                f"the setting {', '.join(switched)} keeps {row.kind} of ranks {ranks(use.ranks)} from "
                f"{INSTEAD[use.rung]}; it takes {share(row.exposed_ns / window_ns)} of the window",
                Severity.WARNING,
                Basis.DERIVED,
                Evidence(use.ranks, names=(*switched, *row.names)),
                (
                    "Unset the variable.",
                    START_UP,
                    "Where it works around a fault, repair that instead.",
                ),
                cost_ns=row.exposed_ns,
                cost_share=row.exposed_ns / window_ns,
                locality=Locality.NETWORK,
            )
