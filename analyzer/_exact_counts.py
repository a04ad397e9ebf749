"""What a run's traces hold beside times, counted: launches and activities a step, and the sum of activities' durations.

Kept in `Report.extra["counts"]`, so that a comparison of saved reports has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from analyzer.errors import TraceFormatError
from analyzer.measures.steps import steps
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.report import Report

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


def count(run: Run) -> dict[str, Any]:
    """What `counts_of` reads, as plain values."""
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
    found: dict[str, Any] = msgspec.to_builtins(
        Counts(
            launches={kind: int(median[0]) for kind, median in medians.items() if median[0] > 0},
            activities={kind: int(median[1]) for kind, median in medians.items()},
            activity_sum_ns=sum(worked_ns) // len(worked_ns),
        )
    )
    return found


def counts_of(report: Report) -> Counts | None:
    """The counts that a report holds, None where it holds none.

    Raises:
        TraceFormatError: it holds something else under that key.
    """
    if KEY not in report.extra:
        return None
    try:
        return msgspec.convert(report.extra[KEY], Counts)
    except msgspec.ValidationError as error:
        raise TraceFormatError(f"{report.run.label}: extra.{KEY} of the report is damaged ({error})") from error
