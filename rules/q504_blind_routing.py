"""A router that does not look at caches spreads requests whose prompts share prefixes.

## What it measures

The router's decisions by policy and worker, and the share of prompt tokens that the workers found in their prefix
caches: some, so prompts do share prefixes, but far from all.

## Why it costs

A session's next turn finds its KV only on the worker that served the turn before. Sent elsewhere, the whole prompt so
far is prefilled again, and the cache of two workers holds the same prefix.

## What to do

1. Route by prefix (`--policy cache_aware`, the default of vllm-router and of SGLang's router; llm-d and Dynamo: the
   KV-aware scorer), or by session (vllm-router: `--policy consistent_hash`).
2. Save a request log and ask `shardscope routing LOG --workers N --capacity BLOCKS` what each policy would reach, and
   what balance it would cost.

## When it is wrong

Tokens that are new in every request cannot be found anywhere: the log tells the ceiling, the counters do not. Strict
affinity can overload one worker, and then waiting costs more than the prefill it saves.

## Sources

vllm-router, `vllm_router_policy_decisions_total`.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.reuse import counted_reuse, routed
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, share

BLIND = ("round_robin", "random", "power_of_two")
"""Policies of vllm-router and SGLang's router that know at most the load of a worker."""
ROUTE = Advice("Route by prefix or session: --policy cache_aware, the default, or --policy consistent_hash.")
"""Of vllm-router, whose counters these are, whichever engine it stands before."""
SHARED, ENOUGH = 0.05, 0.9
"""Of prompt tokens: below the first the prompts may share nothing, above the second there is little left to find."""

_ENGINES = "vllm:prefix_cache_queries_total=4800"
_DECIDED = 'vllm_router_policy_decisions_total{policy="%s",worker="w%d"}=10'


@rule(
    Example(
        "sessions dealt out in turn",
        f"metrics {_ENGINES} vllm:prefix_cache_hits_total=2080 "
        f"{_DECIDED % ('round_robin', 0)} {_DECIDED % ('round_robin', 1)}\nrank 0 stream 7   GGTTGG",
        found=True,
    ),
    Example(
        "sessions sent to their cache",
        f"metrics {_ENGINES} vllm:prefix_cache_hits_total=3360 "
        f"{_DECIDED % ('cache_aware', 0)} {_DECIDED % ('cache_aware', 1)}\nrank 0 stream 7   GGTTGG",
        found=False,
    ),
    Example(
        "prompts that share nothing",
        f"metrics {_ENGINES} {_DECIDED % ('round_robin', 0)} {_DECIDED % ('round_robin', 1)}\nrank 0 stream 7   GGTTGG",
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    policies, counted = routed(run), counted_reuse(run)
    if not policies or counted is None or not counted.queried_tokens:
        raise MissingEvidenceError(
            "no metrics of both a router and its workers were scraped",
            "save /metrics of router and workers before and after the load as metrics_before.prom and "
            "metrics_after.prom beside the traces; `shardscope routing` replays a request log",
        )
    cached_share = (counted.cached_tokens or 0) / counted.queried_tokens
    if not SHARED < cached_share < ENOUGH:
        return
    for policy in sorted(policies.keys() & set(BLIND)):
        workers = policies[policy]
        if len(workers) == 1:
            continue
        yield Finding(
            f"{policy} spreads {count(sum(workers.values()), 'request')} over {len(workers)} workers, which find "
            f"{share(cached_share)} of their prompt tokens in their caches",
            Severity.INFO,
            Basis.MEASURED,
            Evidence(run.ranks, names=tuple(sorted(workers))),
            (
                ROUTE,
                "Replay a request log: shardscope routing LOG --workers N --capacity BLOCKS.",
            ),
            locality=Locality.TEMPORAL,
        )
