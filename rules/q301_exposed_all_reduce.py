"""Tensor-parallel reductions run with no compute beside them.

## What it measures

Exclusive time of all-reduces, reduce-scatters and all-gathers: a collective runs and no compute kernel does. Where all
ranks were recorded, waiting for the last rank is counted apart, under `sync`.

## Why it costs

The next product of a layer needs the reduced activations, so each layer stops twice. At decode batch sizes a message is
some hundred kilobytes: latency, not bandwidth.

## What to do

1. Fuse the reduction with the norm that follows it. vLLM does from 0.17 on at its default optimization level, on Hopper
   and Blackwell, inside a node; before, `--compilation-config.pass_config.fuse_allreduce_rms=true`. SGLang does for
   several models; for others `--flashinfer-allreduce-fusion-backend auto`, before 0.5.14
   `--enable-flashinfer-allreduce-fusion`. Both need FlashInfer: nothing for older devices and other makers.
2. Lower the tensor-parallel degree: two replicas of TP 4 before one of TP 8.
3. Inside one node use a custom all-reduce (do not pass `--disable-custom-all-reduce`).
4. Gradients of data-parallel training: overlap them with the backward pass, in buckets (DDP: `bucket_cap_mb`;
   Megatron: `--overlap-grad-reduce`), and accumulate over more micro-batches.

## When it is wrong

With one rank's trace, waiting for a late peer counts as communication. A faster link does not help a rank that waits.

## Sources

vLLM compilation configuration; SGLang server arguments.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import ACCUMULATE, OVERLAP_GRADIENTS, SMALLER_DEGREE
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

REDUCTIONS = ("all_reduce", "reduce_scatter", "all_gather")
_SHARDED = ("tensor-parallel",)
_FUSED = ("fused all-reduce",)
FUSE = (
    Advice(
        "Fuse it with the norm that follows: --compilation-config.pass_config.fuse_allreduce_rms=true.",
        engines=("vllm",),
        uses=_SHARDED,
        unless=_FUSED,
    ),
    Advice(
        "Look why it is not fused with the norm that follows, as by default on Hopper and Blackwell: --enforce-eager, "
        "a lower optimization level, a message above the limit.",
        engines=("vllm",),
        since="0.17.0",
        makers=("nvidia",),
        uses=_SHARDED,
        unless=_FUSED,
    ),
    Advice(
        "Fuse it with the norm that follows: --flashinfer-allreduce-fusion-backend auto.",
        engines=("sglang",),
        uses=_SHARDED,
        unless=_FUSED,
    ),
    Advice(
        "Fuse it with the norm that follows: --enable-flashinfer-allreduce-fusion.",
        engines=("sglang",),
        uses=_SHARDED,
        unless=_FUSED,
    ),
    Advice("Fuse it with the norm that follows.", uses=_SHARDED, unless=_FUSED),
)
NOTABLE = 0.10
"""Of the window; below it, fusing or lowering the degree changes less than run-to-run noise leaves visible."""


@rule(
    Example(
        "the reduction waits for the product",
        "rank 0 stream 7   GGGG....GGGG....\nrank 0 stream 20  ....AAAA....AAAA",
        found=True,
    ),
    Example(
        "the reduction hides behind the next product",
        "rank 0 stream 7   GGGGGGGGGGGGGGGG\nrank 0 stream 20  ....AAAA....AAAA",
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    lost = cost(run, exposed(Kind.COMMUNICATION, *REDUCTIONS))
    if lost.share < NOTABLE:
        return
    worst = max(breakdown(run), key=lambda rank_split: rank_split.communication.total_ns)
    waiting_told = is_told(run, *REDUCTIONS)
    whose = "" if waiting_told else ", waiting for peers not told apart"
    yield Finding(
        f"reductions take {share(lost.share)} of the window with no compute beside them{whose}",
        Severity.WARNING,
        Basis.MEASURED if waiting_told else Basis.DERIVED,
        Evidence((worst.rank,), longest(worst.communication), REDUCTIONS),
        (
            FUSE,
            OVERLAP_GRADIENTS,
            SMALLER_DEGREE,
            ACCUMULATE,
            "Let work that does not need its result run beside it.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.NETWORK,
    )
