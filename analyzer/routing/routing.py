"""Reuse of KV that routing achieves, could achieve under several policies, and could achieve at all; and its price.

Each request goes to one of N workers and finds there the leading blocks of its prompt that the worker still holds; a
hit ends at the first missing block. It then holds its worker for the prefill of what is missing and for its decode.
Blocks count as held from the moment the request is sent. Blocks that decode fills are in no log and not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analyzer import units
from analyzer.model.events import ABSENT
from analyzer.model.trace import Note
from analyzer.routing.outcome import Case, PolicyOutcome, measured
from analyzer.routing.paths import conversations, paths
from analyzer.routing.policies import ReplaySetup, as_logged, replays
from analyzer.routing.request_log import RequestLog
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Integers

Advance = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Routing:
    """Reuse achieved, reuse achievable.

    Attributes:
        path: of the log.
        requests: number of requests.
        blocks: asked for, over all requests.
        distinct_blocks: different ones among them.
        block_tokens: tokens of a block.
        setup: what it was replayed on.
        ceiling: blocks seen before anywhere over all blocks asked for: one cache for all that forgets nothing.
        outcomes: of the policies, in the order of the setup.
        achieved: what the log says of itself: MEASURED where it has cached tokens, DERIVED by a replay where it has
            only workers, None where it has neither.
        sessions: number of conversations.
        sessions_basis: MEASURED where the log names sessions, DERIVED where they follow from the prefixes.
        notes: what a reader of these figures must know.
    """

    path: str
    requests: int
    blocks: int
    distinct_blocks: int
    block_tokens: int
    setup: ReplaySetup
    ceiling: float
    outcomes: tuple[PolicyOutcome, ...]
    achieved: PolicyOutcome | None
    sessions: int
    sessions_basis: Basis
    notes: tuple[Note, ...]


def routing(log: RequestLog, setup: ReplaySetup, advance: Advance = lambda _done, _whole: None) -> Routing:
    """Reuse of the log's prefixes under each policy, and the most there could be.

    Args:
        log: requests in order of arrival.
        setup: workers, capacity, policies and the model of time.
        advance: called with policies done and policies in all.
    """
    of = paths(log)
    case = Case.of(log, of, setup.service)
    names, has_sessions = conversations(log, of)
    turns = _first_come(names)
    by_policy: dict[str, PolicyOutcome] = {}
    for each in replays(case, setup, turns):
        by_policy[each.policy] = each
        advance(len(by_policy), len(setup.policies))
    outcomes = tuple(by_policy[policy] for policy in setup.policies)
    achieved = measured(case, log)
    if achieved is None and log.workers and (log.worker != ABSENT).all():
        achieved = as_logged(case, setup, log.worker, len(log.workers))
    return Routing(
        path=log.path,
        requests=len(log),
        blocks=int(log.block.size),
        distinct_blocks=log.distinct_blocks,
        block_tokens=log.block_tokens,
        setup=setup,
        ceiling=1 - log.distinct_ids / log.block.size,
        outcomes=outcomes,
        achieved=achieved,
        sessions=int(turns.max()) + 1,
        sessions_basis=Basis.MEASURED if has_sessions else Basis.DERIVED,
        notes=(*log.notes, *_notes(log, setup, outcomes, achieved)),
    )


def _first_come(names: Integers) -> Integers:
    """int64[n]: 0 for all requests of the conversation that came first, 1 for the next, …."""
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[code]


def _notes(
    log: RequestLog, setup: ReplaySetup, outcomes: tuple[PolicyOutcome, ...], achieved: PolicyOutcome | None
) -> list[Note]:
    measured_here = achieved is not None and achieved.basis is Basis.MEASURED
    texts = {
        "name no output length: their decode counts as no time": log.output_tokens == ABSENT,
        "name no input length: their prompts count as full blocks": log.input_tokens == ABSENT,
        "ask for more blocks than a worker holds": log.block_count > (setup.capacity_blocks or log.block.size),
        "say nothing of cached tokens and are left out of what was achieved": (log.cached_tokens == ABSENT)
        & measured_here,
        "name no worker: what was achieved is unknown": (log.worker == ABSENT)
        & (bool(log.workers) and achieved is None),
    }
    counts = {text: int(rows.sum()) for text, rows in texts.items()}
    notes = [Note(f"{units.count(count, 'request')} {text}", count) for text, count in counts.items() if count]
    span_ns = int(log.arrival_ns[-1])
    busy_ns = min(sum(each.busy_ns) for each in outcomes) // setup.workers
    if 0 < span_ns < busy_ns:
        text = (
            f"{units.count(setup.workers, 'worker')} would be busy for {units.duration(busy_ns)} and more; the log "
            f"lasts {units.duration(span_ns)}: queues grow through the log, and waits say little"
        )
        notes.append(Note(text))
    return notes
