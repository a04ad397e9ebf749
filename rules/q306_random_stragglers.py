"""Ranks wait much for whichever comes last, and it is not always the same one.

## What it measures

Waiting inside the collectives of a group, as a share of the window, where no rank is late persistently.

## Why it costs

A step waits for the latest of all ranks, so that random delays of each add up: with more ranks the latest is later. The
network is not to blame, and a faster one does not help.

## What to do

1. Look for what delays any rank now and then: other processes on its cores, garbage collection
   (vLLM shows its pauses with `VLLM_GC_DEBUG`; own code: `gc.freeze`), power capping, page faults.
2. Lower the number of collectives a step, or the degree: fewer meetings, fewer waits.
3. Balance requests: unequal batches or contexts make unequal steps.

## When it is wrong

Where the clocks allow no comparison, or arrival and shortest duration do not agree, nothing is said. With more ranks
than cores on a host without accelerators, waiting for a core is waiting for a peer.

## Sources

Latest arrival and shortest duration of each collective, both; expected maximum of random delays.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import ACCUMULATE
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.skew import late_ranks
from analyzer.measures.traffic import traffic
from analyzer.measures.waits import WaitVerdict, waits
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import ranks, share

NOTABLE = 0.10
"""Of the window."""
FEWEST_CALLS = 8
"""Collectives below which nobody could be persistent."""


@rule(
    Example(
        "the ranks are late by turns",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGAAAA|GGGGAA|GAAAAA|GGGGAA|GGAAAA|GGGGAA|GAAAAA|GGGGAA
        rank 1 stream 7   GGGGAA|GGAAAA|GGGGAA|GAAAAA|GGGGAA|GAAAAA|GGGGAA|GGAAAA
        """,
        found=True,
    ),
    Example(
        "equal ranks",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGGAA|GGAA|GGGAA|GGAA|GGGAA|GGAA|GGGAA|GGAA|GGGAA
        rank 1 stream 7   GGGAA|GGAA|GGGAA|GGAA|GGGAA|GGAA|GGGAA|GGAA|GGGAA
        """,
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    if not traffic(run):
        return
    window_ns = mean_window_ns(run)
    persistent = {late.ranks for late in late_ranks(run) if late.is_persistent}
    for group_waits in waits(run).groups:
        lost_ns = int(group_waits.wait_ns.sum()) // len(run.traces)
        is_conclusive = (
            group_waits.is_by_arrival
            and group_waits.verdict is not WaitVerdict.INCONCLUSIVE
            and len(group_waits.group) >= FEWEST_CALLS
        )
        if not is_conclusive or group_waits.group.ranks in persistent or lost_ns < NOTABLE * window_ns:
            continue
        yield Finding(
            f"ranks {ranks(group_waits.group.ranks)} wait {share(lost_ns / window_ns)} of the window for whichever "
            f"comes last to {len(group_waits.group):,} collectives, and no rank is late persistently",
            Severity.WARNING,
            Basis.MEASURED,
            Evidence(group_waits.group.ranks, names=group_waits.group.kinds),
            (
                "Look for what delays any rank now and then: other load on its cores, garbage collection, power caps.",
                (ACCUMULATE, "Meet less often: fewer collectives a step, or a lower degree."),
            ),
            cost_ns=lost_ns,
            cost_share=lost_ns / window_ns,
        )
