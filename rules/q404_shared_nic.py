"""More ranks than NICs: ranks of one node send to other nodes through the same network card.

## What it measures

The NICs nearest to each rank's device, for groups that span nodes. Ranks whose nearest NICs are the same are counted
against the number of these NICs.

## Why it costs

Ranks on one NIC share its bandwidth: two halve it, eight on two NICs quarter it. Exchanges between experts and sends of
keys and values feel all of it, as each rank's bytes leave through its own share.

## What to do

1. Give each device a NIC of its own on the same PCIe switch.
2. Name the NICs to use (`NCCL_IB_HCA`), and let NCCL reach others over NVLink, as it does unless `NCCL_PXN_DISABLE`
   says otherwise.
3. Exchange within nodes first (hierarchical all-to-all), so that fewer bytes leave.

## When it is wrong

NCCL may take a farther NIC that is idle, at the price of a path across host bridges. Cards with several ports carry
more than one rank at full speed.

## Sources

NCCL, src/graph (rings are given the nearest NIC, channels alternate between equally near ones).
"""

from collections import Counter
from collections.abc import Iterator

from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import LinkUse, links, unlinked, unplaced
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK, Topology
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, ranks, share

NOTABLE = 0.05
"""Of the window; below it the network does not matter."""
NAMED = Advice("Where there are more NICs, name them: NCCL_IB_HCA.")
_FOUR = "layout tp=4\n" + "\n".join(f"rank {rank} stream 7   GGGGAAAA" for rank in range(4))


@rule(
    Example(
        "two ranks a node on one card",
        f"nodes a a b b\nnics mlx5_0 mlx5_0 mlx5_0 mlx5_0\n{_FOUR}",
        found=True,
    ),
    Example("a card a rank", f"nodes a a b b\nnics mlx5_0 mlx5_1 mlx5_0 mlx5_1\n{_FOUR}", found=False),
    Example("no rank leaves the node", f"nodes a a a a\nnics mlx5_0 mlx5_0 mlx5_0 mlx5_0\n{_FOUR}", found=False),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    seen: set[tuple[int, ...]] = set()
    for row, use in zip(traffic(run), links(run), strict=True):
        if use.size == 1 or row.exposed_ns < NOTABLE * window_ns or use.ranks in seen:
            continue
        if use.nodes is None:
            raise unplaced(run)
        if use.rung != NETWORK:
            continue
        seen.add(use.ranks)
        if any(rank not in run.topology.nics_of for rank in use.ranks):
            raise unlinked("which NIC each rank uses is")
        worst, per_nic = _worst(run.topology, use)
        if per_nic > 1:
            node = run.topology.node_of[worst[0]]
            cards = ", ".join(run.topology.nics_of[worst[0]])
            yield Finding(
                f"ranks {ranks(worst)} of node {node} have only {cards} near them: "
                f"{per_nic:g} ranks a NIC in {row.kind}, which takes {share(row.exposed_ns / window_ns)} of the window",
                Severity.WARNING,
                Basis.DERIVED,
                Evidence(worst, names=row.names),
                (
                    f"Give each of the {count(len(worst), 'device')} a NIC on its own PCIe switch.",
                    NAMED,
                    "Exchange inside the node first, so that fewer bytes leave it.",
                ),
                cost_ns=round(row.exposed_ns * (1 - 1 / per_nic)),
                cost_share=row.exposed_ns * (1 - 1 / per_nic) / window_ns,
                locality=Locality.NETWORK,
            )


def _worst(topology: Topology, use: LinkUse) -> tuple[tuple[int, ...], float]:
    """The ranks of a node that share most, and how many of them come on one NIC."""
    shared = Counter((topology.node_of[rank], topology.nics_of[rank]) for rank in use.ranks)
    (node, nics), n = max(shared.items(), key=lambda item: (item[1] / len(item[0][1]), item[0]))
    on_them = [rank for rank in use.ranks if (topology.node_of[rank], topology.nics_of[rank]) == (node, nics)]
    return tuple(on_them), n / len(nics)
