"""Prefix caches of N workers: which segments each holds, and what a request finds there."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from analyzer.model.events import ABSENT
from analyzer.routing.paths import Paths


class KvCache(Protocol):
    """Prefix caches of N workers.

    Attributes:
        owners: for each segment the workers that hold it whole, as bits.
        parts: for a segment that some hold in part, those workers.
    """

    owners: list[int]
    parts: dict[int, int]

    def serve(self, path: list[int], worker: int) -> int:
        """Blocks of the path that the worker holds already; it holds as much of the path as fits from then on."""

    def holding_part(self, workers: int, before: int) -> list[tuple[int, int]]:
        """Each of these workers (bits), with `before` blocks and those of the segment that it holds in part."""


class UnlimitedCache:
    """Caches that forget nothing."""

    def __init__(self, of: Paths) -> None:
        self.owners = [0] * int(of.length.size)
        self.parts: dict[int, int] = {}
        self._end: list[int] = of.end.tolist()

    def serve(self, path: list[int], worker: int) -> int:
        """Blocks of the path that the worker held; it holds all of it from then on."""
        owners, bit = self.owners, 1 << worker
        # A worker that holds a segment holds all before it: the last one found ends the search.
        for segment in reversed(path):
            if owners[segment] & bit:
                return self._end[segment]
            owners[segment] |= bit
        return 0

    def holding_part(self, workers: int, before: int) -> list[tuple[int, int]]:  # noqa: ARG002  # the protocol's
        """None: nothing is ever held in part."""
        return []


class LruCache:
    """Caches of so many blocks that drop the least recently used one first, and of one prompt the last block first.

    So vLLM and SGLang evict: of blocks used at the same time, those with the longest prefix go first. A worker hence
    holds whole prefixes, and at most one segment in part: the one it is dropping.

    Whoever uses a segment uses all before it, so it is enough to keep in order the segments at which requests end. A
    segment that held others was last used with the last of them, and goes right after it.
    """

    def __init__(self, of: Paths, workers: int, capacity_blocks: int) -> None:
        self.owners = [0] * int(of.length.size)
        self.parts: dict[int, int] = {}
        self._end: list[int] = of.end.tolist()
        self._length: list[int] = of.length.tolist()
        self._parent: list[int] = of.parent.tolist()
        self._ends: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(workers)]
        self._followers: list[dict[int, int]] = [{} for _ in range(workers)]
        self._free_blocks = [capacity_blocks] * workers
        self._part = [(ABSENT, 0)] * workers

    def serve(self, path: list[int], worker: int) -> int:
        """Blocks of the path that the worker held; it holds as much of it as fits from then on."""
        if not path:
            return 0
        owners, bit = self.owners, 1 << worker
        whole = len(path)
        for segment in reversed(path):
            if owners[segment] & bit:
                break
            whole -= 1
        hit = self._end[path[whole - 1]] if whole else 0
        if whole < len(path):
            hit += self._insert(path, whole, worker)
            self._free_blocks[worker] -= self._end[path[-1]] - hit
        ends = self._ends[worker]
        ends[path[-1]] = None
        ends.move_to_end(path[-1])
        if self._free_blocks[worker] < 0:
            self._evict(worker)
        return hit

    def holding_part(self, workers: int, before: int) -> list[tuple[int, int]]:
        """Each of these workers (bits), with `before` blocks and those of the segment that it holds in part."""
        held = ((1 << worker, before + blocks) for worker, (_, blocks) in enumerate(self._part))
        return [(bit, blocks) for bit, blocks in held if workers & bit]

    def _insert(self, path: list[int], whole: int, worker: int) -> int:
        """Hold what is missing of a path; blocks of the first missing segment that were held."""
        owners, followers, bit = self.owners, self._followers[worker], 1 << worker
        part_segment, part_blocks = self._part[worker]
        before = path[whole - 1] if whole else ABSENT
        if path[whole] == part_segment:
            followers[before] -= 1
            self._put_part(worker, ABSENT, 0)
        else:
            part_blocks = 0
        for segment in path[whole:]:
            owners[segment] |= bit
            followers[before] = followers.get(before, 0) + 1
            before = segment
        return part_blocks

    def _evict(self, worker: int) -> None:
        owners, length, keep = self.owners, self._length, ~(1 << worker)
        ends, followers = self._ends[worker], self._followers[worker]
        free = self._free_blocks[worker]
        segment, blocks = self._part[worker]
        while free < 0:
            if segment == ABSENT:
                segment, _ = ends.popitem(last=False)
                if segment in followers:  # last used with those behind it
                    segment = ABSENT
                    continue
                blocks = length[segment]
            owners[segment] &= keep
            free += blocks
            if free > 0:
                break
            segment = self._parent[segment]
            followers[segment] -= 1
            if followers[segment]:
                segment = ABSENT
                continue
            del followers[segment]
            if segment in ends:
                segment = ABSENT
            elif segment != ABSENT:
                blocks = length[segment]
        if free == 0 and segment != ABSENT:
            ends[segment] = None
            ends.move_to_end(segment, last=False)
            segment = ABSENT
        self._put_part(worker, segment, free)
        self._free_blocks[worker] = 0

    def _put_part(self, worker: int, segment: int, blocks: int) -> None:
        bit, parts = 1 << worker, self.parts
        old, _ = self._part[worker]
        self._part[worker] = (segment, blocks)
        if old == segment:
            return
        if old != ABSENT:
            parts[old] ^= bit
            if not parts[old]:
                del parts[old]
        if segment != ABSENT:
            parts[segment] = parts.get(segment, 0) | bit
