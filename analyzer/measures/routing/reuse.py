"""Reuse of KV that routing achieves, could achieve under several policies, and could achieve at all; and its price.

Each request goes to one of N workers and finds there the leading blocks of its prompt that the worker still holds; a
hit ends at the first missing block. It then holds its worker for the prefill of what is missing and for its decode.
Blocks count as held from the moment the request is sent. Blocks that decode fills are in no log and not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from analyzer import units
from analyzer.finding import Basis
from analyzer.ingest.requests import RequestLog
from analyzer.measures.routing.cache import KvCache, LruCache, UnlimitedCache
from analyzer.measures.routing.outcome import Case, Outcome, measured, outcome
from analyzer.measures.routing.paths import conversations, paths
from analyzer.measures.routing.replay import Choose, Fleet, fixed, kv_aware, least_loaded, replay
from analyzer.measures.routing.service import Service
from analyzer.model.events import ABSENT, Integers
from analyzer.model.trace import Note

# Where round robin and sticky sessions send a request does not depend on time, so neither does what it finds there.
POLICIES = {
    "round_robin": Basis.DERIVED,
    "least_loaded": Basis.MODEL,
    "session_sticky": Basis.DERIVED,
    "kv_aware": Basis.MODEL,
}


@dataclass(frozen=True, slots=True)
class Setup:
    """What a log is replayed on.

    Attributes:
        workers: at least 1.
        capacity_blocks: of each worker's cache; None or 0 for no limit.
        policies: some of POLICIES.
        service: the model of time.
    """

    workers: int
    capacity_blocks: int | None = None
    policies: tuple[str, ...] = tuple(POLICIES)
    service: Service = field(default_factory=Service)


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
    setup: Setup
    ceiling: float
    outcomes: tuple[Outcome, ...]
    achieved: Outcome | None
    sessions: int
    sessions_basis: Basis
    notes: tuple[Note, ...]


def routing(log: RequestLog, setup: Setup, tick: Callable[[int, int], None] = lambda _done, _whole: None) -> Routing:
    """Reuse of the log's prefixes under each policy, and the most there could be.

    Args:
        log: requests in order of arrival.
        setup: workers, capacity, policies and the model of time.
        tick: told the number of requests replayed, each counted once a policy, and how many there will be.
    """
    of = paths(log)
    case = Case.of(log, of, setup.service)
    names, told = conversations(log, of)
    turns = _first_come(names)
    whole = len(log) * len(setup.policies)
    outcomes = tuple(
        _replayed(case, setup, policy, turns, partial(_told, tick, at * len(log), whole))
        for at, policy in enumerate(setup.policies)
    )
    achieved = measured(case) or _as_logged(case, setup)
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
        sessions_basis=Basis.MEASURED if told else Basis.DERIVED,
        notes=(*log.notes, *_notes(case, setup, outcomes, achieved)),
    )


def _replayed(case: Case, setup: Setup, policy: str, turns: Integers, tick: Callable[[int], None]) -> Outcome:
    cache, fleet = _cache(case, setup, setup.workers), Fleet(setup.workers)
    choose: Choose
    if policy == "round_robin":
        choose = fixed(np.arange(len(case.log)) % setup.workers)
    elif policy == "session_sticky":
        # Each new conversation goes to the next worker in turn and stays there.
        choose = fixed(turns % setup.workers)
    elif policy == "least_loaded":
        choose = least_loaded(fleet)
    else:
        choose = kv_aware(fleet, cache, case.work)
    found = replay(case.work, cache, fleet, choose, tick)
    return outcome(case, policy, POLICIES[policy], setup.workers, found)


def _told(tick: Callable[[int, int], None], before: int, whole: int, done: int) -> None:
    tick(before + done, whole)


def _as_logged(case: Case, setup: Setup) -> Outcome | None:
    """A replay on the workers that the log names; None where a request names none."""
    log = case.log
    if not log.workers or (log.worker == ABSENT).any():
        return None
    workers = len(log.workers)
    found = replay(case.work, _cache(case, setup, workers), Fleet(workers), fixed(log.worker))
    return outcome(case, "achieved", Basis.DERIVED, workers, found)


def _cache(case: Case, setup: Setup, workers: int) -> KvCache:
    if setup.capacity_blocks:
        return LruCache(case.work.paths, workers, setup.capacity_blocks)
    return UnlimitedCache(case.work.paths)


def _first_come(names: Integers) -> Integers:
    """int64[n]: 0 for all requests of the conversation that came first, 1 for the next, …."""
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    place = np.empty(first.size, np.int64)
    place[np.argsort(first)] = np.arange(first.size)
    return place[code]


def _notes(case: Case, setup: Setup, outcomes: tuple[Outcome, ...], achieved: Outcome | None) -> list[Note]:
    log = case.log
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
    found = {text: int(rows.sum()) for text, rows in texts.items()}
    notes = [Note(f"{units.count(count, 'request')} {text}", count) for text, count in found.items() if count]
    span_ns = int(log.arrival_ns[-1])
    busy_ns = min(sum(each.busy_ns) for each in outcomes) // setup.workers
    if 0 < span_ns < busy_ns:
        text = (
            f"{units.count(setup.workers, 'worker')} would be busy for {units.duration(busy_ns)} and more; the log "
            f"lasts {units.duration(span_ns)}: queues grow through the log, and waits say little"
        )
        notes.append(Note(text))
    return notes
