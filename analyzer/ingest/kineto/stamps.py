"""Starts far from all others: zero where a record was never stamped, or of another epoch or another unit."""

from __future__ import annotations

import numpy as np

from analyzer.stats.arrays import Integers, Mask

FAR_NS = 3_600_000_000_000
"""An hour without any event; a recording lasts seconds, and each profile has a file of its own."""


def near_others(start_ns: Integers) -> Mask | None:
    """bool[n], False for events far from most others; None where none is.

    Events that all have one stamp, as those never stamped have, do not count as most.
    """
    if start_ns.size == 0 or int(start_ns.max()) - int(start_ns.min()) <= FAR_NS:
        return None
    ordered = np.sort(start_ns)
    edges = np.flatnonzero(np.diff(ordered) > FAR_NS) + 1
    if edges.size == 0:
        return None
    first, last = np.concatenate(([0], edges)), np.concatenate((edges, [ordered.size])) - 1
    size, is_stamped = last - first + 1, ordered[last] > ordered[first]
    largest = int(np.lexsort((size, is_stamped))[-1])
    near: Mask = (start_ns >= ordered[first[largest]]) & (start_ns <= ordered[last[largest]])
    return near
