"""One rank is late again and again, and the others wait for it inside their collectives.

## What it measures

Per group of ranks: how often each rank is the last to arrive at a collective, against chance, and how long the others
wait for it. Found when one rank is last in more than half of the calls, which chance cannot explain, when it causes
more than half of the group's waiting, and when its lateness is its own: it arises since the collective before and is
not handed on from another group.

## Why it costs

A collective ends when its last participant has come. What looks like a slow all-reduce on every other rank is time that
one rank spends before it.

## What to do

1. Look at what the message says the late rank does longer: slower kernels point at clocks, power or heat
   (`nvidia-smi -q -d PERFORMANCE`, `amd-smi metric -c -p -t`, `npu-smi info -t power`); more kernels at unequal work;
   copies at a page fault or a logger.
2. Swap the device or the node. If the lateness follows the device, it is the hardware; if it stays with the rank, it is
   the work.

## When it is wrong

Ranks of different roles or stages are not meant to arrive together. Where a rank's host launches late, `Q305` says so.

## Sources

The last arrival of each collective on one clock; a binomial test against equal chances.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import CLOCKS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.skew import late_ranks
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import duration, ranks, share

HOST = ("launch", "blocked")
"""What the host does; another rule's matter."""
NOTABLE = 0.02
"""Of the window; less is within the jitter of equal ranks."""
_DOES = {
    "compute": "computes",
    "movement": "copies",
    "stream": "waits for another stream",
    "unrecorded": "has work launched and runs nothing that is recorded",
}
_DEVICE = (CLOCKS, "Swap its device: if the lateness moves with it, it is the hardware, else the work.")
_SHARED = ("See which other processes use its device; without any, records were lost: record a shorter window.",)


@rule(
    Example(
        "rank 1 computes longer before every reduction",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA|GAAAAAAA|GGAAAAAA
        rank 1 stream 7   GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA|GGGGGGAA
        """,
        found=True,
    ),
    Example(
        "the ranks are late by turns",
        """
        layout  tp=2
        message 65536
        rank 0 stream 7   GGAAAA|GGGGAA|GAAAAA|GGGGAA|GGAAAA|GGGGAA|GAAAAA|GGGGAA
        rank 1 stream 7   GGGGAA|GGAAAA|GGGGAA|GAAAAA|GGGGAA|GAAAAA|GGGGAA|GGAAAA
        """,
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    if not traffic(run):
        return
    window_ns = mean_window_ns(run)
    for late in late_ranks(run):
        lost_ns = late.own_ns // len(run.traces)
        is_host = bool(late.does) and late.does[0][0] in HOST
        if not (late.is_persistent and late.is_own) or is_host or lost_ns < NOTABLE * window_ns:
            continue
        reason = next(iter(late.reasons), None)
        does = f"; before, it {_DOES[reason.doing]} {duration(reason.excess_ns)} longer" if reason else ""
        does_nothing = reason is not None and reason.doing == "unrecorded"
        kernel = f" ({reason.name})" if reason and reason.name else ""
        yield Finding(
            f"rank {late.rank} is last in {share(late.last_share)} of {late.calls:,} collectives of ranks "
            f"{ranks(late.ranks)} (chance {share(late.chance)}), by {duration(late.median_late_ns)}{does}{kernel}",
            Severity.WARNING,
            Basis.MEASURED,
            Evidence((late.rank,), names=tuple(late_reason.name for late_reason in late.reasons if late_reason.name)),
            _SHARED if does_nothing else _DEVICE,
            cost_ns=lost_ns,
            cost_share=lost_ns / window_ns,
            locality=Locality.DEVICE,
        )
