"""Reports of one workload at several degrees → a series of points. Configurations that differ are not compared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from statistics import fmean

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.model.layout import AXES
from analyzer.model.point import TERMS, Exchange, Point, Series
from analyzer.report import Report, StepKind

SETTINGS = (
    "attention",
    "batch",
    "concurrency",
    "context",
    "dtype",
    "enforce_eager",
    "input_tokens",
    "output_tokens",
    "precision",
    "quantization",
    "requests",
    "seed",
    "shared_prefix",
    "skew",
    "steps",
)
"""Settings that change what a step costs; the rest (ports, paths, commands) may differ."""
FOLLOWING = {"tp": ("ep", "dcp"), "dp": ("ep",), "cp": ("ep",), "dcp": (), "ep": ("tp", "dp"), "pp": ()}
"""Axes that engines derive from another one, and that may change with it."""
NO_WORK = "idle"


def series_of(reports: tuple[Report, ...], dimension: str, kind: str = "") -> Series:
    """Points of one kind of step; reports of one degree are its runs.

    The value is the time from the start of a step to the start of the next, where every report has it, else the span
    on the device. Time between steps counts as `sync`.

    Args:
        reports: at least one.
        dimension: axis whose degree varies.
        kind: of step; "" for decode where every report has it, else for the kind that takes most time.

    Raises:
        UsageError: the reports differ in more than the degree, or have no kind of step in common.
        MissingEvidenceError: a report does not know its degree.
    """
    ordered = sorted(reports, key=lambda report: (degree(report, dimension), report.run.label))
    for report in ordered[1:]:
        _check_equal(ordered[0], report, dimension)
    word = kind or _kind(ordered)
    rows = {id(report): _row(report, word) for report in ordered}
    with_period = all(row.period_ns is not None for row in rows.values())
    points = tuple(
        _point(at, [(report, rows[id(report)]) for report in same], dimension, with_period=with_period)
        for at, same in groupby(ordered, key=lambda report: degree(report, dimension))
    )
    return Series(f"{word} steps", points, ", ".join(report.run.label for report in ordered))


def degree(report: Report, dimension: str) -> int:
    """Degree of one axis.

    Raises:
        MissingEvidenceError: neither stated, recorded nor inferred.
    """
    value = report.run.layout.get(dimension)
    if isinstance(value, int):
        return value
    if report.run.world_size == 1:
        return 1
    raise MissingEvidenceError(
        f"{report.run.label}: the degree of {dimension} is unknown",
        f'state it in run.json beside the traces: {{"layout": {{"{dimension}": …}}}}',
    )


def _check_equal(first: Report, other: Report, dimension: str) -> None:
    for what, here, there in _facts(first, other, dimension):
        if here != there:
            raise UsageError(
                f"{what} differs, {here} in {first.run.label} and {there} in {other.run.label}; "
                f"compare runs that differ in {dimension} alone"
            )


def _facts(first: Report, other: Report, dimension: str) -> Iterator[tuple[str, object, object]]:
    """What must be equal, as far as both reports know it."""
    a, b = first.run, other.run
    yield "engine", a.engine, b.engine
    yield "role", a.role, b.role
    yield "device", ", ".join(a.devices), ", ".join(b.devices)
    for name in sorted(a.versions.keys() & b.versions.keys()):
        yield f"version of {name}", a.versions[name], b.versions[name]
    for name in SETTINGS:
        if name in a.settings and name in b.settings:
            yield f"setting {name}", a.settings[name], b.settings[name]
    for axis in AXES:
        if axis not in (dimension, *FOLLOWING.get(dimension, ())) and axis in a.layout and axis in b.layout:
            yield f"degree of {axis}", a.layout[axis], b.layout[axis]


def _kind(reports: list[Report]) -> str:
    """Decode where all have it, else the kind that takes most time of those that all have."""
    kinds = [{row.kind for row in report.breakdown.steps} - {NO_WORK} for report in reports]
    shared = set.intersection(*kinds)
    if not shared:
        listed = "; ".join(
            f"{report.run.label}: {', '.join(sorted(found)) or 'no step'}"
            for report, found in zip(reports, kinds, strict=True)
        )
        raise UsageError(f"the runs have no kind of step in common ({listed}); record the same load at each degree")
    if "decode" in shared:
        return "decode"
    spent = {kind: sum(row.count * row.median_ns for row in _rows(reports, kind)) for kind in shared}
    return max(sorted(shared), key=lambda kind: spent[kind])


def _rows(reports: list[Report], kind: str) -> Iterator[StepKind]:
    for report in reports:
        yield from (row for row in report.breakdown.steps if row.kind == kind)


def _row(report: Report, kind: str) -> StepKind:
    for row in _rows([report], kind):
        return row
    found = ", ".join(row.kind for row in report.breakdown.steps) or "none"
    raise UsageError(f"{report.run.label} has no {kind} steps (there are: {found}); choose another --step")


def _point(at: int, runs: list[tuple[Report, StepKind]], dimension: str, *, with_period: bool) -> Point:
    values = [float(row.period_ns if with_period and row.period_ns is not None else row.median_ns) for _, row in runs]
    terms = [_terms(row, value) for (_, row), value in zip(runs, values, strict=True)]
    exchanges = [_exchange(report, dimension) for report, _ in runs]
    return Point(
        degree=at,
        values_ns=tuple(values),
        terms_ns={term: fmean(part[term] for part in terms) for term in TERMS},
        steps=min(row.count for _, row in runs),
        host_ns=fmean(_host_share(report) * value for (report, _), value in zip(runs, values, strict=True)),
        exchange=exchanges[0] if len(set(exchanges)) == 1 else Exchange(),
    )


def _terms(row: StepKind, value_ns: float) -> dict[str, float]:
    """The terms inside a step, the time up to the next one added to sync."""
    terms = {term: float(row.terms.get(term, 0)) for term in TERMS}
    terms["sync"] += value_ns - row.median_ns
    return terms


def _host_share(report: Report) -> float:
    """Share of the ranks' windows in which the device waited for the host."""
    rows = report.breakdown.per_rank
    window_ns = sum(row.window_ns for row in rows)
    host_ns = sum(row.sync_causes.host_launch_ns + row.sync_causes.host_sync_ns for row in rows)
    return host_ns / window_ns if window_ns else 0.0


def _exchange(report: Report, dimension: str) -> Exchange:
    """Message and rung of the collective of this axis that takes most time."""
    rows = [row for row in report.collectives if row.dimension == dimension]
    if not rows:
        return Exchange()
    longest = max(rows, key=lambda row: row.count * row.median_ns)
    return Exchange(None, longest.bytes, "" if longest.level == "unknown" else longest.level)
