"""Tensors are copied to change their order, type or place.

## What it measures

Exclusive time of kernels that only rearrange: concatenation, gathers, transposes made contiguous, casts.

## Why it costs

Each such kernel reads and writes every byte through device memory and computes nothing. The same values were in the
cache of the kernel that produced them.

## What to do

1. Let the compiler fuse them into their neighbours (vLLM: optimization level 2, the default; no `--enforce-eager`; own
   code: `torch.compile`).
2. Keep weights and KV in the layout that the kernels want. The engines choose the cache's by their attention backend;
   vLLM's `VLLM_KV_CACHE_LAYOUT` overrules it.
3. Write projections into slices of one buffer instead of concatenating afterwards.

## When it is wrong

A gather that is the algorithm (sampling, embedding of few tokens) cannot be fused away.

## Sources

Williams et al., Roofline, 2009: work without arithmetic is bound by memory.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import COMPILE
from analyzer.measures.cost import cost, exposed
from analyzer.measures.moves import moves
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

NOTABLE = 0.03
"""Of the window; compiled decode steps of the traces seen stay below two percent."""
GRAVE = 0.10


@rule(
    Example("a concatenation between products", "rank 0 stream 7   GGGGOOGGGGOO", found=True),
    Example("no rearranging", "rank 0 stream 7   GGGGGGGGGGGG", found=False),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    lost = cost(run, exposed(Kind.MOVEMENT, "layout_copy"))
    if lost.share < NOTABLE:
        return
    rows = [move for move in moves(run) if move.subclass == "layout_copy"]
    yield Finding(
        f"{sum(move.count for move in rows):,} layout copies take {share(lost.share)} of the window",
        Severity.WARNING if lost.share >= GRAVE else Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks, names=tuple(name for move in rows for name in move.names)),
        (
            COMPILE,
            "Keep weights and caches in the layout that the kernels want.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.SPATIAL,
    )
