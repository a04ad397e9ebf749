"""Decode ranks compute prompts that prefill ranks have computed before.

## What it measures

Prompt tokens in prefill steps of decode ranks, steps of at most 128 tokens a request left out: a decode rank rightly
computes the last, partly filled block of a prompt. With an engine's counters, the prompt tokens that the decode engine
computed itself, where they are more than 128 a transfer.

## Why it costs

The prompt is paid twice, and the transfer on top. Decoding requests wait for the second prefill as they would without
disaggregation.

## What to do

1. Look for failed or expired transfers (vLLM: `vllm:nixl_num_failed_transfers_total`, `..._num_kv_expired_reqs_total`).
2. Check that both sides agree on model, block size, cache type and hash seed: blocks that do not match are computed.
3. Let the router hand the answer of the prefill instance (`kv_transfer_params`) on to the decode instance.

## When it is wrong

Short prompts that the router sends to a decode instance on purpose are computed there once, and counted here.

## Sources

vLLM's counter `vllm:prompt_tokens_by_source_total`; the hand-over of `shardscope pd`.
"""

from collections.abc import Iterator

from analyzer.measures.cost import mean_window_ns
from analyzer.model.run import Run
from analyzer.pd.pools import REMAINDER_TOKENS, again_tokens, prefilling, ranks_of
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.steps.steps import steps
from analyzer.units import share


@rule(
    Example(
        "the decode rank computes the prompt",
        """
        roles prefill decode
        rank 0 stream 7   GGGGGG......
        rank 0 host       g.....g.....
        rank 0 steps      PPPPPP......
        rank 1 stream 7   ......GGGGGT
        rank 1 host       ......g....g
        rank 1 steps      ......PPPPPD
        """,
        found=True,
    ),
    Example(
        "the decode rank decodes",
        """
        roles prefill decode
        rank 0 stream 7   GGGGGG......
        rank 0 host       g...........
        rank 0 steps      PPPPPP......
        rank 1 stream 7   ......TTTTTT
        rank 1 host       ......g.....
        rank 1 steps      ......DDDDDD
        """,
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    ranks = ranks_of(run, "decode")
    tokens = again_tokens(run, ranks)
    if not ranks or not tokens or run.workload.handover.fetched_tokens == 0:
        return
    rows = [
        (rank_steps, prefilling(rank_steps, REMAINDER_TOKENS)) for rank_steps in steps(run) if rank_steps.rank in ranks
    ]
    lost_ns = sum(int(rank_steps.span_ns[prefill_rows].sum()) for rank_steps, prefill_rows in rows) // len(run.traces)
    window_ns = mean_window_ns(run)
    yield Finding(
        f"{tokens:,} prompt tokens are computed by ranks that decode, {share(lost_ns / window_ns)} of the window",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(ranks),
        (
            "Look for failed or expired transfers in the decode engine's metrics and log.",
            "Check that both sides agree on block size, cache type and hash seed.",
            "Let the router hand the prefill engine's kv_transfer_params on.",
        ),
        cost_ns=lost_ns,
        cost_share=min(lost_ns / window_ns, 1.0),
        locality=Locality.TEMPORAL,
    )
