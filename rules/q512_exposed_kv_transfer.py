"""Keys and values travel from prefill to decode while nothing is computed for their request.

## What it measures

Of each hand-over, from the begin of its prefill to the end of its first decode step, the transfer that lies under
neither; needs a run that holds both roles and notes its messages at both ends.

## Why it costs

It lengthens the time to the first token by its whole length. Sent layer by layer, all but the last layer's keys and
values can leave while later layers are computed.

## What to do

1. Send each layer when it is done (`shardscope collect pd --transfer layer`; vLLM: a connector that saves by layer).
2. Use the fastest path between the two: NVLink or RDMA, not TCP.
3. Move fewer bytes: FP8 keys and values, or a prefill rank that the router picks for what it holds.

## When it is wrong

A transfer that waits for the decode rank to be ready counts as queue, not here.

## Sources

The hand-over ledger of `shardscope pd`.
"""

from collections.abc import Iterator

from analyzer.measures.cost import mean_window_ns
from analyzer.model.run import Run
from analyzer.pd.ledger import Pair, ledger
from analyzer.pd.pools import ranks_of
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import duration, share

NOTABLE = 0.05
"""Of a hand-over: below it the prefill itself varies by more from request to request."""


@rule(
    Example(
        "all layers are sent after the last",
        """
        roles prefill decode
        kv 0>1:8388608@6-0-10
        rank 0 stream 7   GGGGGG......
        rank 0 host       g...........
        rank 0 steps      PPPPPP......
        rank 1 stream 7   ..........TT
        rank 1 host       ..........g.
        rank 1 steps      ..........DD
        """,
        found=True,
    ),
    Example(
        "the transfer hides beneath the prefill",
        """
        roles prefill decode
        kv 0>1:8388608@2-0-5
        rank 0 stream 7   GGGGGG......
        rank 0 host       g...........
        rank 0 steps      PPPPPP......
        rank 1 stream 7   ......TT....
        rank 1 host       ......g.....
        rank 1 steps      ......DD....
        """,
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    pair = Pair(run, run, ranks_of(run, "prefill"), ranks_of(run, "decode"))
    if not pair.sources or not pair.targets:
        return
    handed = ledger(pair)
    exposed_ns = sum(each.terms["transfer"] for each in handed)
    exposed_share = exposed_ns / sum(each.total_ns for each in handed)
    if exposed_share < NOTABLE:
        return
    cost_ns, window_ns = exposed_ns // len(pair.targets), mean_window_ns(run)
    worst = sorted(handed, key=lambda each: -each.terms["transfer"])[:3]
    yield Finding(
        f"{duration(exposed_ns // len(handed))} of KV transfer a hand-over is hidden by nothing, "
        f"{share(exposed_share)} of it",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(
            pair.sources + pair.targets,
            tuple((each.start_ns, each.end_ns) for each in worst),
            run.workload.handover.carriers,
        ),
        (
            "Send each layer's keys and values when the layer is done.",
            "Use the fastest path between the two ranks, and 8-bit keys and values.",
        ),
        cost_ns=cost_ns,
        cost_share=min(cost_ns / window_ns, 1.0),
        locality=Locality.NETWORK,
    )
