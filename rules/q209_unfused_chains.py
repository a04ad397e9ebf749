"""Norms, activations and other pointwise kernels follow each other, each with a trip through device memory.

## What it measures

Chains of at least three pointwise kernels (elementwise, norm, activation, reduction, rotary, quantization) on one
stream with nothing between them. The cost is each chain without its longest kernel: fused, a chain takes about as long
as the kernel that moves most.

## Why it costs

A pointwise kernel computes little and moves all its values from device memory and back. In a chain each reads what the
one before wrote. Fused, the values stay in registers: the same work at the price of one trip.

## What to do

1. Let the compiler fuse them (vLLM: no `--enforce-eager`; own code: `torch.compile`).
2. Use fused kernels: residual and norm, activation and gate, norm and quantization. Those of vLLM are on where they
   apply (`pass_config` of `--compilation-config` has the switches).

## When it is wrong

Kernels on unlike shapes do not fuse, and a reduction over a row ends a fusion in some compilers: then less is saved.
Kernels that a compiler generated are not counted, they are what is left. If the host launches too slowly (`Q602`), the
device waits between them and a fusion saves launches instead.

## Sources

Williams et al., Roofline, 2009. Dao et al., FlashAttention, 2022, on fusing what is bound by memory.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.measures.advice.shared import COMPILE
from analyzer.measures.chains import beyond_the_longest, chains
from analyzer.measures.cost import longest, mean_window_ns
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

POINTWISE = ("elementwise", "norm", "activation", "reduce", "rope", "quantize")
MANY = 3
"""Two in a row (a norm and a quantization) are what engines ship; three are seldom meant."""
PAUSE_NS = 20_000
"""Longer pauses are the host's, and `Q602` counts them."""
NOTABLE = 0.05
"""Of the window; compiled decode steps of the traces seen stay below three percent."""
GRAVE = 0.15


@rule(
    Example("four passes over one tensor", "rank 0 stream 7   GGGGE|E|EENGGGG", found=True),
    Example("a norm after each product", "rank 0 stream 7   GGGGNGGGGNGGGGN", found=False),
    rests_on=(Doubt.COMPUTE,),
)
def check(run: Run) -> Iterator[Finding]:
    lost_ns, kernels, chain_count = 0, 0, 0
    spans: list[tuple[int, int]] = []
    names: set[str] = set()
    traces = [trace for trace in run.traces if trace.origin.device != "cpu"]
    for trace in traces:
        pointwise = trace.activities.subclass.where(lambda word: word in POINTWISE)
        if not np.any(pointwise):
            continue
        kernel_chains = chains(trace.activities, pointwise, at_least=MANY, gap_ns=PAUSE_NS)
        rest = ~np.isin(np.arange(len(trace.activities)), kernel_chains.rows)
        saved = beyond_the_longest(trace, kernel_chains, gaps=False, nearer=()) - trace.activities.take(rest).union()
        lost_ns += saved.total_ns
        kernels, chain_count = kernels + kernel_chains.rows.size, chain_count + kernel_chains.count
        spans += longest(saved, 1)
        names |= set(trace.activities.name.take(kernel_chains.rows).tolist())
    window_ns = mean_window_ns(run) * len(run.traces)
    if not window_ns or lost_ns < NOTABLE * window_ns:
        return
    yield Finding(
        f"{kernels:,} pointwise kernels in {chain_count:,} chains: fused, they could save up to "
        f"{share(lost_ns / window_ns)} of the window",
        Severity.WARNING if lost_ns >= GRAVE * window_ns else Severity.INFO,
        Basis.DERIVED,
        Evidence(run.ranks, tuple(spans[:1]), tuple(sorted(names))),
        (
            COMPILE,
            "Use fused kernels: residual and norm, activation and gate, norm and quantization.",
        ),
        cost_ns=lost_ns // len(run.traces),
        cost_share=lost_ns / window_ns,
        locality=Locality.SPATIAL,
    )
