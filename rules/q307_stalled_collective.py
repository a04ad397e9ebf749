"""One collective among many equals takes far longer than they do.

## What it measures

Per rank, calls of one kernel and one message size: a call that takes ten times the median of at least fifteen others,
and a fiftieth of the window or more. The first call of a kind sets its communicator up and is left out.

## Why it costs

All ranks of the group stand still while it lasts. It spoils every mean, and a percentile of latency for the user.

## What to do

1. See whether it is a wait or a transfer: the message says how much of it one rank spent before it came.
2. A transfer that stalls once: link errors and retries (`nvidia-smi nvlink -e`, `amd-smi xgmi -m`,
   `hccn_tool -i N -stat -g`, `ibstat`, switch counters), a rail that flaps, a NIC that drops packets; record with
   `NCCL_DEBUG=INFO` (NVIDIA and AMD).
3. A wait: look at what the late rank does just before on `shardscope timeline`.

## When it is wrong

A window that holds the first call after an idle time, or a recompilation on one rank.

## Sources

Durations of equal calls, as recorded.
"""

from collections.abc import Iterator

import numpy as np

from analyzer.measures.advice.shared import LIBRARY_LOG, LINK_ERRORS
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.traffic import SETUP, message_bytes
from analyzer.measures.waits import wait_columns
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt, Trace
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.stats.arrays import Integers
from analyzer.units import duration, share

TIMES = 10.0
"""The median of its equals."""
FEWEST_EQUALS = 16
UNEQUAL = (*SETUP, "send_recv", "barrier")
"""A receive waits for the stage before it, as long as that takes."""
RAREST = 0.05
"""Of its equals: more are no exception."""
NOTABLE = 0.02
"""Of the window."""


@rule(
    Example(
        "one reduction of seventeen hangs",
        """
        column 2 µs
        rank 0 stream 20  A|A|A|A|A|A|A|A|AAAAAAAAAAAAAAAAAAAAAAAAAAAA|A|A|A|A|A|A|A|A
        """,
        found=True,
    ),
    Example("all alike", "rank 0 stream 20  AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA|AA", found=False),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    stalls = [(*stall, trace_index) for trace_index, trace in enumerate(run.traces) for stall in _stalls(trace)]
    if not stalls:
        return
    excess_ns, row, equals, trace_index = max(stalls)
    if excess_ns < NOTABLE * window_ns:
        return
    trace, waited_ns = run.traces[trace_index], int(wait_columns(run)[trace_index][row])
    work = trace.activities
    length_ns = int(work.duration_ns[row])
    waiting = f", {share(waited_ns / length_ns)} of it waiting for the last rank" if waited_ns else ""
    yield Finding(
        f"one {work.subclass[row]} of {equals:,} alike takes {duration(length_ns)} on rank {trace.rank}{waiting}; "
        f"the others take {duration(length_ns - excess_ns)}",
        Severity.WARNING,
        Basis.MEASURED,
        Evidence((trace.rank,), ((int(work.start_ns[row]), int(work.end_ns[row])),), (work.name[row],)),
        (
            LINK_ERRORS,
            "See on shardscope timeline what the ranks do just before.",
            LIBRARY_LOG,
        ),
        cost_ns=excess_ns,
        cost_share=min(excess_ns / window_ns, 1.0),
        locality=Locality.NETWORK,
    )


def _stalls(trace: Trace) -> Iterator[tuple[int, int, int]]:
    """Calls that take many times what their equals do: time above that, row, how many equals."""
    for rows in _equals(trace):
        length = trace.activities.duration_ns[rows]
        usual_ns = int(np.median(length))
        late = np.flatnonzero(length[1:] > TIMES * usual_ns) + 1
        if 0 < late.size <= max(1, RAREST * rows.size):
            worst = late[np.argmax(length[late])]
            yield int(length[worst]) - usual_ns, int(rows[worst]), rows.size


def _equals(trace: Trace) -> Iterator[Integers]:
    """Rows of calls of one name and one message size, in order."""
    work = trace.activities
    is_call = (work.kind == Kind.COMMUNICATION) & ~work.subclass.where(lambda word: word in UNEQUAL)
    rows = np.flatnonzero(is_call)
    keys = np.stack((work.name.codes[rows], message_bytes(trace)[rows]), axis=1)
    _, which = np.unique(keys, axis=0, return_inverse=True)
    for key_index in range(int(which.max(initial=-1)) + 1):
        equals = rows[which.ravel() == key_index]
        if equals.size >= FEWEST_EQUALS:
            yield equals
