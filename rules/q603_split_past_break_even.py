"""Communicating takes longer than computing.

## What it measures

Exposed communication, with waiting for peers, against compute, over the window. Where one rank is late persistently,
waiting is left out: it is late at any degree.

## Why it costs

Halving the degree doubles compute a rank and removes at most all of the communication. Where communication exceeds
compute, half the degree could be as fast on half the devices.

## What to do

1. Record the same load at half the degree and let `shardscope sweep` decide.
2. Spend the freed devices on replicas: throughput per device rises even where latency does not.
3. Data-parallel training: overlap gradients with the backward pass, and accumulate over more micro-batches.

## When it is wrong

It is a bound, not a verdict: half the degree still communicates, and may not have the memory. Waiting caused by one
late rank stays at any degree; see `Q304`. Prefill and decode ranks are no halves of one another
(`shardscope pd`), and stages wait for one another at any degree (`Q103`).

## Sources

Total = compute / n + communication(n): a step from n to n/2 gains as long as communication exceeds compute at n.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.shared import ACCUMULATE, OVERLAP_GRADIENTS
from analyzer.measures.cost import between_ranks, cost, mean_window_ns
from analyzer.measures.skew import late_rank
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import SHARDED, Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import share

HALF = (*OVERLAP_GRADIENTS, "Record the same load at half the degree and compare: shardscope sweep.")
REPLICAS = (ACCUMULATE, Advice("Spend the freed devices on replicas.", uses=SHARDED))


@rule(
    Example("twice as long in collectives", "rank 0 stream 7   GGAAAAGGAAAA", found=True),
    Example("most of the time computes", "rank 0 stream 7   GGGGGGAAGGGGGGAA", found=False),
    rests_on=(Doubt.COMMUNICATION, Doubt.COMPUTE),
)
def check(run: Run) -> Iterator[Finding]:
    if run.workload.is_split_by_role or run.layout.sizes.get("pp", 1) > 1:
        return
    added = cost(run, (lambda rank_split: rank_split.communication.total_ns) if _has_late_rank(run) else between_ranks)
    computing = cost(run, lambda rank_split: rank_split.compute.total_ns)
    excess_ns = added.time_ns - computing.time_ns
    if excess_ns <= 0:
        return
    window_ns = mean_window_ns(run)
    yield Finding(
        f"communication between ranks takes {share(added.share)} of the window, compute {share(computing.share)}: "
        "half the degree may be as fast",
        Severity.WARNING,
        Basis.DERIVED,
        Evidence(run.ranks),
        (
            HALF,
            REPLICAS,
        ),
        cost_ns=excess_ns,
        cost_share=excess_ns / window_ns,
    )


def _has_late_rank(run: Run) -> bool:
    """Whether one rank is late whatever the degree: waiting for it says nothing of the split."""
    try:
        return late_rank(run) is not None
    except MissingEvidenceError:
        return False
