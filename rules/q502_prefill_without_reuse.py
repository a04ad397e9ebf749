"""No prefill step finds any of its prompt in the KV cache.

## What it measures

KV tokens that prefill steps found in the cache, as detailed step annotations state them, over at least eight prefill
steps.

## Why it costs

Requests of one session or with one system prompt share a prefix. Computed again, it costs a prefill; found in the
cache, it costs nothing.

## What to do

1. Switch prefix caching on (vLLM: `--enable-prefix-caching`, the default; SGLang: not `--disable-radix-cache`).
2. Send requests with a common prefix to the replica that holds it (`shardscope routing` replays a request log).
3. Put what varies (time, user) behind what is common in the prompt.

## When it is wrong

A load of unrelated prompts has nothing to share. Benchmarks with random tokens never hit.

## Sources

vLLM, detailed step annotation: context tokens beyond those scheduled were in the cache.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.measures.steps import reused_tokens, steps
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.units import count

ENOUGH = 8
"""Prefill steps: fewer may all be first of their kind."""


@rule(
    Example(
        "eight prompts, none seen before",
        "rank 0 stream 7   GG|GG|GG|GG|GG|GG|GG|GG\nrank 0 host       l.|l.|l.|l.|l.|l.|l.|l.\n"
        "rank 0 steps      NN|NN|NN|NN|NN|NN|NN|NN",
        found=True,
    ),
    Example(
        "later prompts find their prefix",
        "rank 0 stream 7   GG|GG|GG|GG|GG|GG|GG|GG\nrank 0 host       l.|l.|l.|l.|l.|l.|l.|l.\n"
        "rank 0 steps      NN|RR|RR|RR|RR|RR|RR|RR",
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    seen = reused_tokens(run)
    if seen is None:
        raise MissingEvidenceError(
            "no step states how many KV tokens it reused",
            "start vLLM with --profiler-config.detailed_trace_annotation=true",
        )
    reused, computed = seen
    prefills = max(int(np.count_nonzero(rank.prefill_tokens > 0)) for rank in steps(run))
    if reused or prefills < ENOUGH:
        return
    yield Finding(
        f"{count(prefills, 'prefill step')} computed {computed:,} tokens and reused none",
        Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks),
        (
            "Check that prefix caching is on (vLLM: --enable-prefix-caching, SGLang: no --disable-radix-cache).",
            "Route requests with a common prefix to one replica; `shardscope routing` replays a log.",
        ),
        locality=Locality.TEMPORAL,
    )
