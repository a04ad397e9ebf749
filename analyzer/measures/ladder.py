"""The distance ladder as a ledger: bytes and time of every rank by rung, in each step and outside steps.

Time is exclusive: an instant counts once, for the term it belongs to, so that the rungs between ranks sum to the
communication of a rank and the other rungs to its movement. Bytes of a collective are its message (what nccl-tests
calls size), not what a ring sends. A trace shows no rung past the host: storage and remote memory are in no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.links import links
from analyzer.measures.moves import RUNG
from analyzer.measures.traffic import Keys, call_keys, message_bytes, traffic
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK, PCIE, PEER, SOCKET
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.steps import RankSteps, steps

BETWEEN = "between ranks, "
LEVELS = (
    *("hbm", "peer", "host", "unknown"),
    *(BETWEEN + name for name in (PEER, PCIE, SOCKET, "inside a node", NETWORK, "rung unknown")),
)
"""Rungs of the ledger, near to far; device memory and copies first, then what collectives cross."""

_NAMES = {"node": "inside a node", "unknown": "rung unknown"}
ELEMENT_BYTES = 2
"""Of activations, 16 bits; for messages that are derived from the model's dimensions."""


@dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """What one rank moved over one rung.

    Attributes:
        rank: whose it is.
        level: one of `LEVELS`.
        calls: activities.
        time_ns: exclusive time of them, waiting for peers not included.
        moved_bytes: None where one of them states none and none can be derived.
        basis: `measured` where every byte is recorded, `derived` where some follow from the model's dimensions.
        step_ns: int64[n], the part of `time_ns` in each of the rank's n steps; the rest is outside steps.
        step_bytes: int64[n], the same of `moved_bytes`; zeros where these are None.
    """

    rank: int
    level: str
    calls: int
    time_ns: int
    moved_bytes: int | None
    basis: Basis
    step_ns: Integers
    step_bytes: Integers


@once
def ladder(run: Run) -> tuple[Rung, ...]:
    """Every rank's rungs that anything moved over, ranks in order, rungs near to far."""
    of_key = {
        (row.kind, row.group, row.name): BETWEEN + _NAMES.get(use.rung, use.rung)
        for row, use in zip(traffic(run), links(run), strict=True)
    }
    rungs: list[Rung] = []
    for trace, rank_split, rank_steps, keys in zip(run.traces, breakdown(run), steps(run), call_keys(run), strict=True):
        level = _levels(trace, keys, of_key)
        stated, derived = _with_derived(run, _sizes(trace), rank_steps, keys)
        rungs += [
            _rung(LEVELS[code], level == code, (rank_split, rank_steps), stated, derived)
            for code in np.unique(level[level != ABSENT]).tolist()
        ]
    return tuple(rungs)


def _levels(trace: Trace, keys: Keys, of_key: dict[tuple[str, tuple[int, ...], str], str]) -> Integers:
    """int64[n] over activities: place in `LEVELS`, ABSENT for what is no movement or communication."""
    activities = trace.activities
    level = np.full(len(activities), ABSENT, np.int64)
    moving = activities.kind == Kind.MOVEMENT
    words = np.array([LEVELS.index(RUNG.get(word, "hbm")) for word in activities.subclass.values] or [0], np.int64)
    if len(activities):
        level[moving] = words[activities.subclass.codes][moving]
    level[activities.kind == Kind.COMMUNICATION] = LEVELS.index(BETWEEN + "rung unknown")
    for key, rows in keys.items():
        level[rows] = LEVELS.index(of_key[key])
    return level


def _sizes(trace: Trace) -> Integers:
    """int64[n] bytes that each activity states, ABSENT where it states none."""
    return np.where(trace.activities.kind == Kind.COMMUNICATION, message_bytes(trace), trace.activities.size_bytes)


def _with_derived(run: Run, size: Integers, rank_steps: RankSteps, keys: Keys) -> tuple[Integers, Mask]:
    """The same with sizes that follow from the model's dimensions, and which these are.

    An all-reduce of a tensor-parallel group that records no size carries the hidden state of its step's tokens.
    """
    derived = np.zeros(size.size, np.bool_)
    hidden = run.workload.model.get("hidden_size")
    if not isinstance(hidden, int) or run.layout.sizes.get("tp", 1) == 1 or len(rank_steps) == 0:
        return size, derived
    tokens = np.append(rank_steps.tokens, ABSENT)[rank_steps.step_of]
    for (kind, group, _), rows in keys.items():
        if kind == "all_reduce" and (not group or run.layout.axis_of(group) == "tp"):
            derived |= rows & (size == ABSENT) & (tokens != ABSENT)
    return np.where(derived, tokens * hidden * ELEMENT_BYTES, size), derived


def _rung(level: str, rows: Mask, rank: tuple[Breakdown, RankSteps], size: Integers, derived: Mask) -> Rung:
    rank_split, rank_steps = rank
    is_known = bool((size[rows] != ABSENT).all())
    inside = rows & (rank_steps.step_of != ABSENT)
    step = rank_steps.step_of[inside]
    counted = size if is_known else np.zeros_like(size)
    return Rung(
        rank=rank_split.rank,
        level=level,
        calls=int(np.count_nonzero(rows)),
        time_ns=int(rank_split.owned_ns[rows].sum()),
        moved_bytes=int(size[rows].sum()) if is_known else None,
        basis=Basis.DERIVED if is_known and derived[rows].any() else Basis.MEASURED,
        step_ns=_sums(step, rank_split.owned_ns[inside], len(rank_steps)),
        step_bytes=_sums(step, counted[inside], len(rank_steps)),
    )


def _sums(step: Integers, values: Integers, n: int) -> Integers:
    """int64[n], exact sums by step."""
    total = np.zeros(n, np.int64)
    np.add.at(total, step, values)
    return total


def by_level(run: Run) -> Iterator[tuple[str, list[Rung]]]:
    """Rungs near to far, each with the ranks that have it."""
    for level in LEVELS:
        having = [rung for rung in ladder(run) if rung.level == level]
        if having:
            yield level, having
