"""The hand-over ledger: from the start of a prefill to the end of the first decode step, split into exact terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.intervals import Intervals
from analyzer.model.handover import Counted, Message
from analyzer.model.run import Run
from analyzer.pd.pools import prefilling, spans, steps_of, working
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Mask
from analyzer.steps.steps import Phase, RankSteps

TERMS = ("prefill", "transfer", "recompute", "queue", "handshake", "unexplained", "first_decode")
"""Terms of a hand-over, each instant in the first that fits of: steps, transfer, queue, handshake, unexplained."""
_HANDING = ("kv_send", "kv_recv", "start_load_kv", "get_finished", "wait_for_layer_load", "wait_for_save")
"""Parts of names of ranges in which an engine hands over: of the built-in workload and of vLLM's connectors."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """One batch or request on its way from a prefill to a decode rank.

    Attributes:
        name: which.
        start_ns: begin of its prefill, ns since the epoch.
        end_ns: end of its first decode step.
        terms: ns of each of TERMS; their sum is `end_ns - start_ns`.
        hidden_ns: transfer beneath a prefill or decode step, beside the terms.
        size_bytes: handed over.
        basis: measured where every message was noted at both ends, derived from counters otherwise.
    """

    name: str
    start_ns: int
    end_ns: int
    terms: dict[str, int]
    hidden_ns: int
    size_bytes: int
    basis: Basis

    @property
    def total_ns(self) -> int:
        """First to last instant."""
        return self.end_ns - self.start_ns

    @property
    def transfer_ns(self) -> int:
        """Time in which something was on its way, exposed and hidden."""
        return self.terms["transfer"] + self.hidden_ns


@dataclass(frozen=True, slots=True)
class Pair:
    """A prefill and a decode side, which may be ranks of one run.

    Attributes:
        prefill: run of the prefill ranks.
        decode: run of the decode ranks.
        sources: prefill ranks.
        targets: decode ranks.
    """

    prefill: Run
    decode: Run
    sources: tuple[int, ...]
    targets: tuple[int, ...]


def ledger(pair: Pair) -> tuple[HandOver, ...]:
    """Every hand-over that both sides show whole, in order of time.

    Raises:
        MissingEvidenceError: clocks of two nodes, steps without names, or no transfer that was noted with its time.
    """
    if not is_one_clock(pair):
        raise MissingEvidenceError(
            "prefill and decode ranks are on two nodes, whose clocks differ by more than a transfer takes",
            "record both roles on one node",
        )
    sources = {rank_steps.rank: rank_steps for rank_steps in steps_of(pair.prefill, pair.sources)}
    targets = {rank_steps.rank: rank_steps for rank_steps in steps_of(pair.decode, pair.targets)}
    messages = pair.decode.workload.handover.messages or pair.prefill.workload.handover.messages
    hand_overs = tuple(
        _by_messages(pair, sources, targets, messages) if messages else _by_windows(sources, targets, _windows(pair))
    )
    if not hand_overs:
        raise MissingEvidenceError(
            "no transfer was noted with its time",
            "record with shardscope collect pd, or collect vllm or sglang with --concurrency 1",
        )
    return tuple(sorted(hand_overs, key=lambda hand_over: (hand_over.start_ns, hand_over.name)))


def is_one_clock(pair: Pair) -> bool:
    """False where the two sides are known to be on different nodes."""
    nodes = {pair.prefill.topology.node_of.get(rank) for rank in pair.sources}
    nodes |= {pair.decode.topology.node_of.get(rank) for rank in pair.targets}
    return len(nodes - {None}) < 2  # noqa: PLR2004 (two nodes have two clocks)


def _by_messages(
    pair: Pair, sources: dict[int, RankSteps], targets: dict[int, RankSteps], messages: Iterable[Message]
) -> Iterator[HandOver]:
    handing = _handing(pair)
    known = (message for message in messages if message.source in sources and message.target in targets)
    ordered = sorted(known, key=lambda message: (message.turn, message.target, message.received_ns))
    for (turn, target), group in groupby(ordered, key=lambda message: (message.turn, message.target)):
        batch = list(group)
        prefills = [_last_before(sources[rank], batch) for rank in sorted({message.source for message in batch})]
        first = _first_after(targets[target], batch[-1].received_ns)
        if first is None or None in prefills:
            continue
        lasting = [span for span in prefills if span is not None]
        moving = _union((max(message.sent_ns, message.posted_ns), message.received_ns) for message in batch)
        waiting = _union((message.sent_ns, max(message.sent_ns, message.posted_ns)) for message in batch)
        again = spans(targets[target], prefilling(targets[target]))
        yield _split(
            f"round {turn} to rank {target}",
            _Marks(_union(lasting), first, moving, waiting, again, handing[target]),
            sum(message.size_bytes for message in batch),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Marks:
    prefill: Intervals
    first: tuple[int, int]
    moving: Intervals
    waiting: Intervals
    again: Intervals
    handing: Intervals


def _split(name: str, marks: _Marks, size_bytes: int) -> HandOver:
    """Each instant of the hand-over in exactly one term."""
    start_ns, end_ns = int(marks.prefill.start_ns[0]), marks.first[1]
    whole = Intervals.single(start_ns, end_ns)
    left = whole
    terms = dict.fromkeys(TERMS, 0)
    for term, instants in (
        ("first_decode", Intervals.single(*marks.first)),
        ("prefill", marks.prefill),
        ("recompute", marks.again),
        ("transfer", marks.moving),
        ("queue", marks.waiting),
        ("handshake", marks.handing),
        ("unexplained", whole),
    ):
        terms[term] = (left & instants).total_ns
        left = left - instants
    return HandOver(
        name, start_ns, end_ns, terms, marks.moving.total_ns - terms["transfer"], size_bytes, Basis.MEASURED
    )


def _windows(pair: Pair) -> tuple[Counted, ...]:
    """Looks at the counters of the side that moves: the decode side pulls (NIXL), or the prefill side pushes."""
    return pair.decode.workload.handover.windows or pair.prefill.workload.handover.windows


def _by_windows(
    sources: dict[int, RankSteps], targets: dict[int, RankSteps], windows: Iterable[Counted]
) -> Iterator[HandOver]:
    """Hand-overs of requests that were served one at a time, the counters looked at after each."""
    before_ns = 0
    for number, window in enumerate(windows):
        since_ns, before_ns = before_ns, window.at_ns
        if window.transfers != 1:
            continue
        prefill = _union(
            span
            for rank_steps in sources.values()
            for span in _between(rank_steps, prefilling(rank_steps), since_ns, window.at_ns)
        )
        if not len(prefill):
            continue
        stop_ns = int(prefill.end_ns[-1])
        later = [
            span
            for rank_steps in targets.values()
            for span in _between(rank_steps, working(rank_steps), stop_ns, window.at_ns)
        ]
        if later:
            yield _counted(f"transfer {number + 1}", prefill, min(later), window)


def _counted(name: str, prefill: Intervals, first: tuple[int, int], window: Counted) -> HandOver:
    start_ns, stop_ns = int(prefill.start_ns[0]), int(prefill.end_ns[-1])
    gap_ns = first[0] - stop_ns
    terms = dict.fromkeys(TERMS, 0)
    terms["prefill"] = prefill.total_ns
    terms["transfer"] = min(gap_ns, window.time_ns)
    terms["unexplained"] = gap_ns - terms["transfer"] + (stop_ns - start_ns - prefill.total_ns)
    terms["first_decode"] = first[1] - first[0]
    hidden_ns = window.time_ns - terms["transfer"]
    return HandOver(name, start_ns, first[1], terms, hidden_ns, window.size_bytes, Basis.DERIVED)


def _handing(pair: Pair) -> dict[int, Intervals]:
    """Of each decode rank, the ranges in which its engine hands over."""
    handing = {}
    for trace in pair.decode.traces:
        rows = trace.annotations.name.where(lambda name: any(fragment in name for fragment in _HANDING))
        handing[trace.rank] = trace.annotations.take(rows).union()
    return handing


def _last_before(rank_steps: RankSteps, messages: list[Message]) -> tuple[int, int] | None:
    """The prefill step that a rank's messages came from: the last that began before the first was sent."""
    sent_ns = min(message.sent_ns for message in messages if message.source == rank_steps.rank)
    rows = np.flatnonzero(prefilling(rank_steps) & (rank_steps.start_ns <= sent_ns))
    return (int(rank_steps.start_ns[rows[-1]]), int(rank_steps.end_ns[rows[-1]])) if rows.size else None


def _first_after(rank_steps: RankSteps, at_ns: int) -> tuple[int, int] | None:
    rows = np.flatnonzero(
        rank_steps.phase.where(lambda word: word == Phase.DECODE.value) & (rank_steps.start_ns >= at_ns)
    )
    return (int(rank_steps.start_ns[rows[0]]), int(rank_steps.end_ns[rows[0]])) if rows.size else None


def _between(rank_steps: RankSteps, rows: Mask, since_ns: int, until_ns: int) -> list[tuple[int, int]]:
    chosen = np.flatnonzero(rows & (rank_steps.start_ns >= since_ns) & (rank_steps.end_ns <= until_ns))
    return [(int(rank_steps.start_ns[row]), int(rank_steps.end_ns[row])) for row in chosen]


def _union(pairs: Iterable[tuple[int, int]]) -> Intervals:
    table = np.array(list(pairs), np.int64).reshape(-1, 2)
    return Intervals.from_arrays(table[:, 0], np.maximum(table[:, 1], table[:, 0]))
