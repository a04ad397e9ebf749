"""Prefix caches of N workers: which segments each holds, and what a request finds there."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from analyzer.measures.routing.paths import Paths

_NONE = -1  # no segment


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
    holds whole prefixes, and at most its oldest segment in part.
    """

    def __init__(self, of: Paths, workers: int, capacity_blocks: int) -> None:
        self.owners = [0] * int(of.length.size)
        self.parts: dict[int, int] = {}
        self._end: list[int] = of.end.tolist()
        self._length: list[int] = of.length.tolist()
        self._held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(workers)]
        self._free_blocks = [capacity_blocks] * workers
        self._part = [(_NONE, 0)] * workers

    def serve(self, path: list[int], worker: int) -> int:
        """Blocks of the path that the worker held; it holds as much of it as fits from then on."""
        held = self._held[worker]
        part, part_blocks = self._part[worker]
        hit, whole = 0, 0
        for segment in path:
            if segment not in held:
                break
            if segment == part:
                hit += part_blocks
                self._put_part(worker, _NONE, 0)
                self._free_blocks[worker] += part_blocks
                del held[part]
                break
            hit = self._end[segment]
            whole += 1
        if whole < len(path):
            self._insert(path[whole:], worker)
        # The last first, so that the beginning of the prompt is the youngest.
        for segment in reversed(path[:whole]):
            held.move_to_end(segment)
        if self._free_blocks[worker] < 0:
            self._evict(worker)
        return hit

    def holding_part(self, workers: int, before: int) -> list[tuple[int, int]]:
        """Each of these workers (bits), with `before` blocks and those of the segment that it holds in part."""
        found = ((1 << worker, before + blocks) for worker, (_, blocks) in enumerate(self._part))
        return [(bit, blocks) for bit, blocks in found if workers & bit]

    def _insert(self, tail: list[int], worker: int) -> None:
        owners, length, held, bit = self.owners, self._length, self._held[worker], 1 << worker
        blocks = 0
        for segment in reversed(tail):
            held[segment] = None
            owners[segment] |= bit
            blocks += length[segment]
        self._free_blocks[worker] -= blocks

    def _evict(self, worker: int) -> None:
        owners, length, held, keep = self.owners, self._length, self._held[worker], ~(1 << worker)
        free = self._free_blocks[worker]
        part, part_blocks = self._part[worker]
        segment = _NONE
        while free < 0:
            segment, _ = held.popitem(last=False)
            owners[segment] &= keep
            free += part_blocks if segment == part else length[segment]
        # What was dropped too much of the last one stays: its first blocks.
        if free > 0:
            held[segment] = None
            held.move_to_end(segment, last=False)
            self._put_part(worker, segment, free)
        elif part != _NONE:
            self._put_part(worker, _NONE, 0)
        self._free_blocks[worker] = 0

    def _put_part(self, worker: int, segment: int, blocks: int) -> None:
        bit, parts = 1 << worker, self.parts
        old, _ = self._part[worker]
        if old != _NONE:
            parts[old] ^= bit
            if not parts[old]:
                del parts[old]
        if segment != _NONE:
            parts[segment] = parts.get(segment, 0) | bit
        self._part[worker] = (segment, blocks)
