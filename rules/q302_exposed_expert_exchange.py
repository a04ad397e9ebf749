"""Tokens travel to their experts and back with no compute beside them.

## What it measures

Exclusive time of dispatch, combine and other all-to-all exchanges.

## Why it costs

Every expert-parallel layer sends each token to the ranks of its experts and brings the results back. More ranks mean
more destinations a token, smaller messages, and sooner or later a slower rung of the network.

## What to do

1. Overlap two half batches (vLLM: `--enable-dbo`, not with its default exchange; SGLang:
   `--enable-two-batch-overlap`, with an exchange chosen).
2. Match the kernels to the phase (vLLM: `--all2all-backend deepep_low_latency` for decode,
   `--all2all-backend deepep_high_throughput` for prefill; SGLang: `--moe-a2a-backend deepep`, which does by itself).
3. Fewer expert-parallel ranks, or redundant experts close to their tokens (`--enable-eplb`).

## When it is wrong

Dispatch and combine kernels spin until all peers have sent: an unbalanced layer looks like a slow network. Low-latency
kernels with hooks leave the transfer itself invisible between two short kernels.

## Sources

DeepEP, README and legacy documentation; vLLM and SGLang server arguments.
"""

from collections.abc import Iterator

from analyzer.measures.breakdown import breakdown
from analyzer.measures.cost import cost, exposed, longest
from analyzer.measures.waits import is_told
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

EXCHANGES = ("dispatch", "combine", "all_to_all")
WITH_SETUP = (*EXCHANGES, "comm_setup")
"""Sizes and flags go ahead of the tokens; by themselves they may belong to any collective."""
HALVES = (
    Advice(
        "Overlap two half batches: --enable-dbo.",
        engines=("vllm",),
        layout=("experts", "dp > 1"),
        unless=("--enable-dbo",),
    ),
    Advice(
        "Overlap two half batches: --enable-two-batch-overlap.",
        engines=("sglang",),
        layout=("experts",),
        unless=("--enable-two-batch-overlap",),
    ),
    "Let one half batch compute while the other travels.",
)
_MATCH = "Match the kernels to the phase"
_FAST = ("low-latency expert kernels",)
KERNELS = (
    Advice(
        f"{_MATCH}: --all2all-backend deepep_low_latency for decode.",
        engines=("vllm",),
        phases=("decode",),
        layout=("experts", "dp > 1"),
        unless=_FAST,
    ),
    Advice(
        f"{_MATCH}: --all2all-backend deepep_high_throughput for prefill.",
        engines=("vllm",),
        phases=("prefill",),
        layout=("experts", "dp > 1"),
        unless=("DeepEP",),
    ),
    Advice(
        f"{_MATCH}: --moe-a2a-backend deepep.",
        engines=("sglang",),
        phases=("prefill", "decode"),
        layout=("experts",),
        unless=("DeepEP",),
    ),
    Advice(
        f"{_MATCH}: low latency for decode, high throughput for prefill.",
        phases=("prefill", "decode"),
        unless=("DeepEP", *_FAST),
    ),
    Advice(f"{_MATCH}: low latency for decode.", phases=("decode",), unless=_FAST),
)
NOTABLE = 0.10
"""Of the window, as for reductions."""


@rule(
    Example("the experts wait for their tokens", "rank 0 stream 7   GGXXXXMMMMYYYYGG", found=True),
    Example(
        "one half batch travels while the other computes",
        "rank 0 stream 7   GGGGGGGGMMMMMMMM\nrank 0 stream 20  ..XXXX....YYYY..",
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    if not cost(run, exposed(Kind.COMMUNICATION, *EXCHANGES)).share:
        return
    lost = cost(run, exposed(Kind.COMMUNICATION, *WITH_SETUP))
    if lost.share < NOTABLE:
        return
    waiting_told = is_told(run, *WITH_SETUP)
    whose = "" if waiting_told else ", waiting for peers not told apart"
    worst = max(breakdown(run), key=lambda rank_split: rank_split.communication.total_ns)
    yield Finding(
        f"dispatch and combine take {share(lost.share)} of the window with no compute beside them{whose}",
        Severity.WARNING,
        Basis.MEASURED if waiting_told else Basis.DERIVED,
        Evidence((worst.rank,), longest(worst.communication), EXCHANGES),
        (
            HALVES,
            KERNELS,
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.NETWORK,
    )
