"""The policies that send requests to workers, each replayed over the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from os import cpu_count

import numpy as np

from analyzer.routing.cache import KvCache, LruCache, UnlimitedCache
from analyzer.routing.outcome import Case, PolicyOutcome, outcome
from analyzer.routing.replay import Choose, Fleet, fixed, kv_aware, least_loaded, replay
from analyzer.routing.service import Service
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Integers

WORTH_A_PROCESS_REQUESTS = 100_000
"""Of a log: starting a process takes about as long as replaying this many requests."""

# Where round robin and sticky sessions send a request does not depend on time, so neither does what it finds there.
POLICIES = {
    "round_robin": Basis.DERIVED,
    "least_loaded": Basis.MODEL,
    "session_sticky": Basis.DERIVED,
    "kv_aware": Basis.MODEL,
}


@dataclass(frozen=True, slots=True)
class ReplaySetup:
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


def replays(case: Case, setup: ReplaySetup, turns: Integers) -> Iterator[PolicyOutcome]:
    """The outcome of each policy as it comes, from several processes where the log is long enough for that.

    Args:
        case: the requests.
        setup: workers, capacity and policies.
        turns: int64[n], number of each request's conversation, in order of first arrival.
    """
    processes = min(cpu_count() or 1, len(setup.policies))
    if processes == 1 or case.prompt_tokens.size < WORTH_A_PROCESS_REQUESTS:
        yield from (replayed(case, setup, policy, turns) for policy in setup.policies)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # The last, KV-aware routing, takes longest and is begun first.
        running: list[Future[PolicyOutcome]] = [
            pool.submit(replayed, case, setup, policy, turns) for policy in reversed(setup.policies)
        ]
        for done in as_completed(running):
            yield done.result()


def replayed(case: Case, setup: ReplaySetup, policy: str, turns: Integers) -> PolicyOutcome:
    """The outcome of one policy."""
    cache, fleet = _cache(case, setup, setup.workers), Fleet(setup.workers)
    choose: Choose
    if policy == "round_robin":
        choose = fixed(np.arange(case.prompt_tokens.size) % setup.workers)
    elif policy == "session_sticky":
        # Each new conversation goes to the next worker in turn and stays there.
        choose = fixed(turns % setup.workers)
    elif policy == "least_loaded":
        choose = least_loaded(fleet)
    else:
        choose = kv_aware(fleet, cache, case.work)
    result = replay(case.work, cache, fleet, choose)
    return outcome(case, policy, POLICIES[policy], setup.workers, result)


def as_logged(case: Case, setup: ReplaySetup, worker: Integers, workers: int) -> PolicyOutcome:
    """A replay on the workers that the log names.

    Args:
        case: the requests.
        setup: for its capacity.
        worker: int64[n], below `workers`.
        workers: how many the log names.
    """
    result = replay(case.work, _cache(case, setup, workers), Fleet(workers), fixed(worker))
    return outcome(case, "achieved", Basis.DERIVED, workers, result)


def _cache(case: Case, setup: ReplaySetup, workers: int) -> KvCache:
    if setup.capacity_blocks:
        return LruCache(case.work.paths, workers, setup.capacity_blocks)
    return UnlimitedCache(case.work.paths)
