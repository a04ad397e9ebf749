"""One call among many equals that took many times as long: a copy, a collective, or a call of the host.

It is no way of working that could be changed, and a mean that it spoils is not the run's: it is told with its place. A
collective counts without its waiting for peers. A call of the host counts where the device does nothing meanwhile: else
it waits for work, as it should. Launches are left out, whose first use of a kernel is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.records.lost import LAUNCH
from analyzer.measures.traffic import SETUP, message_bytes
from analyzer.measures.waits import wait_columns
from analyzer.model.events import ABSENT, Events
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Note, Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.units import count, duration, ranks, size

TIMES = 10.0
"""The median of its equals, and more: equal copies and reductions in recorded runs lie within 3 of it."""
ALONE = 3.0
"""Times the second longest, at least: several long ones are a way of working, not one stuck call."""
EVEN = 3.0
"""The median, which nine in ten of the others do not exceed: calls that vary by more are no equals."""
FEWEST = 16
"""Calls alike, at least: of fewer, one in ten is not to be told from chance."""
LEAST_NS = 1_000_000
LEAST_SHARE = 0.01
"""Of the window: a shorter call harms nobody."""
IDLE_SHARE = 0.9
"""Of a host's call: the device does nothing for so long."""
MOST = 3
"""Lines, longest calls first."""
LONGEST_NAME = 60
UNEQUAL = (*SETUP, "send_recv", "barrier")
"""They wait for another rank, as long as that takes."""


@dataclass(frozen=True, slots=True)
class StuckCall:
    """One call with its place.

    Attributes:
        ranks: where it was longest, and other ranks with a stuck call of this name and size.
        name: kernel, copy, or function of the runtime.
        size_bytes: of each of its equals, ABSENT where they state none.
        after_ns: begin, after the start of the rank's window.
        took_ns: without waiting for peers.
        equals: how many others.
        median_ns: of the others.
    """

    ranks: tuple[int, ...]
    name: str
    size_bytes: int
    after_ns: int
    took_ns: int
    equals: int
    median_ns: int

    @property
    def sentence(self) -> str:
        """One line for the report."""
        name = self.name if len(self.name) <= LONGEST_NAME else f"{self.name[:LONGEST_NAME]}…"
        of = f" of {size(self.size_bytes)}" if self.size_bytes != ABSENT else ""
        more = f"; so on {count(len(self.ranks) - 1, 'other rank')} ({ranks(self.ranks[1:])})"
        return (
            f"one call was stuck: {name}{of} on rank {self.ranks[0]}, {duration(self.after_ns)} into the window, took "
            f"{duration(self.took_ns)}; the median of {self.equals:,} others alike is {duration(self.median_ns)}"
        ) + more * (len(self.ranks) > 1)


def stuck(run: Run) -> tuple[Note, ...]:
    """Stuck calls as notes, longest first, those of one name and size on several ranks once."""
    longest: dict[tuple[str, int], StuckCall] = {}
    for trace, rank_split, wait_ns in zip(run.traces, breakdown(run), wait_columns(run), strict=True):
        for call in sorted(_of_rank(trace, rank_split, wait_ns), key=lambda call: call.took_ns):
            known = longest.get((call.name, call.size_bytes), call)
            first, other = (known, call) if known.took_ns >= call.took_ns else (call, known)
            everywhere = dict.fromkeys((*first.ranks, *other.ranks))
            longest[call.name, call.size_bytes] = replace(first, ranks=tuple(everywhere))
    chosen = sorted(longest.values(), key=lambda call: -call.took_ns)[:MOST]
    return tuple(Note(call.sentence) for call in chosen)


def _of_rank(trace: Trace, rank_split: Breakdown, wait_ns: Integers) -> Iterator[StuckCall]:
    work, calls = trace.activities, trace.calls
    least_ns = max(LEAST_NS, int(LEAST_SHARE * rank_split.window.total_ns))
    took_ns = work.duration_ns - wait_ns
    if np.any(took_ns >= least_ns):
        sizes = np.where(work.kind == Kind.COMMUNICATION, message_bytes(trace), work.size_bytes)
        is_call = (work.kind == Kind.COMMUNICATION) | ((work.kind == Kind.MOVEMENT) & (sizes != ABSENT))
        is_call &= ~work.subclass.where(lambda word: word in UNEQUAL)
        yield from _alone(trace, rank_split, work, (sizes, took_ns), is_call & (took_ns >= least_ns))
    long = calls.duration_ns >= least_ns
    if np.any(long):
        idle_ns = rank_split.sync.within(calls.start_ns, calls.end_ns)
        long &= (idle_ns >= IDLE_SHARE * calls.duration_ns) & ~calls.name.where(lambda name: bool(LAUNCH.match(name)))
        sizes = np.full(len(calls), ABSENT, np.int64)
        yield from _alone(trace, rank_split, calls, (sizes, calls.duration_ns), long)


def _alone(
    trace: Trace, rank_split: Breakdown, events: Events, columns: tuple[Integers, Integers], long: Mask
) -> Iterator[StuckCall]:
    """Of the long ones, those that are alone among equals of their name and size; the first of its kind sets up."""
    sizes, took_ns = columns
    keys = np.unique(np.stack((events.name.codes[long], sizes[long])), axis=1).T
    for code, n_bytes in keys:
        rows = np.flatnonzero((events.name.codes == code) & (sizes == n_bytes))
        worst = int(rows[np.argmax(took_ns[rows])])
        others = took_ns[rows[rows != worst]]
        if rows.size < FEWEST or worst == rows[0] or not long[worst]:
            continue
        median_ns = int(np.median(others))
        even = np.percentile(others, 90) <= EVEN * median_ns
        if even and took_ns[worst] >= max(TIMES * median_ns, ALONE * int(others.max())):
            after_ns = int(events.start_ns[worst]) - int(rank_split.window.start_ns[0])
            yield StuckCall(
                (trace.rank,), events.name[worst], int(n_bytes), after_ns, int(took_ns[worst]), others.size, median_ns
            )
