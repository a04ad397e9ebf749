"""Many collectives carry messages too small to use the link.

## What it measures

Collectives whose recorded message is at most 64 KiB, and the exclusive time they take.

## Why it costs

Below that size the time of a collective is start-up and hops, not bytes: 5 to 16 µs for eight ranks inside a node, and
several times that across nodes. Ten small ones cost ten start-ups.

## What to do

1. Send them together: fuse parameters, logits and token ids into one call.
2. Run the steps in a CUDA graph; eager, each call also costs 20 to 100 µs of host launch.
3. Raise the batch: the same number of calls then serves more tokens.

## When it is wrong

A call may be long because it waits for a late rank; the message then says nothing about its time.

## Sources

Measured small-message times of NCCL and custom all-reduce on A100, H100 and B200.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.units import share, size

SMALL_BYTES = 64 << 10
"""Largest message whose time is latency on every rung (below it, bandwidth is not graded)."""
NOTABLE = 0.05
MANY = 20


@rule(
    Example(
        "a hundred bytes at a time",
        "message 1024\nrank 0 stream 7   GAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAAGAA",
        found=True,
    ),
    Example("few large reductions", "message 1048576\nrank 0 stream 7   GGGGAAAAGGGGAAAA", found=False),
)
def check(run: Run) -> Iterator[Finding]:
    rows = traffic(run)
    if not rows:
        return
    if all(row.message_bytes is None for row in rows):
        raise MissingEvidenceError(
            "no collective states its message size", "record eagerly with record_shapes (graph replays carry none)"
        )
    small = [row for row in rows if row.message_bytes is not None and row.message_bytes <= SMALL_BYTES]
    calls, exposed_ns = sum(row.count for row in small), sum(row.exposed_ns for row in small)
    window_ns = mean_window_ns(run)
    if calls < MANY or exposed_ns < NOTABLE * window_ns:
        return
    largest = max(row.message_bytes or 0 for row in small)
    yield Finding(
        f"{calls:,} collectives of at most {size(largest)} take {share(exposed_ns / window_ns)} of the window",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence(run.ranks, names=tuple(dict.fromkeys(name for row in small for name in row.names))),
        (
            "Send small tensors together, or raise the batch so that a call serves more tokens.",
            "Run the steps in a CUDA graph.",
        ),
        cost_ns=exposed_ns,
        cost_share=exposed_ns / window_ns,
        locality=Locality.SPATIAL,
    )
