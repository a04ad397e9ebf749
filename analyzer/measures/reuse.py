"""What an engine's and a router's own counters say of reuse: tokens found in a cache, evicted; requests by worker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.model.run import Run
from analyzer.once import once

# Counters by what they count, each list oldest engine version last; the first that grew is read. Sources:
# vllm/v1/metrics/loggers.py, before 0.12 with `gpu_`; sglang/srt/observability/metrics_collector.py.
_ASKED_AND_FOUND = (
    ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
    ("vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"),
    ("sglang:prompt_tokens_total", "sglang:cached_tokens_total"),
)
_EXTERNAL = (("vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total"),)
_PREEMPTIONS = ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total")
_EVICTED = ("sglang:evicted_tokens_total",)
_LOADED_BACK = ("sglang:load_back_tokens_total",)
_REQUESTS = ("vllm:request_success_total", "sglang:num_requests_total")
_DECISIONS = "vllm_router_policy_decisions_total"
"""Of vllm-router: one for each request, with the policy that chose and the worker that was chosen."""

_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Reuse:
    """Growth of the counters over the load. A count is None where no series of that name grew.

    Attributes:
        queried_tokens: prompt tokens that were looked up in the prefix cache.
        cached_tokens: those found there.
        external_queried_tokens: prompt tokens that were looked up in a cache behind it (host memory, store, other
            instance).
        external_cached_tokens: those found there.
        preemptions: requests that lost their KV to others, to be computed again.
        evicted_tokens: KV tokens dropped from the cache.
        loaded_back_tokens: KV tokens that came back from host memory.
        requests: finished.
    """

    queried_tokens: int | None
    cached_tokens: int | None
    external_queried_tokens: int | None
    external_cached_tokens: int | None
    preemptions: int | None
    evicted_tokens: int | None
    loaded_back_tokens: int | None
    requests: int | None


@once
def counted_reuse(run: Run) -> Reuse | None:
    """Sums over all engines of the run; None where no metrics were scraped.

    What the series do not tell is taken from `Workload.memory`, where a collector or a person summed it up.
    """
    grown, summed = _by_name(run.workload.counters), run.workload.memory
    if not grown and not summed.keys() & {"queried_tokens", "preemptions"}:
        return None
    queried, cached = _pair(grown, _ASKED_AND_FOUND)
    if queried is None:
        queried, cached = _summed(summed, "queried_tokens"), _summed(summed, "cached_tokens")
    external_queried, external_cached = _pair(grown, _EXTERNAL)
    preemptions, evicted, loaded_back, requests = (
        _first(grown, names) for names in (_PREEMPTIONS, _EVICTED, _LOADED_BACK, _REQUESTS)
    )
    return Reuse(
        queried,
        cached,
        external_queried,
        external_cached,
        _summed(summed, "preemptions") if preemptions is None else preemptions,
        evicted,
        loaded_back,
        requests,
    )


def _by_name(counters: Mapping[str, float]) -> dict[str, float]:
    grown: dict[str, float] = {}
    for series, value in counters.items():
        name = series.partition("{")[0]
        grown[name] = grown.get(name, 0.0) + value
    return grown


def _pair(grown: Mapping[str, float], names: tuple[tuple[str, str], ...]) -> tuple[int | None, int | None]:
    """Asked and found. Found is 0, and no lack of evidence, where only the questions grew."""
    for asked, cached in names:
        if asked in grown:
            return round(grown[asked]), round(grown.get(cached, 0.0))
    return None, None


def _summed(memory: Mapping[str, int | float], name: str) -> int | None:
    return round(memory[name]) if name in memory else None


def _first(grown: Mapping[str, float], names: tuple[str, ...]) -> int | None:
    return next((round(grown[name]) for name in names if name in grown), None)


def routed(run: Run) -> dict[str, dict[str, int]]:
    """Requests by policy and worker; empty where no router's counters are known."""
    requests: dict[str, dict[str, int]] = {}
    for series, value in run.workload.counters.items():
        name, _, rest = series.partition("{")
        labels = dict(_LABEL.findall(rest))
        if name == _DECISIONS and "policy" in labels and "worker" in labels:
            workers = requests.setdefault(labels["policy"], {})
            workers[labels["worker"]] = workers.get(labels["worker"], 0) + round(value)
    return requests
