"""Block ids of requests: hashes of tokens and words as integers, and one id for one block behind one prefix."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Integers

_HASH_BYTES = 8  # 64 bits: two of ten million blocks collide with a chance of 3 in a million
_WORD_MASK = (1 << 64) - 1
_TOKEN_BYTES = 8
_SPARSE = 4  # times as many possible ids as blocks: up to there a table is quicker than sorting


@dataclass(frozen=True, slots=True, eq=False)
class BlockChain:
    """Blocks of all requests, each named by itself and all blocks before it.

    Attributes:
        block: int64[m], 0 to distinct - 1; equal where block and prefix are. Order in the file does not matter.
        distinct: number of different blocks behind different prefixes.
        distinct_ids: number of different ids as logged.
    """

    block: Integers
    distinct: int
    distinct_ids: int


def hashed_tokens(tokens: list[int], block_tokens: int) -> list[int]:
    """A 64-bit hash of each full block of tokens and all tokens before it; a last block that is not full has none."""
    data = memoryview(np.array(tokens, np.int64).tobytes())
    stride = block_tokens * _TOKEN_BYTES
    digest = blake2b(digest_size=_HASH_BYTES)
    hashes = []
    for end in range(stride, len(data) + 1, stride):
        digest.update(data[end - stride : end])
        hashes.append(int.from_bytes(digest.copy().digest(), "little", signed=True))
    return hashes


def hashed_words(words: list[str]) -> Integers:
    """int64[m]: a hash of each string, the same in every process."""
    joined = b"".join(blake2b(word.encode(), digest_size=_HASH_BYTES).digest() for word in words)
    return np.frombuffer(joined, np.dtype("<i8")).astype(np.int64)


def wrapped_integers(values: list[int]) -> Integers:
    """int64[m]: ids as they are, their low 64 bits where they are wider than an int64."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array([value & _WORD_MASK for value in values], np.uint64).view(np.int64)


def chained(ids: Integers, first: Integers) -> BlockChain:
    """One id for one block behind one prefix.

    A log of prefix hashes passes through, renumbered. Where an id follows different blocks in different places, all
    blocks are named anew, position by position: KV behind another prefix is other KV.

    Args:
        ids: int64[m], as logged.
        first: int64[n + 1], where each request's blocks begin.
    """
    dense, known = _dense(ids)
    before = np.concatenate(([ABSENT], dense[:-1])).astype(np.int64)[: dense.size]
    before[first[:-1][np.diff(first) > 0]] = ABSENT
    a_parent = np.empty(known, np.int64)
    a_parent[dense] = before
    if np.array_equal(before, a_parent[dense]):
        return BlockChain(dense, known, known)
    block, distinct = _renamed(dense, first, known)
    return BlockChain(block, distinct, known)


def _dense(ids: Integers) -> tuple[Integers, int]:
    """Ids renumbered without gaps, in their order; and how many there are."""
    if int(ids.min()) >= 0 and int(ids.max()) < _SPARSE * ids.size:
        used = np.zeros(int(ids.max()) + 1, np.bool_)
        used[ids] = True
        number = np.cumsum(used, dtype=np.int64) - 1
        return number[ids], int(number[-1]) + 1
    known, dense = np.unique(ids, return_inverse=True)
    return dense.astype(np.int64, copy=False), int(known.size)


def _renamed(dense: Integers, first: Integers, radix: int) -> tuple[Integers, int]:
    """Ids by (id of the block before, own id), all first blocks first, then all second ones, and so on."""
    block = np.empty(dense.size, np.int64)
    lengths = np.diff(first)
    requests = np.flatnonzero(lengths > 0)
    position, given = 0, 0
    while requests.size:
        index = first[requests] + position
        parent = block[index - 1] + 1 if position else np.zeros(index.size, np.int64)
        _, fresh = np.unique(parent * radix + dense[index], return_inverse=True)
        block[index] = given + fresh
        given += int(fresh.max()) + 1
        position += 1
        requests = requests[lengths[requests] > position]
    return block, given
