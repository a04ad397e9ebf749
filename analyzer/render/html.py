"""One HTML file that opens offline from disk: verdict, answers, charts, tables that sort and filter, findings."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from analyzer import units
from analyzer.render import _words as words
from analyzer.render._safe import safe
from analyzer.render._second_opinion import hta_lines
from analyzer.report import RankBreakdown, Report
from analyzer.rule import Question

SUFFIX = ".html"
LIMITS = {
    "most_ranks": 512,
    "most_step_kinds": 50,
    "most_collectives": 200,
    "most_findings": 40,
    "most_rules": 200,
    "most_words": 50,  # warnings, settings, versions, kinds of work, rungs
    "most_names": 8,
    "most_lines": 64,  # ranks of a drawing
    "longest_name": 160,
    "longest_text": 600,
    "longest_extra": 4_000,
}
"""What keeps the file under 6 MB whatever the run: the program that draws the charts has 4.8."""

MOST_GROWTH = 2
"""Bytes of a text on the page for each letter that it may have."""

_SERIES = (
    ("compute_ns", "compute"),
    ("communication_ns", "communication"),
    ("movement_ns", "movement"),
    *words.CAUSES.items(),
)


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as a page; width and colour change nothing.

    Every string is escaped by the template. Scripts run only if their digest is in the page's policy, which also
    forbids every connection: what slipped through an escape would still do nothing.
    """
    report = safe(report)
    environment = _environment()
    scripts = [_plotly(), _source("report.js.j2")]
    shown = _shown(report.breakdown.per_rank)
    page: str = environment.get_template("report.html.j2").render(
        report=report,
        ranks=shown,
        causes=[key for key in words.CAUSES if any(getattr(row.sync_causes, key) for row in shown)],
        left_ranks=len(report.breakdown.per_rank) - len(shown),
        work=_work(report.breakdown.per_rank),
        questions={question.value: question.text for question in Question},
        opinion=hta_lines(report.extra["hta"]) if "hta" in report.extra else [],
        extra=_extra(report),
        style=Markup(_source("report.css.j2")),  # noqa: S704 (of this package)
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (of this package, and plotly's)
        policy=_policy(scripts),
        data=_data(_charts(report, shown)),
    )
    return page


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("analyzer", "render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(LIMITS, units=units, words=words)
    environment.filters["clip"] = _clip
    return environment


def _source(name: str) -> str:
    """A part of the page that holds no fields, as it stands."""
    environment = _environment()
    if environment.loader is None:
        raise LookupError("the environment of the report has a loader")
    return environment.loader.get_source(environment, name)[0]


@cache
def _plotly() -> str:
    """The program that draws the charts."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 (0.15 s that no other form needs)

    program: str = get_plotlyjs()
    return program.replace("\r\n", "\n")  # as a browser reads it, of which the digest is taken


def _policy(scripts: list[str]) -> str:
    """A content security policy: these scripts, no connection, no frame, no form."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(content: object) -> Markup:
    """JSON inside a script element: no letter of it can end the element."""
    text = msgspec.json.encode(content).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704 (nothing in it is markup any more)


def _clip(text: str, longest: int) -> str:
    """The first letters of a text that would fill pages, fewer where most of them are escaped."""
    cut = text[:longest]
    while len(escape(cut).encode()) > MOST_GROWTH * longest:
        cut = cut[: len(cut) // 2]
    return text if len(cut) == len(text) else f"{cut}…"


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
    held = {**({"scaling": report.scaling} if report.scaling else {}), **report.extra}
    left = {key: value for key, value in held.items() if key not in {"hta", "counts"}}
    return [
        (key, _clip(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), LIMITS["longest_extra"]))
        for key, value in list(left.items())[: LIMITS["most_names"]]
    ]


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
            "names": [_clip(row.kind, LIMITS["longest_name"]) for row in steps],
            "series": [
                {"key": term, "name": name, "values": [row.terms.get(term, 0) for row in steps]}
                for term, name in (
                    *((word, word) for word in ("compute", "communication", "movement")),
                    ("sync", "idle"),
                )
            ],
        },
        "ladder": {
            "names": [_clip(row.level, LIMITS["longest_name"]) for row in rungs],
            "values": [row.time_ns for row in rungs],
            "bytes": [f"size {words.UNKNOWN}" if row.bytes is None else words.moved(row.bytes) for row in rungs],
            "basis": [row.basis for row in rungs],
        },
    }
