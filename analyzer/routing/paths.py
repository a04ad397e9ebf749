"""Requests as paths of segments: runs of blocks that the log never asks for one without the other.

A cache that keeps prefixes and drops the least recently used leaf first treats the blocks of such a run alike, save
for the one run it is dropping, so a replay over segments is exact and visits far fewer things than one over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.routing.request_log import RequestLog
from analyzer.stats.arrays import Codes, Integers

# A turn of a conversation leaves at most two successors behind it: its own last, partly filled block and the next
# turn. A block with more of them is a prefix that conversations share, such as a system prompt.
SHARED_SUCCESSORS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The blocks of n requests as segments; s segments in all.

    Attributes:
        first: int64[n + 1]: request i runs along segment[first[i]:first[i + 1]].
        segment: int32[k], 0 to s - 1.
        length: int64[s], blocks of each segment.
        end: int64[s], blocks from the beginning of the prompt to the end of the segment.
        parent: int64[s], the segment before it; ABSENT at the beginning of a prompt.
        seen: int64[n], leading blocks of each request that an earlier one, anywhere, has asked for.
    """

    first: Integers
    segment: Codes
    length: Integers
    end: Integers
    parent: Integers
    seen: Integers


def paths(log: RequestLog) -> Paths:
    """The requests of a log cut into segments."""
    askers = np.bincount(log.block, minlength=log.distinct_blocks)[log.block]
    opens = np.concatenate(([True], askers[1:] != askers[:-1]))
    filled = log.block_count > 0
    opens[log.first_block[:-1][filled]] = True
    starts = np.flatnonzero(opens)
    opens_before = np.concatenate(([0], np.cumsum(opens)))
    first = opens_before[log.first_block].astype(np.int64)
    segment, count = _numbered(log.block[starts], log.distinct_blocks)
    owner = np.repeat(np.arange(len(log)), np.diff(first))
    length, end, parent = (np.zeros(count, np.int64) for _ in range(3))
    run = np.diff(np.concatenate((starts, [log.block.size])))
    length[segment] = run
    end[segment] = starts - log.first_block[owner] + run
    before = np.concatenate(([ABSENT], segment[:-1]))
    before[first[:-1][filled]] = ABSENT
    parent[segment] = before
    return Paths(first, segment, length, end, parent, _seen(first, segment, length))


def conversations(log: RequestLog, of: Paths) -> tuple[Integers, bool]:
    """The conversation of each request, and whether the log told it.

    Where the log has no sessions, a conversation begins at the first segment behind all prefixes that are shared.

    Returns:
        int64[n], equal for requests of one conversation; and True where these are the log's own sessions.
    """
    is_named = log.session != ABSENT
    if is_named.any():
        alone = np.arange(len(log)) + int(log.session.max()) + 1
        return np.where(is_named, log.session, alone), True
    successors = np.bincount(of.parent[of.parent != ABSENT], minlength=of.length.size)
    shared = successors[of.segment] >= SHARED_SUCCESSORS
    last_shared = np.maximum.accumulate(np.where(shared, np.arange(of.segment.size), ABSENT))
    filled = np.diff(of.first) > 0
    begin, last = of.first[:-1][filled], of.first[1:][filled] - 1
    behind = np.minimum(np.maximum(last_shared[last] + 1, begin), last)
    conversation = np.arange(len(log)) + of.length.size
    conversation[filled] = of.segment[behind]
    return conversation, False


def _numbered(names: Integers, limit: int) -> tuple[Codes, int]:
    """Names below `limit` renumbered without gaps, in their order; and how many there are."""
    used = np.zeros(limit, np.bool_)
    used[names] = True
    number = np.cumsum(used) - 1
    return number[names].astype(np.int32), int(used.sum())


def _seen(first: Integers, segment: Codes, length: Integers) -> Integers:
    places = np.arange(segment.size)
    first_place = np.empty(length.size, np.int64)
    first_place[segment[::-1]] = places[::-1]  # of several writes to one place numpy keeps the last
    again = np.where(first_place[segment] < places, length[segment], 0)
    total = np.concatenate(([0], np.cumsum(again)))
    return (total[first[1:]] - total[first[:-1]]).astype(np.int64)
