"""What a loss costs: time and share, the mean over ranks; and where its worst places are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import Intervals
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run

SHOWN_SPANS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Time lost, at most.

    Attributes:
        time_ns: in a rank's window, mean over ranks.
        share: of that window, 0 to 1.
    """

    time_ns: int
    share: float


def mean_window_ns(run: Run) -> int:
    """Length of a rank's window, mean over ranks."""
    rank_splits = breakdown(run)
    return sum(rank_split.window.total_ns for rank_split in rank_splits) // max(len(rank_splits), 1)


def cost(run: Run, lost_ns: Callable[[Breakdown], int]) -> Cost:
    """Mean over ranks of what `lost_ns` takes from each rank's breakdown."""
    rank_splits = breakdown(run)
    time_ns = sum(lost_ns(rank_split) for rank_split in rank_splits)
    window_ns = sum(rank_split.window.total_ns for rank_split in rank_splits)
    return Cost(time_ns // max(len(rank_splits), 1), time_ns / window_ns if window_ns else 0.0)


def exposed(kind: Kind, *subclasses: str) -> Callable[[Breakdown], int]:
    """Exclusive time of some subclasses of a term."""
    return lambda rank_split: sum(rank_split.subclass_ns.get((kind, word), 0) for word in subclasses)


def between_ranks(rank_split: Breakdown) -> int:
    """Communication and waiting for peers: all that the split itself added."""
    return rank_split.communication.total_ns + rank_split.causes[Cause.PEER_WAIT].total_ns


def longest(intervals: Intervals, at_most: int = SHOWN_SPANS) -> tuple[tuple[int, int], ...]:
    """The longest spans, longest first."""
    order = np.argsort(intervals.start_ns - intervals.end_ns, kind="stable")[:at_most]
    return tuple((int(intervals.start_ns[row]), int(intervals.end_ns[row])) for row in order)
