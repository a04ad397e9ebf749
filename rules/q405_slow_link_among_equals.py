"""One group's collectives are slower than the same collectives of other groups.

## What it measures

Groups of one size that do the same collective with the same message on the same rung: the transfer of a call, without
waiting, of each against the median of the others.

## Why it costs

Replicas that share the load wait for the slowest, and a request that lands there takes longer.

## What to do

1. Look for errors and downgraded links on those devices (`nvidia-smi nvlink -e`, `amd-smi xgmi -m`,
   `hccn_tool -i N -stat -g`, `ibstat`, PCIe width in `lspci -vv`).
2. Swap the ranks of two groups: a slow link stays with the devices, a slow workload moves with the ranks.

## When it is wrong

Speed is weak evidence. Congestion, another job on the same network and overlap with compute look the same.

## Sources

NCCL test practice: bus bandwidth of equal groups within a machine agrees to a few percent.
"""

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.shared import LINK_ERRORS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.links import LinkUse, links
from analyzer.measures.traffic import Traffic, traffic
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import duration, ranks, size

SLOWER = 1.3
"""Times the median of the others; equal groups differ by a few percent, NCCL's own runs by up to ten."""
FEWEST = 3
"""Groups that have the collective, from which one can be odd."""
NOTABLE = 0.05
"""Of the window."""

_THREE_PAIRS = "links 0-1=NV4 2-3=NV4 4-5=NV4\nnodes a a a a a a\ngroups 0-1 2-3 4-5\nmessage 4194304\n"


@rule(
    Example(
        "one pair of three is slower",
        _THREE_PAIRS
        + "\n".join(f"rank {rank} stream 7   GGGGAAAA" for rank in range(4))
        + "\n"
        + "\n".join(f"rank {rank} stream 7   GGGGAAAAAAAA" for rank in (4, 5)),
        found=True,
    ),
    Example(
        "three equal pairs",
        _THREE_PAIRS + "\n".join(f"rank {rank} stream 7   GGGGAAAA" for rank in range(6)),
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    alike: dict[tuple[object, ...], list[tuple[Traffic, LinkUse]]] = defaultdict(list)
    for row, use in zip(traffic(run), links(run), strict=True):
        if row.exposed_ns < NOTABLE * window_ns or use.size <= 1:
            continue
        alike[use.kind, use.size, use.message_bytes, use.rung].append((row, use))
    for rows in alike.values():
        if len(rows) >= FEWEST:
            yield from _odd(rows, window_ns)


def _odd(rows: list[tuple[Traffic, LinkUse]], window_ns: int) -> Iterator[Finding]:
    """Groups slower than the median of the others by more than `SLOWER`."""
    if any(use.transfer_ns is None for _, use in rows):
        raise MissingEvidenceError(
            "waiting is not told from transfer in every group", "record all ranks of all groups on one clock"
        )
    for row, use in rows:
        others = median(other.transfer_ns or 0 for _, other in rows if other is not use)
        transfer_ns = use.transfer_ns or 0
        if not use.is_graded or transfer_ns <= SLOWER * others:
            continue
        message = f" of {size(use.message_bytes)}" if use.message_bytes else ""
        cost_ns = min(round((transfer_ns - others) * row.count), row.exposed_ns)
        yield Finding(
            f"{use.kind}{message} of ranks {ranks(use.ranks)} takes {duration(transfer_ns)} without waiting, "
            f"{duration(others)} in the {len(rows) - 1} other groups: consistent with a slower link",
            Severity.INFO,
            Basis.DERIVED,
            Evidence(use.ranks, names=row.names),
            (
                LINK_ERRORS,
                "Swap the ranks of two groups: a slow link stays with the devices.",
            ),
            cost_ns=cost_ns,
            cost_share=cost_ns / window_ns,
            locality=Locality.NETWORK,
        )
