"""Copies of one size go from host to device again and again.

## What it measures

Copies from host to device that state the same size, at least eight times in the window, and together move at least
8 MiB.

## Why it costs

State that does not change between steps (weights that were offloaded, tables, masks, whole index buffers) is paid for
once if it stays, and every step if it is sent again.

## What to do

1. Keep the tensor on the device and send only what changed.
2. If these are offloaded weights, free memory for them (vLLM and SGLang: lower `--cpu-offload-gb`, quantize,
   raise the tensor-parallel degree).
3. If these are KV blocks, see `Q204`.

## When it is wrong

Equal sizes are not equal bytes: new inputs of a fixed shape look the same. The trace holds no content.

## Sources

Temporal locality: a value used again soon should stay near.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import size

REPEATS = 8
ROOM = (
    Advice("If these are offloaded weights, make room for them: lower --cpu-offload-gb.", engines=("vllm",)),
    Advice("If these are offloaded weights, make room for them: lower --cpu-offload-gb.", engines=("sglang",)),
    "If these are offloaded weights, make room for them.",
)
NOTABLE_BYTES = 8 << 20
"""Inputs of a decode step are some kilobytes; eight steps of them stay far below this."""


@rule(
    Example("a megabyte before every product", "rank 0 stream 7   HG|HG|HG|HG|HG|HG|HG|HG|HG", found=True),
    Example("two copies", "rank 0 stream 7   HHGGGGGGHHGGGGGG", found=False),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    for trace in run.traces:
        copies = trace.activities.take(trace.activities.subclass.where(lambda word: word == "copy_htod"))
        if len(copies) < REPEATS:
            continue
        stated = copies.size_bytes[copies.size_bytes != ABSENT]
        if stated.size == 0:
            raise MissingEvidenceError("no copy states its bytes", "record with torch.profiler, which writes `bytes`")
        sizes, repeats = np.unique(stated, return_counts=True)
        worst = int(np.argmax(np.where(repeats >= REPEATS, sizes * repeats, 0)))
        if repeats[worst] < REPEATS or sizes[worst] * repeats[worst] < NOTABLE_BYTES:
            continue
        chosen = copies.take(copies.size_bytes == sizes[worst])
        time_ns = chosen.union().total_ns
        window_ns = trace.window.total_ns
        yield Finding(
            f"rank {trace.rank} sends {size(int(sizes[worst]))} from host to device {int(repeats[worst]):,} times",
            Severity.INFO,
            Basis.DERIVED,
            Evidence((trace.rank,), names=tuple(dict.fromkeys(chosen.name.tolist()))),
            (
                "Keep the tensor on the device and send what changed.",
                ROOM,
            ),
            cost_ns=time_ns,
            cost_share=time_ns / window_ns,
            locality=Locality.TEMPORAL,
        )
