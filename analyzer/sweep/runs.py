"""Reports of one workload at several degrees → a series of points. Configurations that differ are not compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from statistics import fmean

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.schema.breakdown import StepKind
from analyzer.schema.report import Report
from analyzer.sweep.comparable import LAYOUT, check_load, check_settings, unchecked
from analyzer.sweep.layouts import check_one_size, gpus, is_growing, layout_words
from analyzer.sweep.point import TERMS, Exchange, Memory, Point, PointSeries
from analyzer.units import count

NO_WORK = "idle"
SAME_GPUS = ("dcp",)
"""Axes inside another one: their degrees use the same GPUs, and are a series all the same."""

_Row = tuple[Report, StepKind]


def series_of(reports: tuple[Report, ...], dimension: str, kind: str = "") -> PointSeries:
    """Points of one kind of step; reports of one degree are its runs.

    The value is the time from the start of a step to the start of the next, where every report has it, else the span
    on the device. Time between steps counts as `sync`.

    Runs whose GPUs grow with the degree are a series; runs on one number of GPUs are layouts, which have no order.

    Args:
        reports: at least one.
        dimension: axis whose degree varies, or "layout" to compare layouts of one number of GPUs.
        kind: of step; "" for decode where every report has it, else for the kind that takes most time.

    Raises:
        UsageError: the reports differ in more than the degree, or have no kind of step in common.
        MissingEvidenceError: a report does not know its degree or layout.
    """
    held = _layouts(reports) if dimension == LAYOUT else _degrees(reports, dimension)
    ordered = [report for _, report in held]
    check_settings(ordered, dimension)
    word = kind or _kind(ordered)
    rows = [(point_degree, (report, _row(report, word))) for point_degree, report in held]
    check_load([row for _, row in rows], dimension)
    grows = dimension in SAME_GPUS or (dimension != LAYOUT and _grows(held, dimension))
    with_period = all(row.period_ns is not None for _, (_, row) in rows)
    points = []
    for point_degree, same in groupby(rows, key=lambda pair: pair[0]):
        point = _point(point_degree, [row for _, row in same], dimension, with_period=with_period)
        points.append(point if grows else replace(point, name=_name(held, point_degree)))
    return PointSeries(
        f"{word} steps",
        tuple(points),
        ", ".join(report.run.label for report in ordered),
        ordered=grows,
        notes=tuple(filter(None, ("" if grows else _one_size(ordered), unchecked(ordered)))),
        kv_heads=_kv_heads(ordered[0]) if dimension == "tp" else None,
    )


def _kv_heads(report: Report) -> int | None:
    """Of grouped attention; a latent cache is replicated from the first rank on, whatever its config states."""
    heads = report.run.model.get("num_key_value_heads")
    return heads if isinstance(heads, int) and "kv_lora_rank" not in report.run.model else None


def _degrees(reports: tuple[Report, ...], dimension: str) -> list[tuple[int, Report]]:
    held = [(degree(report, dimension), report) for report in reports]
    return sorted(held, key=lambda pair: (pair[0], pair[1].run.label))


def _layouts(reports: tuple[Report, ...]) -> list[tuple[int, Report]]:
    """Reports with the place of their layout, in order of first appearance."""
    check_one_size(reports)
    places: dict[str, int] = {}
    held = [(places.setdefault(layout_words(report), len(places) + 1), report) for report in reports]
    return sorted(held, key=lambda pair: pair[0])


def _grows(held: list[tuple[int, Report]], dimension: str) -> bool:
    return is_growing([(point_degree, gpus(report), report.run.label) for point_degree, report in held], dimension)


def _one_size(reports: list[Report]) -> str:
    return f"all take {count(gpus(reports[0]), 'GPU')}: compared as layouts, of which none is past another"


def _name(held: list[tuple[int, Report]], point_degree: int) -> str:
    return layout_words(next(report for held_degree, report in held if held_degree == point_degree))


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


def _kind(reports: list[Report]) -> str:
    """Decode where all have it, else the kind that takes most time of those that all have."""
    kinds = [{row.kind for row in report.breakdown.steps} - {NO_WORK} for report in reports]
    shared = set.intersection(*kinds)
    if not shared:
        listed = "; ".join(
            f"{report.run.label}: {', '.join(sorted(recorded)) or 'no step'}"
            for report, recorded in zip(reports, kinds, strict=True)
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
    recorded = ", ".join(row.kind for row in report.breakdown.steps) or "none"
    raise UsageError(f"{report.run.label} has no {kind} steps (there are: {recorded}); choose another --step")


def _point(point_degree: int, runs: list[_Row], dimension: str, *, with_period: bool) -> Point:
    values = [float(row.period_ns if with_period and row.period_ns is not None else row.median_ns) for _, row in runs]
    terms = [_terms(row, value) for (_, row), value in zip(runs, values, strict=True)]
    exchanges = [_exchange(report, dimension) for report, _ in runs]
    memories = [_memory(report) for report, _ in runs]
    return Point(
        degree=point_degree,
        values_ns=tuple(values),
        terms_ns={term: fmean(run_terms[term] for run_terms in terms) for term in TERMS},
        steps=min(row.count for _, row in runs),
        host_ns=fmean(_host_share(report) * value for (report, _), value in zip(runs, values, strict=True)),
        exchange=exchanges[0] if len(set(exchanges)) == 1 else Exchange(),
        memory=Memory(*(_mean(values) for values in zip(*memories, strict=True))),
        gpus=max(gpus(report) for report, _ in runs),
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


def _memory(report: Report) -> tuple[float | None, float | None, float | None]:
    """Preemptions, KV use and hit rate, as the engine counted them."""
    memory = report.run.memory
    asked = memory.get("queried_tokens")
    hit_rate = memory.get("cached_tokens", 0) / asked if asked else None
    return memory.get("preemptions"), memory.get("kv_use"), hit_rate


def _mean(values: tuple[float | None, ...]) -> float | None:
    """None where a run does not state its own."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _exchange(report: Report, dimension: str) -> Exchange:
    """Calls a step, of whatever kind, and message and rung of the collective of this axis that takes most time."""
    rows = [row for row in report.collectives if row.dimension == dimension]
    if not rows:
        return Exchange()
    longest = max(rows, key=lambda row: row.count * row.median_ns)
    steps = sum(row.count for row in report.breakdown.steps if row.kind != NO_WORK)
    calls = sum(row.count for row in rows) / steps if steps else None
    return Exchange(calls, longest.bytes, "" if longest.level == "unknown" else longest.level)
