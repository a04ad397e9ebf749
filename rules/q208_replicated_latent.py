"""Every tensor-parallel rank holds the whole latent KV cache of a model with latent attention.

## What it measures

The degree of tensor parallelism of the attention against decode context parallelism, for models with a KV latent
(`kv_lora_rank`: DeepSeek-V2 and later, Kimi-K2, GLM-5). Bytes a token follow from layers, latent size and data type.

## Why it costs

The latent serves all heads, so tensor parallelism cannot split it: at degree n the job holds it n times, and each rank
reads all of it at every decode step. Adding ranks adds no room for tokens.

## What to do

1. Give each rank its own requests in attention (SGLang: `--attn-dp-size n`, before 0.5.22
   `--enable-dp-attention --dp-size n`; vLLM: `--data-parallel-size n --enable-expert-parallel` and a tensor-parallel
   degree as much smaller). Attention weights are then whole on each rank.
2. Split the latent by position (`--decode-context-parallel-size`, in vLLM from 0.10.2, in SGLang from 0.5.15 on).

## When it is wrong

At a batch of one, replicas of attention would leave ranks idle, and one copy a rank is the fastest layout. Attention
replicas pay with attention weights that are whole on each rank. Nothing here is measured: it follows from the layout
and the model.

## Sources

DeepSeek-V2, 2024, section 2.1; SGLang, data-parallel attention for DeepSeek models.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import BY_POSITION
from analyzer.measures.kv_copies import kv_copies
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import size

GRAVE = 4
"""Copies; at two, the second may still be worth the all-reduces of attention replicas that it saves."""

_EACH = "Give each rank its own requests in attention"
OWN_REQUESTS = (
    Advice(f"{_EACH}: --attn-dp-size, as many as tp.", engines=("sglang",)),
    Advice(f"{_EACH}: --enable-dp-attention --dp-size, as many as tp.", engines=("sglang",)),
    Advice(
        f"{_EACH}: --data-parallel-size with --enable-expert-parallel, tp lower by as much.",
        engines=("vllm",),
        layout=("experts",),
    ),
    f"{_EACH}.",
)

_DEEPSEEK = "model  num_hidden_layers=61 num_key_value_heads=128 kv_lora_rank=512 qk_rope_head_dim=64\n"


@rule(
    Example("a latent on each of eight ranks", f"layout tp=8\n{_DEEPSEEK}rank 0 stream 7   GGTTGG", found=True),
    Example("split by position", f"layout tp=8 dcp=8\n{_DEEPSEEK}rank 0 stream 7   GGTTGG", found=False),
    Example("replicas, each with its own requests", f"layout tp=1 dp=8\n{_DEEPSEEK}rank 0 stream 7   GG", found=False),
)
def check(run: Run) -> Iterator[Finding]:
    kv = kv_copies(run)
    if kv.copies == 1 or kv.kv_heads:
        return
    width = ", at 2 bytes an element" if kv.assumed else ""
    yield Finding(
        f"the KV latent is kept {kv.copies} times over {kv.ranks} ranks: {size(kv.token_bytes)} a token and copy, "
        f"{size(kv.repeated_bytes)} more than one{width}",
        Severity.WARNING if kv.copies >= GRAVE else Severity.INFO,
        Basis.DERIVED,
        Evidence(run.ranks, names=("kv_lora_rank", "tp")),
        (
            OWN_REQUESTS,
            BY_POSITION,
        ),
        locality=Locality.SPATIAL,
    )
