"""The ledger of rungs as rows of the report."""

from __future__ import annotations

import numpy as np

from analyzer.measures.ladder import Rung, by_level, ladder
from analyzer.model.run import Run
from analyzer.schema.finding import Basis
from analyzer.schema.ladder import LadderRow, RankRung


def ladder_rows(run: Run) -> list[LadderRow]:
    """What moved over each rung, near to far, mean over ranks."""
    n = len(run.traces)
    rows = []
    for level, having in by_level(run):
        stated = [rung.moved_bytes for rung in having]
        n_bytes = None if None in stated else sum(value or 0 for value in stated) // n
        derived = any(rung.basis is Basis.DERIVED for rung in having)
        basis = Basis.DERIVED if derived else Basis.MEASURED
        time_ns = sum(rung.time_ns for rung in having) // n
        rows.append(LadderRow(level, n_bytes, time_ns, basis.value, *_in_a_step(having)))
    return rows


def rank_rungs(run: Run) -> list[RankRung]:
    """One for each rank and rung."""
    return [
        RankRung(
            rung.rank,
            rung.level,
            rung.calls,
            rung.moved_bytes,
            rung.time_ns,
            rung.basis.value,
            *_in_a_step([rung]),
        )
        for rung in ladder(run)
    ]


def _in_a_step(rungs: list[Rung]) -> tuple[int | None, int | None]:
    """Median bytes and time over the steps of these ranks in which anything moved."""
    n_bytes = np.concatenate([rung.step_bytes for rung in rungs])
    time_ns = np.concatenate([rung.step_ns for rung in rungs])
    moved = (n_bytes > 0) | (time_ns > 0)
    if not moved.any():
        return None, None
    known = all(rung.moved_bytes is not None for rung in rungs)
    return int(np.median(n_bytes[moved])) if known else None, int(np.median(time_ns[moved]))
