"""One HTML file that opens offline from disk: verdict, answers, charts, tables that sort and filter, findings."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from analyzer.render import words
from analyzer.render.html_page import LIMITS, clip, page
from analyzer.render.safe import safe
from analyzer.render.second_opinion import hta_lines
from analyzer.rule import Question
from analyzer.schema.breakdown import RankBreakdown
from analyzer.schema.report import Report

SUFFIX = ".html"
_SERIES = (
    ("compute_ns", "compute"),
    ("communication_ns", "communication"),
    ("movement_ns", "movement"),
    *words.CAUSES.items(),
)


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as a page; width and colour change nothing."""
    report = safe(report)
    shown = _shown(report.breakdown.per_rank)
    return page(
        "report.html.j2",
        _charts(report, shown),
        report=report,
        ranks=shown,
        causes=[key for key in words.CAUSES if any(getattr(row.sync_causes, key) for row in shown)],
        left_ranks=len(report.breakdown.per_rank) - len(shown),
        work=_work(report.breakdown.per_rank),
        questions={question.value: question.text for question in Question},
        opinion=hta_lines(report.extra["hta"]) if "hta" in report.extra else [],
        extra=_extra(report),
    )


def _shown(rows: list[RankBreakdown]) -> list[RankBreakdown]:
    """All ranks, or of very many the half that computes least and the half that computes most."""
    if len(rows) <= LIMITS["most_ranks"]:
        return rows
    by_compute = sorted(rows, key=lambda row: row.compute_ns / max(row.window_ns, 1))
    half = LIMITS["most_ranks"] // 2
    return sorted([*by_compute[:half], *by_compute[-half:]], key=lambda row: row.rank)


def _work(rows: list[RankBreakdown]) -> list[tuple[str, int, float]]:
    """Kind of kernel, its time as a mean over ranks, and its share of the window; longest first."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row.subclasses)
    window_ns = sum(row.window_ns for row in rows)
    return [
        (kind, ns // len(rows), ns / window_ns) for kind, ns in total.most_common(LIMITS["most_words"]) if window_ns
    ]


def _extra(report: Report) -> list[tuple[str, str]]:
    """What else the report holds, as JSON. What has a place of its own or serves comparisons is not here."""
    left = {key: value for key, value in report.extra.items() if key not in {"hta", "counts"}}
    return [
        (key, clip(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), LIMITS["longest_extra"]))
        for key, value in list(left.items())[: LIMITS["most_names"]]
    ]


def _waits(report: Report) -> dict[str, Any]:
    """Who waits for whom: the ranks that wait or are waited for longest, a row for each that waits."""
    total: Counter[int] = Counter()
    for pair in report.waiting.pairs:
        total[pair.rank] += pair.wait_ns
        total[pair.last] += pair.wait_ns
    names = sorted(rank for rank, _ in total.most_common(LIMITS["most_waiting"]))
    place = {rank: at for at, rank in enumerate(names)}
    values = [[0] * len(names) for _ in names]
    for pair in report.waiting.pairs:
        if pair.rank in place and pair.last in place:
            values[place[pair.rank]][place[pair.last]] = pair.wait_ns
    return {"names": names, "values": values}


def _charts(report: Report, shown: list[RankBreakdown]) -> dict[str, Any]:
    """Columns for the charts, in nanoseconds; what is nothing everywhere is left out."""
    causes = {key: [getattr(row.sync_causes, key) for row in shown] for key in words.CAUSES}
    columns = {key: causes.get(key) or [getattr(row, key, 0) for row in shown] for key, _ in _SERIES}
    steps, rungs = report.breakdown.steps[: LIMITS["most_step_kinds"]], report.ladder[: LIMITS["most_words"]]
    return {
        "ranks": {
            "names": [row.rank for row in shown],
            "window_ns": [row.window_ns for row in shown],
            "series": [
                {"key": key.removesuffix("_ns"), "name": name, "values": columns[key]}
                for key, name in _SERIES
                if any(columns[key])
            ],
        },
        "steps": {
            "names": [clip(row.kind, LIMITS["longest_name"]) for row in steps],
            "series": [
                {"key": term, "name": name, "values": [row.terms.get(term, 0) for row in steps]}
                for term, name in (
                    *((word, word) for word in ("compute", "communication", "movement")),
                    ("sync", "idle"),
                )
            ],
        },
        "waits": _waits(report),
        "ladder": {
            "names": [clip(row.level, LIMITS["longest_name"]) for row in rungs],
            "values": [row.time_ns for row in rungs],
            "bytes": [f"size {words.UNKNOWN}" if row.bytes is None else words.moved(row.bytes) for row in rungs],
            "basis": [row.basis for row in rungs],
        },
    }
