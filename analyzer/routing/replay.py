"""One policy's replay: each request to a worker, what it finds there, how long it waits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

import numpy as np

from analyzer.routing.cache import KvCache
from analyzer.routing.paths import Paths
from analyzer.stats.arrays import Integers

Choose = Callable[[int, list[int], int], int]
"""The worker for a request: its arrival, its path, and the prefill time of its whole prompt."""

_TURN_REQUESTS = 1 << 15  # turned into Python's numbers at a time


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What n requests cost.

    Attributes:
        paths: their blocks.
        arrival_ns: int64[n], ascending.
        whole_ns: int64[n], prefill of the whole prompt.
        saved_ns: int64[d + 1], prefill that is saved when the first 0 to d blocks of a prompt are found.
        decode_ns: int64[n].
    """

    paths: Paths
    arrival_ns: Integers
    whole_ns: Integers
    saved_ns: Integers
    decode_ns: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Where n requests went and what they met.

    Attributes:
        worker: int64[n].
        hit_blocks: int64[n], found on that worker.
        wait_ns: int64[n], until the worker was done with all before.
    """

    worker: Integers
    hit_blocks: Integers
    wait_ns: Integers


class Fleet:
    """N workers, each of which serves one request after the other.

    Attributes:
        free_ns: when each is done with what it was given.
        served: requests that each was given.
    """

    def __init__(self, workers: int) -> None:
        self.free_ns = [0] * workers
        self.served = [0] * workers
        # Those idle at the last instant asked for, then the others, by who begins first; who is in neither was chosen
        # last, and goes back when the end of what it was given is known.
        self._idle = [(0, worker) for worker in range(workers)]
        self._busy: list[tuple[int, int, int]] = []
        self._chosen = -1

    def settle(self, at_ns: int) -> None:
        """Bring the order of workers up to an instant, not before the last one."""
        busy, idle = self._busy, self._idle
        if self._chosen >= 0:
            insort(busy, (self.free_ns[self._chosen], self.served[self._chosen], self._chosen))
        while busy and busy[0][0] <= at_ns:
            _, served, worker = busy.pop(0)
            insort(idle, (served, worker))

    def soonest(self, members: int, at_ns: int) -> tuple[int, int, int]:
        """Of these workers (bits) the one that begins first, then has served least: when, requests served, worker."""
        if members & (members - 1) == 0:
            worker = members.bit_length() - 1
            return max(self.free_ns[worker], at_ns), self.served[worker], worker
        for served, worker in self._idle:
            if members >> worker & 1:
                return at_ns, served, worker
        return next(key for key in self._busy if members >> key[2] & 1)

    def choose(self, worker: int, at_ns: int) -> int:
        """Take a worker out of the order until the next `settle`."""
        if self.free_ns[worker] <= at_ns:
            del self._idle[bisect_left(self._idle, (self.served[worker], worker))]
        else:
            del self._busy[bisect_left(self._busy, (self.free_ns[worker], self.served[worker], worker))]
        self._chosen = worker
        return worker


def fixed(worker: Integers) -> Choose:
    """Workers that are known beforehand, one a request."""
    following: Iterator[int] = iter(worker.tolist())
    return lambda _at_ns, _path, _whole_ns: next(following)


def least_loaded(fleet: Fleet) -> Choose:
    """The worker with the least queued work; of idle ones that with the fewest requests so far, then the first."""
    everyone = (1 << len(fleet.free_ns)) - 1

    def choose(at_ns: int, _path: list[int], _whole_ns: int) -> int:
        fleet.settle(at_ns)
        return fleet.choose(fleet.soonest(everyone, at_ns)[2], at_ns)

    return choose


def kv_aware(fleet: Fleet, cache: KvCache, work: Work) -> Choose:
    """The worker with the least queued work plus prefill of what it does not hold; ties as in `least_loaded`.

    Score: wait_i + t_prefill(prompt - hit_i), as KV-aware routers weigh load against overlap.
    """
    everyone = (1 << len(fleet.free_ns)) - 1
    saved: list[int] = work.saved_ns.tolist()
    end: list[int] = work.paths.end.tolist()

    def choose(at_ns: int, path: list[int], whole_ns: int) -> int:
        fleet.settle(at_ns)
        best: tuple[int, int, int] | None = None
        for members, held_blocks in reversed(_groups(path, cache, end, everyone)):
            missing_ns = max(whole_ns - saved[held_blocks], 0)
            # Those that hold less cannot beat a worker that, queue and all, is done no later than an idle one of them.
            if best is not None and best[0] < at_ns + missing_ns:
                break
            begin_ns, served, worker = fleet.soonest(members, at_ns)
            score = (begin_ns + missing_ns, served, worker)
            if best is None or score < best:
                best = score
        return fleet.choose(best[2] if best else 0, at_ns)

    return choose


def _groups(path: list[int], cache: KvCache, end: list[int], everyone: int) -> list[tuple[int, int]]:
    """Workers (bits) by the leading blocks of the path that they hold, fewest first."""
    owners, parts = cache.owners, cache.parts
    groups = []
    held_blocks, alive = 0, everyone
    for segment in path:
        still = alive & owners[segment]
        if still != alive:
            lost = alive ^ still
            alive = still
            holders = lost & parts.get(segment, 0) if parts else 0
            if lost != holders:
                groups.append((lost ^ holders, held_blocks))
            if holders:
                groups.extend(sorted(cache.holding_part(holders, held_blocks), key=itemgetter(1)))
            if not alive:
                break
        held_blocks = end[segment]
    if alive:
        groups.append((alive, held_blocks))
    return groups


def replay(work: Work, cache: KvCache, fleet: Fleet, choose: Choose) -> Replay:
    """All requests in order of arrival.

    Args:
        work: the requests.
        cache: of the workers, empty.
        fleet: the workers, idle.
        choose: the policy; asked once a request.
    """
    serve, free_ns, served = cache.serve, fleet.free_ns, fleet.served
    saved: list[int] = work.saved_ns.tolist()
    size = int(work.arrival_ns.size)
    worker_of, hits, waits = (np.zeros(size, np.int64) for _ in range(3))
    for begin in range(0, size, _TURN_REQUESTS):
        rows = slice(begin, min(begin + _TURN_REQUESTS, size))
        turn = []
        for at_ns, path, whole_ns, decode_ns in _turn(work, rows):
            worker = choose(at_ns, path, whole_ns)
            hit = serve(path, worker)
            start_ns = max(free_ns[worker], at_ns)
            free_ns[worker] = start_ns + max(whole_ns - saved[hit], 0) + decode_ns
            served[worker] += 1
            turn.append((worker, hit, start_ns - at_ns))
        worker_of[rows], hits[rows], waits[rows] = np.array(turn, np.int64).T
    return Replay(worker_of, hits, waits)


def _turn(work: Work, rows: slice) -> Iterator[tuple[int, list[int], int, int]]:
    bounds = work.paths.first[rows.start : rows.stop + 1]
    flat: list[int] = work.paths.segment[bounds[0] : bounds[-1]].tolist()
    edges: list[int] = (bounds - bounds[0]).tolist()
    request_paths = (flat[low:high] for low, high in pairwise(edges))
    columns = (
        work.arrival_ns[rows].tolist(),
        request_paths,
        work.whole_ns[rows].tolist(),
        work.decode_ns[rows].tolist(),
    )
    return zip(*columns, strict=True)
