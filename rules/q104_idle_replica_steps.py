"""A data-parallel replica runs steps without a request, to keep step with the others.

## What it measures

Per rank, the share of steps that hold no request while the job has data-parallel replicas.

## Why it costs

With experts shared over replicas every replica takes part in every exchange. One without requests runs a dummy batch:
its device works for nobody, and the others wait for it as for any.

## What to do

1. Balance requests over replicas (vLLM: its internal load balancer, or a router that counts tokens; SGLang:
   `--load-balance-method total_tokens`, as its default deals requests out in turn).
2. Run fewer replicas under this load.
3. Prefill in bursts makes some replicas idle in decode: put a prefill server apart, or bound the chunk.

## When it is wrong

At the end of a load the replicas run dry one after another; record the steady part.

## Sources

Steps as engines annotate them: SGLang's `step[IDLE bs=0]`, vLLM's dummy batches.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.measures.cost import mean_window_ns
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.steps.steps import steps
from analyzer.units import share

NOTABLE = 0.10
"""Of a rank's steps."""
LEAST_LOST = 0.01
"""Of the window."""
IDLE = "idle"
REQUESTS = (
    Advice("Balance requests over the replicas: --load-balance-method total_tokens.", engines=("sglang",)),
    "Balance requests over the replicas.",
)


@rule(
    Example(
        "rank 1 has no request in half of the steps",
        """
        layout  dp=2 ep=2
        rank 0 stream 7   GGXXGGXXGGXXGGXX
        rank 0 host       l.l.l.l.l.l.l.l.
        rank 0 steps      DDDD|DDD|DDD|DDD
        rank 1 stream 7   GGXXGGXXGGXXGGXX
        rank 1 host       l.l.l.l.l.l.l.l.
        rank 1 steps      DDDDIIIIDDDDIIII
        """,
        found=True,
    ),
    Example(
        "both have requests",
        """
        layout  dp=2 ep=2
        rank 0 stream 7   GGXXGGXXGGXXGGXX
        rank 0 host       l.l.l.l.l.l.l.l.
        rank 0 steps      DDDD|DDD|DDD|DDD
        rank 1 stream 7   GGXXGGXXGGXXGGXX
        rank 1 host       l.l.l.l.l.l.l.l.
        rank 1 steps      DDDD|DDD|DDD|DDD
        """,
        found=False,
    ),
    rests_on=(Doubt.STEPS,),
)
def check(run: Run) -> Iterator[Finding]:
    if run.layout.sizes.get("dp", 1) == 1:
        return
    idle_rows = [(rank, rank.phase.where(lambda word: word == IDLE)) for rank in steps(run) if len(rank)]
    idle = [(float(rows.mean()), int(rank.span_ns[rows].sum()), rank.rank) for rank, rows in idle_rows]
    if not any(0 < idle_share < 1 for idle_share, *_ in idle):
        return
    worst, _, rank = max(idle)
    lost_ns = sum(time_ns for _, time_ns, _ in idle) // len(run.traces)
    if worst < NOTABLE or lost_ns < LEAST_LOST * mean_window_ns(run):
        return
    where = tuple(number for idle_share, _, number in idle if idle_share >= NOTABLE)
    yield Finding(
        f"rank {rank} holds no request in {share(worst)} of its steps and runs them to keep step with the others; "
        f"the mean replica in {share(float(np.mean([idle_share for idle_share, *_ in idle])))}",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(where),
        (REQUESTS, "Run fewer replicas under this load."),
        cost_ns=lost_ns,
        cost_share=lost_ns / mean_window_ns(run),
    )
