"""What the waits, copies, uneven experts and all-reduces of a step cost at most: rows of the report."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.records.plausible import doubt_of
from analyzer.model.run import Run
from analyzer.schema.bounds import BoundRow
from analyzer.steps.steps import step_summary
from analyzer.whatif.ceilings import ceilings
from analyzer.whatif.step_classes import step_of

LEAST_SHARE = 0.01
"""Of the step: a bound below it is not worth a row, as a loss below it is not in the verdict."""
KINDS = ("decode", "prefill", "mixed", "verify")
"""Steps that do a request's work."""


def bound_rows(run: Run) -> list[BoundRow]:
    """Bounds of every kind of step; none of doubtful records, nor of a kind whose waiting is not told from transfer."""
    if doubt_of(run):
        return []
    return [row for summary in step_summary(run) if summary.kind in KINDS for row in _rows(run, summary.kind)]


def _rows(run: Run, kind: str) -> Iterator[BoundRow]:
    degree = max(run.layout.sizes.get("tp", 1), run.layout.sizes.get("ep", 1)) if run.layout.sizes else len(run.traces)
    try:
        step = step_of(run, degree, kind, median_only=True)
    except MissingEvidenceError:
        return
    for bound in ceilings(step):
        if bound.saved_ns >= LEAST_SHARE * step.step_ns:
            yield BoundRow(
                kind=kind,
                name=bound.name,
                saved_ns=round(bound.saved_ns),
                step_ns=round(step.step_ns),
                sentence=f"{kind} steps {bound.sentence}",
                basis=bound.basis.value,
            )
