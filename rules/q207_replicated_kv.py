"""Several ranks of a tensor-parallel group hold the same KV heads.

## What it measures

The degree of tensor parallelism against the model's KV heads: beyond one head a rank, every further rank holds a copy
of a head that another has. Bytes a token follow from layers, heads, head size and data type.

## Why it costs

A copy takes device memory that could hold other requests' tokens, and each decode step reads it once more. Doubling
the degree past the KV heads halves the weights of a rank but none of its KV.

## What to do

1. Split the copies by position (`--decode-context-parallel-size`, in vLLM from 0.10.2, in SGLang from 0.5.15 on).
2. Lower the tensor-parallel degree to the number of KV heads and add replicas.
3. Store KV in fewer bytes (vLLM: `--kv-cache-dtype fp8`; SGLang: `--kv-cache-dtype fp8_e4m3`).

## When it is wrong

With short contexts and spare memory a copy costs little, and splitting by position adds collectives. Layers with linear
attention or a window hold less than the figure says. Nothing here is measured: it follows from the layout and model.

## Sources

Grouped-query attention: Ainslie et al., 2023. vLLM, `num_kv_heads = max(1, total_num_kv_heads // tp_size)`.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import BY_POSITION
from analyzer.measures.kv_copies import kv_copies
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, size


@rule(
    Example(
        "four KV heads over eight ranks",
        "layout tp=8\nmodel  num_hidden_layers=48 num_key_value_heads=4 head_dim=128\nrank 0 stream 7   GGTTGG",
        found=True,
    ),
    Example(
        "one KV head a rank",
        "layout tp=8\nmodel  num_hidden_layers=80 num_key_value_heads=8 head_dim=128\nrank 0 stream 7   GGTTGG",
        found=False,
    ),
    Example(
        "the copies are split by position",
        "layout tp=8 dcp=2\nmodel  num_hidden_layers=48 num_key_value_heads=4 head_dim=128\nrank 0 stream 7   GGTTGG",
        found=False,
    ),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    kv = kv_copies(run)
    if kv.copies == 1 or not kv.kv_heads:
        return
    width = ", at 2 bytes an element" if kv.assumed else ""
    yield Finding(
        f"{count(kv.kv_heads, 'KV head')} over {kv.ranks} ranks: each is kept {kv.copies} times, "
        f"{size(kv.repeated_bytes)} a token more than one copy{width}",
        Severity.INFO,
        Basis.DERIVED,
        Evidence(run.ranks, names=("num_key_value_heads", "tp")),
        (
            BY_POSITION,
            f"Lower tp to {kv.kv_heads} and add replicas, if the weights fit.",
        ),
        locality=Locality.SPATIAL,
    )
