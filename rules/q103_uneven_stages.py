"""One pipeline stage takes longer than the others and sets the pace of all.

## What it measures

The time of work of each stage in a step, hand-overs left out. Found when the mean stage waits for the slowest in a
twentieth of a step or more.

## Why it costs

In a pipeline one batch leaves a cycle, and the cycle is the slowest stage. The other stages' devices wait for the
difference in every step.

## What to do

1. Move layers from the slow stage (vLLM: `VLLM_PP_LAYER_PARTITION`, SGLang: `SGLANG_PP_LAYER_PARTITION`, for example
   `20,20,20,18`: the last stage also has the output layer and sampling).
2. Where the slow stage is no slower in layers, look at its device.

## When it is wrong

With few batches in flight the bubble is larger than the imbalance; the message says which it is.

## Sources

Cycle = slowest stage; speed-up over one rank = sum of stages / slowest stage.
"""

from collections.abc import Iterator

from analyzer.measures.breakdown import breakdown
from analyzer.measures.stages import stages
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity

NOTABLE = 0.05
"""Of a step, mean over stages."""
LAYERS = (
    Advice("Move layers from the slow stage: VLLM_PP_LAYER_PARTITION, a number for each stage.", engines=("vllm",)),
    Advice("Move layers from the slow stage: SGLANG_PP_LAYER_PARTITION, a number for each stage.", engines=("sglang",)),
    "Move layers from the slow stage.",
)


@rule(
    Example(
        "the second stage takes twice as long",
        """
        layout  pp=2
        rank 0 stream 7   GGG...GGG...GGG...GGG...GGG...
        rank 0 host       l.....l.....l.....l.....l.....
        rank 0 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
        rank 1 stream 7   GGGGGG|GGGGG|GGGGG|GGGGG|GGGGG
        rank 1 host       l.....l.....l.....l.....l.....
        rank 1 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
        """,
        found=True,
    ),
    Example(
        "equal stages",
        """
        layout  pp=2
        rank 0 stream 7   GGGGG.GGGGG.GGGGG.GGGGG.GGGGG.
        rank 0 host       l.....l.....l.....l.....l.....
        rank 0 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
        rank 1 stream 7   GGGGG.GGGGG.GGGGG.GGGGG.GGGGG.
        rank 1 host       l.....l.....l.....l.....l.....
        rank 1 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
        """,
        found=False,
    ),
    rests_on=(Doubt.COMPUTE, Doubt.STEPS),
)
def check(run: Run) -> Iterator[Finding]:
    windows_ns = {rank_split.rank: rank_split.window.total_ns for rank_split in breakdown(run)}
    for row in stages(run):
        if row.imbalance_share < NOTABLE:
            continue
        lost_ns = round(row.imbalance_share * row.period_ns * row.steps)
        window_ns = sum(windows_ns[rank] for rank in row.ranks) / len(row.ranks)
        yield Finding(
            row.sentence,
            Severity.WARNING,
            Basis.MEASURED,
            Evidence((row.ranks[row.account.slowest],)),
            (LAYERS, "Look at the slow stage's device."),
            cost_ns=lost_ns,
            cost_share=min(lost_ns / window_ns, 1.0),
        )
