"""Most of the compute time is in kernels that are as short as kernels get.

## What it measures

The share of compute time in kernels of at most 5 µs.

## Why it costs

A kernel has a floor of about 3 µs: launch gap, prologue, last wave. Splitting work whose kernels are at the floor does
not make them shorter; it only adds collectives. This is one of the ways in which a gain reverses.

## What to do

1. Lower the degree of the split, or do not raise it.
2. Raise the batch, so that each kernel has more to do.
3. Fuse small kernels (compilation, fused norms and rope), then split.

## When it is wrong

Inside a graph with dependent launch the floor is lower; kernels of 2 µs can be healthy.

## Sources

Fits over measured products on H100 and B200: 3.0 to 6.5 µs of fixed time a kernel.
"""

from collections.abc import Iterator

from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import share

FLOOR_NS = 5_000
FEWER = (
    Advice("Raise the batch of a rank; more ranks only make it smaller.", phases=("training",)),
    "Do not raise the degree; lower it, or raise the batch.",
)
NOTABLE = 0.5
"""Of compute time."""
FEWEST = 100
"""Kernels; a handful is no workload."""


@rule(
    Example("kernels of 10 µs", "rank 0 stream 7   G.G.G.G.", found=False),
    Example("kernels of 2 µs", "column 2 µs\nrank 0 stream 7   " + "G." * 100, found=True),
    rests_on=(Doubt.COMPUTE,),
)
def check(run: Run) -> Iterator[Finding]:
    total_ns = short_ns = count = 0
    for trace in run.traces:
        if trace.origin.device == "cpu":
            continue
        duration_ns = trace.activities.of_kind(Kind.COMPUTE).duration_ns
        short = duration_ns <= FLOOR_NS
        total_ns, short_ns = total_ns + int(duration_ns.sum()), short_ns + int(duration_ns[short].sum())
        count += int(short.sum())
    if count < FEWEST or short_ns / total_ns < NOTABLE:
        return
    yield Finding(
        f"{share(short_ns / total_ns)} of kernel time is in {count:,} kernels of at most 5 µs: splitting further "
        "saves nothing there",
        Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks),
        (FEWER, "Fuse small kernels before splitting."),
    )
