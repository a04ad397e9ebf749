"""State movement: copies, fills, cache writes, layout changes, by subclass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.measures.breakdown import breakdown
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.once import once

RUNG = {
    "copy_htod": "host",
    "copy_dtoh": "host",
    "kv_offload": "host",
    "copy_ptop": "peer",
    "copy": "unknown",
}
"""Rung of the distance ladder that a subclass crosses; what is not listed stays in device memory (`hbm`)."""


@dataclass(frozen=True, slots=True)
class Move:
    """All movement of one subclass.

    Attributes:
        subclass: copy_htod, kv_write, layout_copy, …
        rung: hbm, peer, host or unknown.
        count: of the rank that has most.
        moved_bytes: sum of the bytes stated, mean over ranks; None where no entry states any.
        stated: share of the entries that state bytes, 0 to 1.
        busy_ns: union, mean over ranks.
        exposed_ns: the part under no compute and no communication, mean over ranks.
        names: distinct names.
    """

    subclass: str
    rung: str
    count: int
    moved_bytes: int | None
    stated: float
    busy_ns: int
    exposed_ns: int
    names: tuple[str, ...]


@once
def moves(run: Run) -> tuple[Move, ...]:
    """Every subclass of movement, most exposed time first."""
    table: dict[str, list[tuple[int, int, int, int, int, frozenset[str]]]] = {}
    for trace, rank_split in zip(run.traces, breakdown(run), strict=True):
        moving = trace.activities.of_kind(Kind.MOVEMENT)
        subclasses = moving.subclass
        for word in set(subclasses.values):
            chosen = moving.take(subclasses.where(lambda value, word=word: value == word))  # type: ignore[misc]
            if len(chosen) == 0:
                continue
            stated = chosen.size_bytes[chosen.size_bytes != ABSENT]
            exposed_ns = rank_split.subclass_ns.get((Kind.MOVEMENT, word), 0)
            names = frozenset(chosen.name.tolist())
            table.setdefault(word, []).append(
                (len(chosen), int(stated.sum()), stated.size, chosen.union().total_ns, exposed_ns, names)
            )
    summaries = [_summary(word, by_rank, len(run.traces)) for word, by_rank in table.items()]
    return tuple(sorted(summaries, key=lambda move: (-move.exposed_ns, move.subclass)))


def _summary(word: str, by_rank: list[tuple[int, int, int, int, int, frozenset[str]]], ranks: int) -> Move:
    counts, n_bytes, stated, busy, exposed = np.array([figures[:5] for figures in by_rank], np.int64).T
    return Move(
        subclass=word,
        rung=RUNG.get(word, "hbm"),
        count=int(counts.max()),
        moved_bytes=int(n_bytes.sum()) // ranks if stated.sum() else None,
        stated=float(stated.sum() / counts.sum()),
        busy_ns=int(busy.sum()) // ranks,
        exposed_ns=int(exposed.sum()) // ranks,
        names=tuple(sorted(frozenset().union(*(figures[5] for figures in by_rank)))),
    )
