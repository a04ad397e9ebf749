"""One rank is late again and again because its host launches late or is blocked.

## What it measures

As `Q304`, where what the late rank does longer than the others is to wait for its host: the next kernel has not been
launched, or the host sits in a synchronizing call.

## Why it costs

All ranks of the group pay for one slow host thread: they wait inside their collectives, where it looks like a slow
network.

## What to do

1. Give the rank's process cores of its own on the NUMA node of its device (vLLM: `--numa-bind`; else `numactl`), and
   look for what else runs there.
2. Replay decode from graphs, so that the host launches once a step.
3. Look for Python work of one rank only: logging, metrics, sampling or output handling on rank 0.

## When it is wrong

A profiler slows the host, and may slow one more than another: compare with the step time without it.

## Sources

Launch correlation of the PyTorch profiler; the last arrival of each collective on one clock.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import BIND, GRAPHS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.skew import late_ranks
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import duration, ranks, share

NOTABLE = 0.02
"""Of the window; less is within the jitter of equal ranks."""
_DOES = {"launch": "waits for its host to launch", "blocked": "waits for its host, blocked in a call,"}


@rule(
    Example(
        "the host of rank 1 launches each reduction late",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA
        rank 0 host       llllllllllllllllll......................................................
        rank 1 stream 7   GG....AA|G.....AA|GG....AA|G.....AA|GG....AA|G.....AA|GG....AA|G.....AA|GG....AA
        rank 1 host       l.....l.l.....l.l.....l.l.....l.l.....l.l.....l.l.....l.l.....l.l.....l.
        """,
        found=True,
    ),
    Example(
        "rank 1 computes longer",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA
        rank 0 host       llllllllllllllllll......................................................
        rank 1 stream 7   GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA
        rank 1 host       llllllllllllllllll......................................................
        """,
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION, Doubt.LAUNCHES),
)
def check(run: Run) -> Iterator[Finding]:
    if not traffic(run):
        return
    window_ns = mean_window_ns(run)
    for late in late_ranks(run):
        lost_ns = late.own_ns // len(run.traces)
        doing, excess_ns = late.does[0] if late.does else ("", 0)
        if not (late.is_persistent and late.is_own) or doing not in _DOES or lost_ns < NOTABLE * window_ns:
            continue
        yield Finding(
            f"rank {late.rank} is last in {share(late.last_share)} of {late.calls:,} collectives of ranks "
            f"{ranks(late.ranks)} (chance {share(late.chance)}): before, it {_DOES[doing]} "
            f"{duration(excess_ns)} longer than the others",
            Severity.WARNING,
            Basis.MEASURED,
            Evidence((late.rank,)),
            (
                GRAPHS,
                f"Give the process of rank {late.rank} cores of its own, and look for what else runs on them.",
                BIND,
            ),
            cost_ns=lost_ns,
            cost_share=lost_ns / window_ns,
            locality=Locality.NUMA,
        )
