"""No prompt finds any of its tokens in the KV cache.

## What it measures

KV tokens that prefill steps found in the cache, as detailed step annotations state them, over at least eight prefill
steps; where no step states them, the engine's prefix-cache counters over at least eight requests.

## Why it costs

Requests of one session or with one system prompt share a prefix. Computed again, it costs a prefill; found in the
cache, it costs nothing.

## What to do

1. Leave prefix caching on, the default (vLLM: no `--no-enable-prefix-caching`; SGLang: no `--disable-radix-cache`).
2. Send requests with a common prefix to the replica that holds it (`shardscope routing` replays a request log).
3. Put what varies (time, user) behind what is common in the prompt.

## When it is wrong

A load of unrelated prompts has nothing to share. Benchmarks with random tokens never hit. A prompt shorter than one
cache block cannot hit either.

## Sources

vLLM, detailed step annotation: context tokens beyond those scheduled were in the cache. Counters:
`vllm:prefix_cache_queries`, `vllm:prefix_cache_hits`; `sglang:prompt_tokens_total`, `sglang:cached_tokens_total`.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.advice.shared import DETAILED_STEPS, METRICS
from analyzer.measures.reuse import counted_reuse
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.steps.steps import reused_tokens, steps
from analyzer.units import count

ENOUGH = 8
"""Prefill steps, or requests: fewer may all be first of their kind."""
CACHING = (
    Advice("Check that prefix caching is on: no --no-enable-prefix-caching.", engines=("vllm",)),
    Advice("Check that prefix caching is on: no --disable-radix-cache.", engines=("sglang",)),
    "Check that prefix caching is on.",
)


@rule(
    Example(
        "eight prompts, none seen before",
        "rank 0 stream 7   GG|GG|GG|GG|GG|GG|GG|GG\nrank 0 host       l.|l.|l.|l.|l.|l.|l.|l.\n"
        "rank 0 steps      NN|NN|NN|NN|NN|NN|NN|NN",
        found=True,
    ),
    Example(
        "ten requests, and the engine counted no hit",
        "metrics vllm:prefix_cache_queries_total=5120 vllm:request_success_total=10\nrank 0 stream 7   GGTTGG",
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
    computed = _by_steps(run) if reused_tokens(run) else _by_counters(run)
    if computed is None:
        return
    yield Finding(
        f"{computed} and reused none",
        Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks),
        (
            CACHING,
            "Route requests with a common prefix to one replica; `shardscope routing` replays a log.",
        ),
        locality=Locality.TEMPORAL,
    )


def _by_steps(run: Run) -> str | None:
    reused, computed = reused_tokens(run) or (0, 0)
    prefills = max(int(np.count_nonzero(rank.prefill_tokens > 0)) for rank in steps(run))
    if reused or prefills < ENOUGH:
        return None
    return f"{count(prefills, 'prefill step')} computed {computed:,} tokens"


def _by_counters(run: Run) -> str | None:
    counted = counted_reuse(run)
    if counted is None or not counted.queried_tokens:
        raise MissingEvidenceError(
            "no step states how many KV tokens it reused, and no metrics of the engine were scraped",
            "; ".join(fitting(run, (METRICS, DETAILED_STEPS))),
        )
    if counted.cached_tokens or counted.external_cached_tokens or (counted.requests or 0) < ENOUGH:
        return None
    return f"{count(counted.requests or 0, 'request')} looked up {counted.queried_tokens:,} prompt tokens"
