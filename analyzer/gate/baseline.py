"""The baseline of a gate: what its runs measured, as a JSON file that is kept in the repository. Schema 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from analyzer.compare.configuration import Facts, common, facts
from analyzer.compare.exact import NO_WORK, Value, quantities
from analyzer.compare.timed import TERMS
from analyzer.errors import TraceFormatError
from analyzer.schema.report import Report

SCHEMA = 1
_WORDS = "rung."
"""Exact quantities whose value is a word; those of all others are numbers, kept as fractions."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run.

    Attributes:
        label: as given.
        times_ns: `KIND.period`, `KIND.span` and `KIND.TERM` of each kind of step.
        exact: quantities without noise; numbers as "64" or "193/3".
        findings: rule code → worst severity.
    """

    label: str
    times_ns: dict[str, int]
    exact: dict[str, str]
    findings: dict[str, str]

    def quantities(self) -> dict[str, Value]:
        """The exact quantities, as they were."""
        return {name: value if name.startswith(_WORDS) else Fraction(value) for name, value in self.exact.items()}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A loss that became the baseline."""

    reason: str
    metrics: list[str]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Runs that later ones are held against.

    Attributes:
        schema: 1.
        tool: version that wrote it.
        facts: of the job, as far as all runs state them alike.
        runs: at least one.
        accepted: losses that were accepted, oldest first.
    """

    schema: int
    tool: str
    facts: Facts
    runs: list[Record]
    accepted: list[Acceptance] = field(default_factory=list)


def record(report: Report) -> Record:
    """What a baseline keeps of a run."""
    worst: dict[str, str] = {}
    order = ("info", "warning", "error")
    for row in report.findings:
        worst[row.rule] = max(worst.get(row.rule, "info"), row.severity, key=order.index)
    exact = {name: str(value) for name, value in quantities(report).items()}
    return Record(report.run.label, dict(_times(report)), exact, worst)


def baseline(reports: Sequence[Report], accepted: Sequence[Acceptance] = ()) -> Baseline:
    """The baseline that these runs make.

    Args:
        reports: one a run, at least one.
        accepted: losses accepted so far.
    """
    known = common([facts(report) for report in reports])
    return Baseline(SCHEMA, reports[0].tool.version, known, [record(report) for report in reports], list(accepted))


def to_json(kept: Baseline) -> str:
    """Indented, so that a change of it can be reviewed."""
    return msgspec.json.format(msgspec.json.encode(kept), indent=1).decode() + "\n"


def from_json(text: bytes, source: str) -> Baseline:
    """The baseline that `to_json` wrote.

    Raises:
        TraceFormatError: no baseline, or of another schema; names the place in it.
    """
    try:
        kept = msgspec.json.decode(text, type=Baseline)
        for run in kept.runs:
            run.quantities()
    except (msgspec.DecodeError, ValueError, ZeroDivisionError) as error:
        raise TraceFormatError(
            f"{source}: no baseline of a gate ({error}); write one with `shardscope gate RUN… --baseline {source} "
            "--update-baseline`"
        ) from error
    if kept.schema != SCHEMA or not kept.runs:
        what = f"baseline of schema {kept.schema}, this version reads schema {SCHEMA}" if kept.runs else "no run in it"
        raise TraceFormatError(f"{source}: {what}; write it again with --update-baseline")
    return kept


def _times(report: Report) -> Iterator[tuple[str, int]]:
    for row in report.breakdown.steps:
        if row.kind in NO_WORK:
            continue
        if row.period_ns is not None:
            yield f"{row.kind}.period", row.period_ns
        yield f"{row.kind}.span", row.median_ns
        yield from ((f"{row.kind}.{term}", row.terms[term]) for term in TERMS if term in row.terms)
