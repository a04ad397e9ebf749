"""A decode engine gets no keys and values from another: the two roles work side by side, not together.

## What it measures

On a decode engine, prompt tokens by source: none were transferred, and more than one block was computed.

## Why it costs

Every prompt is computed by both engines. The machines of the prefill engine do nothing for the answers.

## What to do

1. Check the connector of both engines (vLLM: `--kv-transfer-config`) and that each can reach the other's side channel.
2. Let the router send the prompt to the prefill engine first and hand its `kv_transfer_params` on.
3. Read the engines' logs for handshakes that failed.

## When it is wrong

A load that only ever reached the decode engine, past the router, looks the same.

## Sources

vLLM's counter `vllm:prompt_tokens_by_source_total`, sources `local_compute` and `external_kv_transfer`.
"""

from collections.abc import Iterator

from analyzer.model.run import Run
from analyzer.pd.pools import REMAINDER_TOKENS, ranks_of
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity

CONNECTOR = (
    Advice(
        "Check the connector of both engines (--kv-transfer-config), and that each reaches the other's side channel.",
        engines=("vllm",),
    ),
    "Check the connector of both engines, and that each reaches the other's side channel.",
)


@rule(
    Example(
        "the counters know of no transfer",
        """
        roles decode
        counted transfers=0 bytes=0 time_ns=0 computed=4096 fetched=0
        rank 0 stream 7   GGGGTT
        """,
        found=True,
    ),
    Example(
        "all but a block came over",
        """
        roles decode
        counted transfers=4 bytes=1048576 time_ns=4000000 computed=4 fetched=4092
        rank 0 stream 7   TTTTTT
        """,
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    handover, ranks = run.workload.handover, ranks_of(run, "decode")
    if (
        not ranks
        or handover.messages
        or handover.fetched_tokens != 0
        or (handover.computed_tokens or 0) <= REMAINDER_TOKENS
    ):
        return
    yield Finding(
        f"{handover.computed_tokens:,} prompt tokens are computed by a decode engine that was sent none",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(ranks, names=handover.carriers),
        (
            CONNECTOR,
            "Let the router hand the prefill engine's kv_transfer_params to the decode engine.",
        ),
        locality=Locality.TEMPORAL,
    )
