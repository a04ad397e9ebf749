"""A comparison as one HTML page: what changed, both sides by term, where the difference went."""

from __future__ import annotations

from analyzer.compare.balance import Waterfall, WaterfallPart
from analyzer.compare.comparison import Comparison, headlines, more
from analyzer.compare.exact import ExactRow, State
from analyzer.compare.timed import COLLECTIVES, KERNELS, WINDOW, TimedRow
from analyzer.render.compare.words import amounts, cells, lying
from analyzer.render.html_page import LIMITS, clip, page
from analyzer.render.safe import safe

TITLES = {WINDOW: "Window, per step", KERNELS: "Kernel classes, per step", COLLECTIVES: "Collectives, per call"}
SHOWN_PARTS = 16
"""Bars of a chart; the table below it has the rest."""
_SERIES = {
    "compute": "compute",
    "communication": "communication",
    "movement": "movement",
    "sync": "idle",
    "between steps": "between steps",
}
_COLORS = {"between steps": "queue"}


def render(comparison: Comparison) -> str:
    """The comparison as a page that opens offline."""
    comparison = safe(comparison)
    phases = [part for part in comparison.balances if part.title.endswith(" step")]
    charts: dict[str, object] = {f"difference-{at}": _difference(part) for at, part in enumerate(comparison.balances)}
    if phases:
        charts["steps"] = _sides(phases)
    return page(
        "compare.html.j2",
        charts,
        comparison=comparison,
        headlines=headlines(comparison),
        changed=[_exact(row) for row in comparison.exact if row.state is not State.SAME],
        equal=[_exact(row) for row in comparison.exact if row.state is State.SAME],
        sections={
            TITLES.get(section, f"{section.capitalize()} steps"): [
                _timed(row) for row in comparison.timed if row.section == section
            ]
            for section in dict.fromkeys(row.section for row in comparison.timed)
        },
        lying=lying(comparison.overlap),
        more=more,
    )


def _exact(row: ExactRow) -> tuple[str, str, str, str]:
    return row.name, amounts(row.name, row.base), amounts(row.name, row.head), row.state.value


def _timed(row: TimedRow) -> tuple[TimedRow, tuple[str, ...]]:
    return row, cells(row)


def _sides(phases: list[Waterfall]) -> dict[str, object]:
    """Two bars a kind of step; what medians lack to their whole has no bar."""
    sides = [(phase, side) for phase in phases for side in ("base", "head")]
    names = [clip(f"{phase.title.removesuffix(' step')}, {side}", LIMITS["longest_name"]) for phase, side in sides]
    return {
        "names": names,
        "series": [
            {
                "key": _COLORS.get(name, name),
                "name": word,
                "values": [_value(phase, name, side) for phase, side in sides],
            }
            for name, word in _SERIES.items()
            if any(part.name == name for phase in phases for part in phase.parts)
        ],
    }


def _value(phase: Waterfall, name: str, side: str) -> int:
    row = next((part for part in phase.parts if part.name == name), WaterfallPart(name, 0, 0))
    return row.base_ns if side == "base" else row.head_ns


def _difference(balance: Waterfall) -> dict[str, object]:
    """A bar a part, the largest difference first."""
    parts = sorted(balance.parts, key=lambda part: -abs(part.difference_ns))[:SHOWN_PARTS]
    return {
        "form": "difference",
        "names": [clip(part.name, LIMITS["longest_name"]) for part in parts],
        "values": [part.difference_ns for part in parts],
        "texts": [more(part.difference_ns) for part in parts],
    }
