"""Many collectives carry messages too small to use the link.

## What it measures

Collectives whose recorded message is at most 64 KiB, and the time they take under no compute, waiting for peers left
out where it can be told. Sends and receives between stages are not among them.

## Why it costs

Below that size the time of a collective is start-up and hops, not bytes: 5 to 16 µs for eight ranks inside a node, and
several times that across nodes. Ten small ones cost ten start-ups.

## What to do

1. Send them together: fuse parameters, logits and token ids into one call.
2. Replay the steps from graphs; eager, each call also costs 20 to 100 µs of host launch.
3. Raise the batch: the same number of calls then serves more tokens.

## When it is wrong

With one rank's trace a call may be long because it waits for a late rank; the basis is then `derived`.

## Sources

Measured small-message times of NCCL and custom all-reduce on A100, H100 and B200.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.advice.shared import GRAPHS, RECORD_SHAPES
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.skew import group_waiting
from analyzer.measures.traffic import Traffic, traffic
from analyzer.measures.waits import is_told
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share, size

SMALL_BYTES = 64 << 10
"""Largest message whose time is latency on every rung (below it, bandwidth is not graded)."""
HANDED_OVER = ("send_recv", "send", "recv")
"""A receive lasts as long as the stage before it."""
NOTABLE = 0.05
MANY = 20


@rule(
    Example(
        "a hundred bytes at a time",
        "message 1024\nrank 0 stream 7   GAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAA",
        found=True,
    ),
    Example("few large reductions", "message 1048576\nrank 0 stream 7   GGGGAAAAGGGGAAAA", found=False),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    rows = traffic(run)
    if not rows:
        return
    if all(row.message_bytes is None for row in rows):
        raise MissingEvidenceError(
            "no collective states its message size", f"{fitting(run, (RECORD_SHAPES,))[0]} (graph replays carry none)"
        )
    small = [
        row
        for row in rows
        if row.kind not in HANDED_OVER and row.message_bytes is not None and row.message_bytes <= SMALL_BYTES
    ]
    calls, exposed_ns = sum(row.count for row in small), sum(_transfer_ns(run, row) for row in small)
    window_ns = mean_window_ns(run)
    if calls < MANY or exposed_ns < NOTABLE * window_ns:
        return
    waiting_told = is_told(run, *(row.kind for row in small))
    waiting = ", waiting for peers left out" if waiting_told else ", waiting for peers not told apart"
    largest = max(row.message_bytes or 0 for row in small)
    yield Finding(
        f"{calls:,} collectives of at most {size(largest)} take {share(exposed_ns / window_ns)} of the window{waiting}",
        Severity.WARNING,
        Basis.MEASURED if waiting_told else Basis.DERIVED,
        Evidence(run.ranks, names=tuple(dict.fromkeys(name for row in small for name in row.names))),
        (
            "Send small tensors together, or raise the batch so that a call serves more tokens.",
            GRAPHS,
        ),
        cost_ns=exposed_ns,
        cost_share=exposed_ns / window_ns,
        locality=Locality.SPATIAL,
    )


def _transfer_ns(run: Run, row: Traffic) -> int:
    """Time under no compute, without waiting for peers where that is told: late ranks are other rules' matter."""
    waiting = group_waiting(run, row)
    return row.exposed_ns if waiting is None else max(0, row.exposed_ns - waiting.wait_ns)
