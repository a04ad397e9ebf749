"""Tensor-parallel reductions run with no compute beside them.

## What it measures

Exclusive time of all-reduces, reduce-scatters and all-gathers: a collective runs and no compute kernel does. Where all
ranks were recorded, waiting for the last rank is counted apart, under `sync`.

## Why it costs

The next product of a layer needs the reduced activations, so each layer stops twice. At decode batch sizes a message is
some hundred kilobytes: latency, not bandwidth.

## What to do

1. Fuse the reduction with the norm that follows it (vLLM: `--compilation-config.pass_config.fuse_allreduce_rms=true`;
   SGLang: `--enable-flashinfer-allreduce-fusion`).
2. Lower the tensor-parallel degree: two replicas of TP 4 before one of TP 8.
3. Inside one node use a custom all-reduce (do not pass `--disable-custom-all-reduce`).

## When it is wrong

With one rank's trace, waiting for a late peer counts as communication. A faster link does not help a rank that waits.

## Sources

vLLM compilation configuration; SGLang server arguments.
"""

from collections.abc import Iterator

from analyzer.measures.breakdown import breakdown
from analyzer.measures.cost import cost, exposed, longest
from analyzer.measures.waits import is_told
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

REDUCTIONS = ("all_reduce", "reduce_scatter", "all_gather")
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
            "Fuse it with the norm that follows (fuse_allreduce_rms, --enable-flashinfer-allreduce-fusion).",
            "Lower the tensor-parallel degree: two replicas of half the degree.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.NETWORK,
    )
