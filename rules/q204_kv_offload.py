"""KV cache blocks travel between the device and another tier while the device has nothing else to do.

## What it measures

Exclusive time of kernels that move KV blocks to or from host memory.

## Why it costs

A block that was evicted and comes back crosses the host link twice. It pays when recomputing the block would take
longer, and only if the copy runs beside other work.

## What to do

1. Compare the load with a recomputation: bytes over link speed against tokens times prefill time a token.
2. Give the cache more device memory first (vLLM: `--gpu-memory-utilization`, 0.92 unless set, 0.9 before 0.20;
   `--kv-cache-dtype fp8`; SGLang: `--mem-fraction-static`, `--kv-cache-dtype fp8_e4m3`).
3. Load ahead on a stream of its own (SGLang's HiCache: `--hicache-write-policy`, `--hicache-storage-prefetch-policy`).

## When it is wrong

Loads by the copy engine appear as plain host copies and are counted by `Q201`.

## Sources

Kernel names of vLLM `_swap_blocks_kernel` and SGLang HiCache `transfer_kernel_impl`.
"""

from collections.abc import Iterator

from analyzer.measures.cost import cost, exposed
from analyzer.measures.moves import moves
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

NOTABLE = 0.01
"""Of the window: below it the tier costs less than it can save."""
ROOM = (
    Advice("Give the KV cache more device memory: --gpu-memory-utilization.", engines=("vllm",)),
    Advice("Give the KV cache more device memory: --mem-fraction-static.", engines=("sglang",)),
    "Give the KV cache more device memory.",
)


@rule(
    Example("decode waits for blocks", "rank 0 stream 7   WWWWTTTTGGGG", found=True),
    Example("blocks come beside the work", "rank 0 stream 7   TTTTGGGGGGGG\nrank 0 stream 20  WWWW", found=False),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    lost = cost(run, exposed(Kind.MOVEMENT, "kv_offload"))
    if lost.share < NOTABLE:
        return
    rows = [move for move in moves(run) if move.subclass == "kv_offload"]
    yield Finding(
        f"{sum(move.count for move in rows):,} KV block transfers take {share(lost.share)} of the window alone",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(run.ranks, names=tuple(name for move in rows for name in move.names)),
        (
            "Compare with recomputing the blocks: it may be faster at short contexts.",
            ROOM,
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.DEVICE,
    )
