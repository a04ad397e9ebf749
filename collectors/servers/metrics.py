"""An engine's Prometheus metrics before and after a load: saved as they are, and the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

PREFIXES = ("vllm:", "sglang:", "lmcache:", "mooncake")

_COUNTS = frozenset({"counter", "histogram", "summary"})
_LEFT_OUT = ("_bucket", "_created")
_MIB = 1 << 20
_S, _MS = 1_000_000_000, 1_000_000

# Histograms of KV transfers: name, ns or bytes in its unit. Source: vllm/distributed/kv_transfer/kv_connector/v1/nixl
# and .../mooncake; sglang/srt/observability/metrics_collector.py, whose MB are 2^20 bytes.
_TRANSFER_TIMES = {
    "vllm:nixl_xfer_time_seconds": _S,
    "vllm:mooncake_xfer_time_seconds": _S,
    "sglang:kv_transfer_latency_ms": _MS,
}
_TRANSFER_BYTES = {
    "vllm:nixl_bytes_transferred": 1,
    "vllm:mooncake_bytes_transferred": 1,
    "sglang:kv_transfer_total_mb": _MIB,
}


@dataclass(frozen=True, slots=True)
class Scrape:
    """Metrics at one moment.

    Attributes:
        text: as served.
        counters: value of each series of counters, histograms (sum and count) and summaries, by `name{labels}`.
        gauges: value of each series of gauges.
        engines: distinct values of the label `engine`: vLLM gives each data-parallel replica one.
    """

    text: str
    counters: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    engines: tuple[str, ...] = ()


def scrape(text: str) -> Scrape:
    """The series of one page of metrics; those of the client library and of Python are left out.

    Raises:
        ValueError: the text is not Prometheus' format.
    """
    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    engines: set[str] = set()
    for family in text_string_to_metric_families(text):
        if not family.name.startswith(PREFIXES):
            continue
        for sample in family.samples:
            if sample.name.endswith(_LEFT_OUT):
                continue
            engines |= {sample.labels["engine"]} if "engine" in sample.labels else set()
            (counters if family.type in _COUNTS else gauges)[_series(sample.name, sample.labels)] = sample.value
    return Scrape(text, counters, gauges, tuple(sorted(engines)))


def _series(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels) if label != "model_name")
    return f"{name}{{{inside}}}" if inside else name


def change(before: Scrape, after: Scrape) -> dict[str, float]:
    """By how much each series has grown; series that did not move are left out.

    A counter that fell was reset, which happens when the server restarts: its value after is the growth.
    """
    grown = {}
    for series, value in after.counters.items():
        old = before.counters.get(series, 0.0)
        grown[series] = value - old if value >= old else value
    return {series: value for series, value in sorted(grown.items()) if value}


def total(changes: Mapping[str, float], name: str) -> float:
    """The growth of a metric over all its labels."""
    return sum(value for series, value in changes.items() if series.partition("{")[0] == name)


def transfers(changes: Mapping[str, float]) -> dict[str, int]:
    """Number, bytes and time of KV transfers in between; empty where the engine told of none.

    Transfers overlap, so bytes by time understates the link.
    """
    count = _sum(changes, _TRANSFER_BYTES, "_count")
    if not count:
        return {}
    return {
        "transfers": count,
        "bytes": _sum(changes, _TRANSFER_BYTES, "_sum"),
        "time_ns": _sum(changes, _TRANSFER_TIMES, "_sum"),
    }


def _sum(changes: Mapping[str, float], units: Mapping[str, int], suffix: str) -> int:
    return round(sum(total(changes, name + suffix) * (unit if suffix == "_sum" else 1) for name, unit in units.items()))


_PREEMPTIONS = ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total")


def memory(before: Scrape, after: Scrape) -> dict[str, int]:
    """Requests evicted for want of KV memory in between, 0 where the engine counted none; empty where not told."""
    changes = change(before, after)
    for name in _PREEMPTIONS:
        if any(series.partition("{")[0] == name for series in after.counters):
            return {"preemptions": round(total(changes, name))}
    return {}


def reuse(changes: Mapping[str, float]) -> dict[str, int]:
    """Prompt tokens that were looked up in the prefix cache and that were found there; empty where not told."""
    names: Iterable[tuple[str, str]] = (
        ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
        ("vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"),
        ("sglang:prompt_tokens_total", "sglang:cached_tokens_total"),
    )
    for asked, cached in names:
        if queried := total(changes, asked):
            return {"queried_tokens": round(queried), "cached_tokens": round(total(changes, cached))}
    return {}
