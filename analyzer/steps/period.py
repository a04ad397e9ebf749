"""Where a sequence repeats, found by its rarest members, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.stats.arrays import Codes, Integers, Mask

FEWEST = 3
"""Occurrences of the member that opens a unit: two whole units to compare."""

MOST_TRIED = 64
"""Counts that are tried: members rarer than the rest come first, so the answer is among the first few."""

ALIKE_SHARE = 0.5
"""Of the units, that must hold the same members equally often; and of the sequence, that these units must cover."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Units of a sequence.

    Attributes:
        start: int64[u], index at which each unit begins; the last runs to the end of the sequence.
        is_alike: bool[u], units that hold the same members, equally often, as most do.
    """

    start: Integers
    is_alike: Mask


def fingerprints(codes: Codes, groups: Integers) -> npt.NDArray[np.uint64]:
    """uint64[g + 1], wrapping sums of members before each border: the difference of two is that of what lies between.

    The order of members inside a unit does not count: streams of one device interleave anew each time.

    Args:
        codes: int32[n], members.
        groups: int64[g + 1], borders.
    """
    table = np.random.default_rng(0).integers(1, 2**63, size=int(codes.max(initial=0)) + 1, dtype=np.uint64)
    running = np.concatenate((np.zeros(1, np.uint64), np.cumsum(table[codes], dtype=np.uint64)))
    return running[groups]


def repeats(
    codes: Codes, gap_ns: Integers, accepts: Callable[[int, int], bool] = lambda _start, _end: True
) -> Repeats | None:
    """The largest unit that a sequence repeats, None where it does not.

    The rarest member that cuts the sequence into units of which at least half are alike opens the unit: what happens
    once a step is rarer than what happens once a layer. Of equally rare ones, that after the longest pauses; where the
    recording ends inside a unit, what opens it is there once more than what closes it.

    Args:
        codes: int32[n], members in order.
        gap_ns: int64[n], pause before each.
        accepts: whether [start, end) may be a unit.
    """
    counts = np.bincount(codes)
    by_code = np.argsort(codes, kind="stable")
    first = np.concatenate(([0], np.cumsum(counts)))
    whole = fingerprints(codes, np.arange(codes.size + 1))
    for count in np.unique(counts[counts >= FEWEST])[:MOST_TRIED]:
        openers = np.flatnonzero((counts == count) | (counts == count + 1))
        positions = [by_code[first[code] : first[code + 1]] for code in openers]
        pauses = [np.median(gap_ns[rows]) for rows in positions]
        units = _alike(positions[int(np.argmax(pauses))], whole)
        if units is not None:
            example = int(np.argmax(units.is_alike[:-1]))
            if accepts(int(units.start[example]), int(units.start[example + 1])):
                return units
    return None


def _alike(start: Integers, whole: npt.NDArray[np.uint64]) -> Repeats | None:
    """The units, if enough of them are alike."""
    border = whole[np.append(start, whole.size - 1)]
    content = border[1:] - border[:-1]
    kinds, inverse, often = np.unique(content[:-1], return_inverse=True, return_counts=True)
    most = int(np.argmax(often))
    alike = content == kinds[most]
    covered = np.diff(start, append=whole.size - 1)[alike].sum()
    if often[most] < FEWEST - 1 or often[most] < ALIKE_SHARE * inverse.size or covered < ALIKE_SHARE * (whole.size - 1):
        return None
    return Repeats(start, alike)
