"""One rank computes more than the others.

## What it measures

The share of each rank's window in which it computes. Found when the busiest rank exceeds the mean by a tenth or more.

## Why it costs

Every collective ends when its last participant arrives. The rank with most work sets the pace, and the others wait for
it inside their collectives or idle at the step's end.

## What to do

1. Data parallel: balance requests over replicas. vLLM does by itself, or leaves it to a balancer of your own
   (`--data-parallel-hybrid-lb`, a server a node; `--data-parallel-external-lb`, a server a rank, with experts only);
   SGLang deals them out in turn unless `--load-balance-method total_tokens`.
2. Expert parallel: switch on expert balancing (vLLM: `--enable-eplb` with `--enable-expert-parallel`; SGLang:
   `--enable-eplb`). A model without experts has none.
3. Pipeline parallel: move layers between stages (vLLM: `VLLM_PP_LAYER_PARTITION`; SGLang:
   `SGLANG_PP_LAYER_PARTITION`).

## When it is wrong

Ranks with different roles (prefill and decode) are not meant to be equal; where run.json states them, nothing is said.
Pipeline stages are `Q103`'s matter.
A rank on a slower or throttled device computes longer on equal work.

## Sources

Imbalance as maximum over mean: a barrier makes every step as long as its slowest rank.
"""

from collections.abc import Iterator

from analyzer.measures.breakdown import breakdown
from analyzer.measures.cost import mean_window_ns
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import share

EXCESS = 0.10
"""Of the mean compute share; equal shards on one node differ by a few percent."""
EXPERTS = (
    Advice(
        "Balance experts over ranks: --enable-eplb, with --enable-expert-parallel.",
        engines=("vllm",),
        layout=("experts",),
        unless=("--enable-eplb",),
    ),
    Advice(
        "Balance experts over ranks: --enable-eplb.",
        engines=("sglang",),
        layout=("experts",),
        unless=("--enable-eplb",),
    ),
)
REQUESTS = (
    Advice(
        "Balance requests over replicas: --load-balance-method total_tokens.",
        engines=("sglang",),
        layout=("dp > 1",),
        unless=("--load-balance-method",),
    ),
    "Balance the work: samples or requests over replicas, tokens over experts, layers over stages.",
)


@rule(
    Example("rank 1 has twice the work", "rank 0 stream 7   GGGG....AAAA\nrank 1 stream 7   GGGGGGGGAAAA", found=True),
    Example("equal work", "rank 0 stream 7   GGGGGGGGAAAA\nrank 1 stream 7   GGGGGGGGAAAA", found=False),
    rests_on=(Doubt.COMPUTE,),
)
def check(run: Run) -> Iterator[Finding]:
    rank_splits = [rank_split for rank_split in breakdown(run) if rank_split.window.total_ns]
    stages = run.layout.sizes.get("pp", 1) > 1
    if run.workload.is_split_by_role or stages or len(rank_splits) < 2:  # noqa: PLR2004 (one has nobody to differ from)
        return
    shares = {rank_split.rank: rank_split.compute.total_ns / rank_split.window.total_ns for rank_split in rank_splits}
    mean = sum(shares.values()) / len(shares)
    busiest = max(shares, key=lambda rank: shares[rank])
    if mean == 0 or shares[busiest] < (1 + EXCESS) * mean:
        return
    excess = shares[busiest] - mean
    window_ns = mean_window_ns(run)
    yield Finding(
        f"rank {busiest} computes {share(shares[busiest])} of its window, the mean is {share(mean)}",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence((busiest,)),
        (
            EXPERTS,
            REQUESTS,
            "Compare device clocks: equal work on a throttled device looks the same.",
        ),
        cost_ns=int(excess * window_ns),
        cost_share=excess,
    )
