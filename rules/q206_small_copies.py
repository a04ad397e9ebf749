"""Many small copies follow each other where one would do.

## What it measures

Runs of at least eight copies in one direction on one stream, each of at most 64 KiB, with nothing between them and no
pause of more than 50 µs. The cost is what is left of each run without its longest copy, pauses included, where no
kernel runs: what one packed copy could save at most.

## Why it costs

A copy of a few kilobytes takes as long to start as to move: microseconds on the device, and a call on the host. The
link carries a fraction of what it can. KV pages that are moved one by one, and step inputs sent tensor by tensor, cost
so at every step.

## What to do

1. Pack the inputs of a step into one pinned buffer and send it once, or build them on the device.
2. Move KV in larger pieces (vLLM: a larger `--block-size`, if the backend takes it; SGLang: `--page-size`), or in one
   batched call (CUDA: `cuMemcpyBatchAsync`).

## When it is wrong

The trace does not say whether later copies wait for values of earlier ones. Where the copies run beside compute they
cost nothing and are not counted. What is counted here is part of what `Q201` counts, if host memory is at one end.

## Sources

CUDA C++ Best Practices Guide, batching many small transfers.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.measures.chains import beyond_the_longest, chains
from analyzer.measures.cost import longest, mean_window_ns
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share, size

SMALL_BYTES = 64 << 10
"""At 25 GB/s, PCIe 4.0, these take 2.6 µs: as long as a copy takes to start."""
MANY = 8
PAUSE_NS = 50_000
"""A host that does nothing else issues a copy in 5 to 20 µs."""
NOTABLE = 0.01
"""Of the window, as for copies in general (`Q201`)."""
DIRECTIONS = ("copy_htod", "copy_dtoh", "copy_dtod", "copy_ptop")
LARGER = (
    Advice("Move KV in larger pieces, or in one batched call: --block-size.", engines=("vllm",)),
    Advice("Move KV in larger pieces, or in one batched call: --page-size.", engines=("sglang",)),
    "Move what is kept in pages in larger ones, or in one batched call.",
)


@rule(
    Example(
        "eight pages, one by one",
        "copy 16384\nrank 0 stream 7   GGGGJ|J|J|J|J|J|J|JGGGG",
        found=True,
    ),
    Example(
        "beside the products",
        "copy 16384\nrank 0 stream 7   GGGGGGGGGGGGGGGGGGGG\nrank 0 stream 20  ..J|J|J|J|J|J|J|J..",
        found=False,
    ),
    Example("large pages", "copy 1048576\nrank 0 stream 7   GGGGJ|J|J|J|J|J|J|JGGGG", found=False),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    lost_ns, calls, runs, moved_bytes = 0, 0, 0, 0
    spans: list[tuple[int, int]] = []
    for trace in run.traces:
        activities = trace.activities
        small = (activities.size_bytes != ABSENT) & (activities.size_bytes <= SMALL_BYTES)
        for direction in DIRECTIONS:
            fits = small & activities.subclass.where(lambda word, direction=direction: word == direction)  # type: ignore[misc]
            if not np.any(fits):
                continue
            copy_chains = chains(activities, fits, at_least=MANY, gap_ns=PAUSE_NS)
            saved = beyond_the_longest(trace, copy_chains, gaps=True, nearer=(Kind.COMPUTE, Kind.COMMUNICATION))
            lost_ns += saved.total_ns
            calls, runs = calls + copy_chains.rows.size, runs + copy_chains.count
            moved_bytes += int(activities.size_bytes[copy_chains.rows].sum())
            spans += longest(saved, 1)
    window_ns = mean_window_ns(run) * len(run.traces)
    if not window_ns or lost_ns < NOTABLE * window_ns:
        return
    yield Finding(
        f"{calls:,} copies of {size(moved_bytes / calls)} on average in {runs:,} runs: packed, they could save up to "
        f"{share(lost_ns / window_ns)} of the window",
        Severity.INFO,
        Basis.DERIVED,
        Evidence(run.ranks, tuple(spans[:1])),
        (
            "Pack the inputs of a step into one pinned buffer, or build them on the device.",
            LARGER,
        ),
        cost_ns=lost_ns // len(run.traces),
        cost_share=lost_ns / window_ns,
        locality=Locality.SPATIAL,
    )
