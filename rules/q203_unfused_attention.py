"""Attention runs as products and a softmax of their own, its score matrix passing through device memory.

## What it measures

Softmax kernels outside a fused attention kernel, in a window that has no fused attention at all.

## Why it costs

The scores of a sequence of n tokens are n² values a head. A fused kernel keeps them on the chip; apart, they are
written and read twice through device memory, and time grows with bytes instead of arithmetic.

## What to do

1. Choose a fused backend (vLLM: `--attention-backend FLASH_ATTN` or `FLASHINFER`, on AMD `ROCM_AITER_FA` or
   `TRITON_ATTN`; before 0.13 `VLLM_ATTENTION_BACKEND`; SGLang: `--attention-backend fa3` or `flashinfer`, on AMD
   `aiter`; PyTorch: `scaled_dot_product_attention`).
2. Look why the fused kernel was refused: head size, mask, data type.

## When it is wrong

A softmax over logits or router scores is not attention. The rule stays silent when any fused attention kernel runs,
and when the softmax takes less than two percent.

## Sources

Dao et al., FlashAttention, 2022.
"""

from collections.abc import Iterator

from analyzer.measures.cost import cost, exposed
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import OWN_CODE, Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

NOTABLE = 0.02
"""Of the window; a softmax over logits alone takes well under one percent."""
FUSED = ("attention", "mla", "sparse_attention", "linear_attention")
_CHOOSE = "Choose a fused attention backend"
FUSE = (
    Advice(f"{_CHOOSE}: --attention-backend FLASH_ATTN or FLASHINFER.", engines=("vllm",), makers=("nvidia",)),
    Advice(f"{_CHOOSE}: VLLM_ATTENTION_BACKEND, FLASH_ATTN or FLASHINFER.", engines=("vllm",), makers=("nvidia",)),
    Advice(f"{_CHOOSE}: --attention-backend ROCM_AITER_FA or TRITON_ATTN.", engines=("vllm",), makers=("amd",)),
    Advice(f"{_CHOOSE}: --attention-backend fa3 or flashinfer.", engines=("sglang",), makers=("nvidia",)),
    Advice(f"{_CHOOSE}: --attention-backend aiter.", engines=("sglang",), makers=("amd",)),
    Advice(f"{_CHOOSE}: scaled_dot_product_attention.", engines=OWN_CODE),
    f"{_CHOOSE}.",
)


@rule(
    Example("scores, softmax, values", "rank 0 stream 7   GGGGQQQQGGGGNNGGGGQQQQGGGG", found=True),
    Example(
        "a fused kernel, and a softmax over the logits", "rank 0 stream 7   GGGGTTTTGGGGNNGGGGTTTTGGQQ", found=False
    ),
    rests_on=(Doubt.COMPUTE,),
)
def check(run: Run) -> Iterator[Finding]:
    lost = cost(run, exposed(Kind.COMPUTE, "softmax"))
    if lost.share < NOTABLE or cost(run, exposed(Kind.COMPUTE, *FUSED)).time_ns:
        return
    names = {
        name
        for trace in run.traces
        for name in set(
            trace.activities.name.take(trace.activities.subclass.where(lambda word: word == "softmax")).tolist()
        )
    }
    yield Finding(
        f"softmax kernels take {share(lost.share)} of the window and no fused attention kernel runs",
        Severity.WARNING,
        Basis.DERIVED,
        Evidence(run.ranks, names=tuple(sorted(names))),
        (
            FUSE,
            "Look why the fused kernel was refused: head size, mask, data type.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.SPATIAL,
    )
