"""Layers of a forward pass, found by what repeats in it: a graph replay says nothing else of where a kernel belongs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analyzer.measures._rank_steps import RankSteps
from analyzer.measures._repeats import fingerprints
from analyzer.model.events import ABSENT, Codes, Integers, Labels
from analyzer.model.trace import Trace

FEWEST = 3
"""Layers, at least: two equal halves are no period."""

FEWEST_NAMES = 2
"""Names that occur once a layer, at least: one alone may repeat for other reasons."""

COVERED = 0.5
"""Share of the pass between the first and the last layer, at least."""

NEXT_COUNT = 1.5
"""Counts up to so many times the commonest belong to layers too: DeepSeek-V3 has 58 of what its experts need and 61 of
what every layer needs. Twice the commonest is what occurs twice a layer."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Layers of one forward pass of n activities.

    Attributes:
        count: how many.
        opener: name that opens each.
        layer: int64[n], layer of each activity; ABSENT before the first and after the last.
        position: int64[n], which of the activities of equal name in its layer it is, from 0; ABSENT outside layers.
        variant: int64[count], 0 for layers that hold what most do, 1 for the next most frequent content, and so on.
            Layers are cut where their opener is, so that the last one often ends before others do.
    """

    count: int
    opener: str
    layer: Integers
    position: Integers
    variant: Integers

    @property
    def variants(self) -> tuple[int, ...]:
        """Layers of each content, most frequent first."""
        return tuple(int(often) for often in np.bincount(self.variant))


def layers(names: Labels) -> Layers | None:
    """Layers of a forward pass, None where nothing repeats.

    Their number is the count that most names share. Of the names that occur so often the first opens a layer.

    Args:
        names: of its activities, in order of start.
    """
    codes = names.codes
    counts = np.bincount(codes, minlength=len(names.values)) if codes.size else np.zeros(0, np.int64)
    count = _layer_count(counts)
    if count is None:
        return None
    opener = int(codes[int(np.argmax(counts[codes] == count))])
    start = np.flatnonzero(codes == opener)
    if start[-1] - start[0] < COVERED * codes.size * (count - 1) / count:
        return None
    # What follows the last layer (norm, head, sampling) is in none: a layer is as long as the median one.
    end = min(int(start[-1] + np.median(np.diff(start))), codes.size)
    layer = np.searchsorted(start, np.arange(codes.size), side="right") - 1
    layer[end:] = ABSENT
    return Layers(count, names.values[opener], layer, _positions(layer, codes), _variants(codes, np.append(start, end)))


def layer_of(trace: Trace, found: RankSteps) -> tuple[Integers, Integers]:
    """Layer and position within it of each of the trace's activities, step by step; ABSENT where there is none.

    Returns:
        int64[m], int64[m].
    """
    layer = np.full(len(trace.activities), ABSENT, np.int64)
    position = layer.copy()
    order = np.argsort(found.step_of, kind="stable")
    border = np.searchsorted(found.step_of[order], np.arange(len(found) + 1))
    for first, last in pairwise(border):
        rows = order[first:last]
        one = layers(trace.activities.name.take(rows))
        if one is not None:
            layer[rows], position[rows] = one.layer, one.position
    return layer, position


def _layer_count(counts: Integers) -> int | None:
    names = np.bincount(counts)
    names[:FEWEST] = 0
    if names.size == 0 or names.max() < FEWEST_NAMES:
        return None
    commonest = int(np.argmax(names))
    near = np.arange(names.size)
    near = near[(near >= commonest) & (near < NEXT_COUNT * commonest) & (names * 2 >= names[commonest])]
    return int(near.max())


def _positions(layer: Integers, codes: Codes) -> Integers:
    """How many of the same name came before in the same layer."""
    order = np.lexsort((codes, layer))
    new = np.concatenate(([True], (np.diff(layer[order]) != 0) | (np.diff(codes[order]) != 0)))
    opens = np.flatnonzero(new)
    position = np.empty(codes.size, np.int64)
    position[order] = np.arange(codes.size) - opens[np.cumsum(new) - 1]
    position[layer == ABSENT] = ABSENT
    return position


def _variants(codes: Codes, border: Integers) -> Integers:
    """Number of each layer's content, the most frequent one first."""
    content = np.diff(fingerprints(codes, border))
    _, inverse, often = np.unique(content, return_inverse=True, return_counts=True)
    place = np.empty(often.size, np.int64)
    place[np.argsort(-often, kind="stable")] = np.arange(often.size)
    return place[inverse]
