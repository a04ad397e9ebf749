"""Requests lost their KV cache to others while they ran.

## What it measures

Preemptions (vLLM) or retractions (SGLang) that the engine counted while it served the load.

## Why it costs

The KV of a preempted request is dropped. When its turn comes again, its prompt and all tokens it had produced are
prefilled once more: work done twice, and a pause that its reader sees.

## What to do

1. Give the KV cache room (vLLM: `--gpu-memory-utilization`, `--kv-cache-dtype fp8`; SGLang: `--mem-fraction-static`,
   `--kv-cache-dtype fp8_e4m3`).
2. Admit fewer requests at a time (vLLM: `--max-num-seqs`; SGLang: `--max-running-requests`, or a higher
   `--schedule-conservativeness`).
3. Shard the cache over more ranks, if the model has KV heads left to split.

## When it is wrong

A few preemptions in a burst cost less than a batch kept small for it. The counters do not say how many tokens were
computed again, so no time is stated.

## Sources

vLLM, `vllm:num_preemptions`; SGLang, `sglang:num_retracted_requests_total`.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.advice.shared import METRICS
from analyzer.measures.reuse import counted_reuse
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, share

GRAVE = 0.1
"""Preemptions a request: one request in ten pays its prefill twice."""
ROOM = (
    Advice("Give the KV cache room: --gpu-memory-utilization.", engines=("vllm",)),
    Advice("Give the KV cache room: --mem-fraction-static.", engines=("sglang",)),
    "Give the KV cache room.",
)
FEWER = (
    Advice("Admit fewer requests at a time: --max-num-seqs.", engines=("vllm",)),
    Advice("Admit fewer requests at a time: --max-running-requests.", engines=("sglang",)),
    "Admit fewer requests at a time.",
)


@rule(
    Example(
        "three requests of twenty were preempted",
        "engine  vllm\nmetrics vllm:num_preemptions_total=3 vllm:request_success_total=20\n"
        "rank 0 stream 7   GGGGTTTTGGGG",
        found=True,
    ),
    Example(
        "all requests kept their cache",
        "engine  vllm\nmetrics vllm:request_success_total=20\nrank 0 stream 7   GGGGTTTTGGGG",
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    counted = counted_reuse(run)
    if counted is None:
        raise MissingEvidenceError(
            "no metrics of the engine were scraped",
            fitting(run, (METRICS,))[0],
        )
    if not counted.preemptions:
        return
    rate = counted.preemptions / counted.requests if counted.requests else 0.0
    over = f" over {count(counted.requests, 'request')} ({share(rate)})" if counted.requests else ""
    yield Finding(
        f"{count(counted.preemptions, 'preemption')}{over}: their KV is computed again",
        Severity.WARNING if rate >= GRAVE else Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks),
        (
            ROOM,
            FEWER,
        ),
        locality=Locality.TEMPORAL,
    )
