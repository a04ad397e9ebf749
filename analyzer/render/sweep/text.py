"""A sweep as text for a terminal: verdict, table, chart, what eats the gain."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.render.console import printed
from analyzer.render.safe import safe
from analyzer.sweep.optimum import DegreeResult, Objective, ScalingVerdict
from analyzer.sweep.past_optimum import UNEXPLAINED, PastOptimum
from analyzer.sweep.point import TERMS, Point
from analyzer.sweep.sweep import Sweep, change, headline, optimum_words
from analyzer.units import duration, share

CHART = 60
"""Cells of the longest bar."""
_LETTERS = {"compute": "█", "communication": "▓", "movement": "▒", "sync": "·"}
_STYLES = {"compute": "green", "communication": "red", "movement": "yellow", "sync": "bright_black"}
SHORT = {"compute": "comp.", "communication": "comm.", "movement": "move", "sync": "idle"}
_UNITS = {Objective.LATENCY: "", Objective.PER_GPU: ", GPU time", Objective.TOTAL: ", time over replicas"}
OBJECTIVES = {Objective.PER_GPU: "per GPU", Objective.LATENCY: "latency", Objective.TOTAL: "total"}


def render(sweeps: tuple[Sweep, ...], width: int = 80, *, color: bool = False) -> str:
    """The sweeps as text, the verdict in the first line.

    Args:
        sweeps: one or more of one source.
        width: columns; 80 fit.
        color: ANSI colours.
    """
    return printed(_parts(safe(sweeps), width), width, color=color)


def _parts(sweeps: tuple[Sweep, ...], width: int) -> Iterator[RenderableType]:
    changed = change(sweeps)
    if changed:
        yield from (Text(changed, style="bold"), Text())
    for at, part in enumerate(sweeps):
        if at:
            yield Text()
        yield from _one(part, width)


def _one(sweep: Sweep, width: int) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(headline(sweep), style="bold")]
    others = [other for other in sweep.others if other.kind is not ScalingVerdict.CANNOT_TELL]
    parts += [Text(f"{OBJECTIVES[other.objective]}: {optimum_words(sweep, other)}") for other in others]
    parts += [Text(), _table(sweep), Text(), _chart(sweep, width)]
    terms = terms_of(sweep)
    if terms:
        parts += [_term_table(sweep, terms), Text()]
    fit = sweep.curve
    if fit is not None:
        parts.append(
            Text(
                f"drawn through: {duration(fit.fixed_ns)} fixed + {duration(fit.parallel_ns)} / n + "
                f"{duration(fit.growing_ns)} × (n - 1), within {share(fit.worst)}; no forecast"
            )
        )
    parts += [_hanging(line, width) for gain in sweep.gains for line in balance(sweep, gain).splitlines()]
    parts += [_hanging(f"! {note}", width, style="yellow") for note in sweep.notes]
    return parts


def _hanging(line: str, width: int, style: str = "") -> Text:
    """A line that goes on under its own text."""
    under = " " * (len(line) - len(line.lstrip(" ")) + 2)
    return Text("\n".join(textwrap.wrap(line, width, subsequent_indent=under)), style=style)


def terms_of(sweep: Sweep) -> list[str]:
    """Terms that every degree states."""
    return [term for term in TERMS if all(term in point.terms_ns for point in sweep.series.points)]


def _table(sweep: Sweep) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(sweep.request.dimension if sweep.series.ordered else "layout")
    linear = ["of linear"] if sweep.linear else []
    past = ["past"] if sweep.series.ordered else []
    for title in (sweep.series.quantity, "5-95 %", "speed-up", *linear, "best", *past):
        table.add_column(title, justify="right", no_wrap=True)
    for point, row in zip(sweep.series.points, sweep.scaling.standings, strict=True):
        low, high = row.interval_ns
        table.add_row(
            point.name or str(row.degree),
            duration(row.value_ns),
            f"{duration(low)}-{duration(high)}",
            f"{row.speedup:.2f}x",
            *("–" if row.efficiency is None else share(row.efficiency) for _ in linear),
            chance(row.best_share),
            *(chance(row.past_share) for _ in past),
        )
    return table


def _term_table(sweep: Sweep, terms: list[str]) -> RenderableType:
    """The terms of each degree; the titles are the legend of the chart."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(sweep.request.dimension if sweep.series.ordered else "layout")
    for term in terms:
        table.add_column(f"{_LETTERS[term]} {SHORT[term]}", justify="right", no_wrap=True)
    for point in sweep.series.points:
        table.add_row(point.name or str(point.degree), *(duration(point.terms_ns[term]) for term in terms))
    return table


def chance(probability: float) -> str:
    """A probability from draws: never quite 0 or 100 %."""
    if probability < 0.005:  # noqa: PLR2004 (what would print as 0 %)
        return "<1 %"
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"  # noqa: PLR2004


def _chart(sweep: Sweep, width: int) -> RenderableType:
    """A bar a degree, its length the value, split into the terms that are known."""
    longest = max(row.value_ns for row in sweep.scaling.standings)
    terms = terms_of(sweep)
    chart = Text()
    margin = max(len(point.name or str(point.degree)) for point in sweep.series.points)
    tails = [f" {duration(row.value_ns)}{_mark(sweep, row)}" for row in sweep.scaling.standings]
    room = min(
        (width - margin - 1 - len(tail)) * longest / row.value_ns
        for tail, row in zip(tails, sweep.scaling.standings, strict=True)
    )
    scale = min(CHART, int(room)) / longest
    for point, row, tail in zip(sweep.series.points, sweep.scaling.standings, tails, strict=True):
        chart.append(f"{point.name or row.degree:>{margin}} ")
        for style, letters in _bar(point, max(1, round(scale * row.value_ns)), terms):
            chart.append(letters, style=style)
        chart.append(f"{tail}\n")
    return chart


def _bar(point: Point, cells: int, terms: list[str]) -> list[tuple[str, str]]:
    whole = sum(point.terms_ns[term] for term in terms)
    if not whole:
        return [("green", "█" * cells)]
    ends, reached = [], 0.0
    for term in terms:
        reached += point.terms_ns[term]
        ends.append(round(cells * reached / whole))
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return [(_STYLES[term], _LETTERS[term] * length) for term, length in zip(terms, lengths, strict=True)]


def _mark(sweep: Sweep, row: DegreeResult) -> str:
    if row.degree in sweep.scaling.past:
        return "  past"
    return "  ← optimum" if sweep.scaling.members == (row.degree,) else ""


def balance(sweep: Sweep, gain: PastOptimum) -> str:
    """What a degree past the optimum saved and added, and a line for each term that grew and why.

    One line where terms are unknown.
    """
    title = f"{sweep.name(gain.against)} → {sweep.name(gain.degree)}{_UNITS[sweep.scaling.objective]}"
    if gain.compute_saved_ns is None and gain.eaten_by == UNEXPLAINED:
        return _one_line(f"{title}: {gain.mechanism}")
    changes = [] if gain.compute_saved_ns is None else [f"compute {_change(-gain.compute_saved_ns)}"]
    changes += [f"{term} {_change(time_ns)}" for term, time_ns in gain.added_ns.items()]
    why = gain.mechanisms or {gain.eaten_by: gain.mechanism}
    lines = [f"{title}: {', '.join(changes)}; in all {_change(gain.lost_ns)}"]
    lines += [f"  {term}: {text}" for term, text in why.items()]
    return "\n".join(map(_one_line, lines))


def _one_line(text: str) -> str:
    """Names may hold ends of lines."""
    return " ".join(text.splitlines())


def _change(time_ns: float) -> str:
    return duration(time_ns) if time_ns <= 0 else f"+{duration(time_ns)}"
