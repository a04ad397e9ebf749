"""What a run's traces hold beside times, counted: launches and activities a step, and the sum of activities' durations.

`diagnose` keeps them in `Report.extra["counts"]`, so that a comparison of saved reports has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.steps.steps import steps

KEY = "counts"


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one run.

    Attributes:
        launches: kind of step → median calls that launched its work, on one rank; absent where none is recorded.
        activities: kind of step → median activities, on one rank.
        activity_sum_ns: sum of the durations of a rank's device work, mean over ranks. No time: activities overlap.
    """

    launches: dict[str, int]
    activities: dict[str, int]
    activity_sum_ns: int


def counts(run: Run) -> Counts:
    """Medians over the steady steps of all ranks."""
    columns: dict[str, list[tuple[int, int]]] = {}
    for rank in steps(run):
        rows = np.flatnonzero(rank.is_steady)
        kinds = rank.phase.take(rows).tolist()
        pairs = zip(kinds, rank.launches[rows].tolist(), rank.activities[rows].tolist(), strict=True)
        for kind, launches, activities in pairs:
            columns.setdefault(kind, []).append((launches, activities))
    medians = {
        kind: np.percentile(np.array(pairs, np.int64), 50, axis=0, method="lower") for kind, pairs in columns.items()
    }
    worked_ns = [
        int(trace.activities.duration_ns[trace.activities.kind != Kind.SYNC].sum(dtype=np.int64))
        for trace in run.traces
    ]
    return Counts(
        launches={kind: int(median[0]) for kind, median in medians.items() if median[0] > 0},
        activities={kind: int(median[1]) for kind, median in medians.items()},
        activity_sum_ns=sum(worked_ns) // len(worked_ns),
    )
