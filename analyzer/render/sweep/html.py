"""A sweep as one HTML page: the verdict, the curve with its intervals, terms by degree, what ate the gain."""

from __future__ import annotations

from analyzer.render.html_page import LIMITS, clip, page
from analyzer.render.safe import safe
from analyzer.render.sweep.text import balance, chance, terms_of
from analyzer.sweep.optimum import ScalingVerdict
from analyzer.sweep.point import TERMS
from analyzer.sweep.sweep import Sweep, change, headline, optimum_words

_IDLE = {"sync": "idle"}
MOST_SERIES = 40


def render(sweeps: tuple[Sweep, ...]) -> str:
    """The sweeps as a page that opens offline."""
    sweeps = safe(sweeps)
    shown = sweeps[:MOST_SERIES]
    charts: dict[str, object] = {}
    for at, part in enumerate(shown):
        charts[f"curve-{at}"] = _curve(part)
        if terms_of(part):
            charts[f"terms-{at}"] = _terms(part)
    return page(
        "sweep.html.j2",
        charts,
        sweeps=shown,
        left=len(sweeps) - len(shown),
        change=change(sweeps),
        headline=headline,
        optimum=optimum_words,
        terms_of=terms_of,
        balance=balance,
        chance=chance,
        idle=_IDLE,
        cannot_tell=ScalingVerdict.CANNOT_TELL,
    )


def _names(sweep: Sweep) -> list[str]:
    return [clip(sweep.name(row.degree), LIMITS["longest_name"]) for row in sweep.scaling.standings]


def _curve(sweep: Sweep) -> dict[str, object]:
    """Values with their 5-95 % range; what the first degree would come to, split evenly, where that is a question."""
    rows = sweep.scaling.standings
    first = rows[0]
    sizes = [point.size for point in sweep.series.points]
    ideal = [first.value_ns * sizes[0] / size for size in sizes] if sweep.linear else []
    return {
        "form": "curve",
        "names": _names(sweep),
        "quantity": sweep.series.quantity,
        "is_line": sweep.series.ordered,
        "values": [row.value_ns for row in rows],
        "low": [row.interval_ns[0] for row in rows],
        "high": [row.interval_ns[1] for row in rows],
        "ideal": ideal,
        "past": [row.degree in sweep.scaling.past for row in rows],
        "best": [row.degree in sweep.scaling.members for row in rows],
    }


def _terms(sweep: Sweep) -> dict[str, object]:
    known = terms_of(sweep)
    return {
        "form": "steps",
        "names": _names(sweep),
        "series": [
            {
                "key": term,
                "name": _IDLE.get(term, term),
                "values": [point.terms_ns[term] for point in sweep.series.points],
            }
            for term in TERMS
            if term in known
        ],
    }
