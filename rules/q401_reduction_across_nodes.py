"""A tensor-parallel or expert-parallel group spans nodes.

## What it measures

The nodes of each group that reduces or exchanges in every layer, and the time its collectives take.

## Why it costs

Inside a node, ranks talk over NVLink, XGMI or HCCS at hundreds of gigabytes a second and microseconds of latency.
Between nodes there is one NIC a rank, and each hop costs several times more. Twice a layer, that latency is on the path
of every token.

## What to do

1. Keep tensor parallelism inside a node; use pipeline or data parallelism between nodes. Gradients of data-parallel
   training may cross nodes: overlap them with the backward pass.
2. Expert parallelism across nodes: one copy a node (DeepEP's inter-node kernels), experts limited to few nodes a token.
3. Check rail alignment and one NIC a rank (`shardscope collect topology`).

## When it is wrong

Ranks of one NVLink domain that spans hosts (GB200 NVL72) are near although their host names differ; a super pod of a
rank table is known as such and not found. Large reductions of
a prefill can run nearly as fast over eight NICs as inside the node.

## Sources

NCCL's latency constants (src/graph/tuning.cc): 0.6 µs a hop over NVLink, 2.7 µs over the network.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import OVERLAP_GRADIENTS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import LinkUse, links, unplaced
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import SHARDED, Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, duration, ranks, share, size

KEEP_INSIDE = (
    *OVERLAP_GRADIENTS,
    Advice("Keep the group inside a node; put pipeline or data parallelism between nodes.", uses=SHARDED),
    "Keep what talks in every layer inside a node.",
)
EACH_LAYER = ("all_reduce", "reduce_scatter", "all_gather", "dispatch", "combine", "all_to_all")


@rule(
    Example(
        "two ranks on two hosts",
        "layout tp=2\nnodes alpha beta\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=True,
    ),
    Example(
        "two ranks on one host",
        "layout tp=2\nnodes alpha alpha\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA",
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    for row, use in zip(traffic(run), links(run), strict=True):
        if row.kind not in EACH_LAYER or use.size == 1:
            continue
        if use.nodes is None:
            raise unplaced(run)
        if use.rung != NETWORK or not row.exposed_ns:
            continue
        axis = run.layout.axis_of(use.ranks, row.kind)
        yield Finding(
            f"{row.kind} of {axis or 'a'} group {ranks(use.ranks)} crosses {count(use.nodes, 'node')} and takes "
            f"{share(row.exposed_ns / window_ns)} of the window{_beside(use)}",
            Severity.WARNING,
            Basis.DERIVED,
            Evidence(use.ranks, names=row.names),
            (
                KEEP_INSIDE,
                "Check that each rank has a NIC of its own on the same rail.",
            ),
            cost_ns=row.exposed_ns,
            cost_share=row.exposed_ns / window_ns,
            locality=Locality.NETWORK,
        )


def _beside(use: LinkUse) -> str:
    """What the same call takes inside one node, where both are known, and rails that are not aligned."""
    rails = "; its ranks are on different rails" if use.rail_aligned is False else ""
    if use.in_node is None or use.transfer_ns is None or use.message_bytes is None:
        return rails
    return (
        f": {size(use.message_bytes)} in {duration(use.transfer_ns)} without waiting, "
        f"{duration(use.in_node.time_ns)} expected inside one node ({use.in_node.says}){rails}"
    )
