"""A sweep as markdown for a pull request: the verdict, one table, what ate the gain."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.render.compare.markdown import table
from analyzer.render.formats.markdown import code, document, text
from analyzer.render.safe import safe
from analyzer.render.sweep.text import OBJECTIVES, SHORT, balance, chance, terms_of
from analyzer.sweep.optimum import ScalingVerdict
from analyzer.sweep.sweep import Sweep, change, headline, optimum_words
from analyzer.units import duration, share


def render(sweeps: tuple[Sweep, ...]) -> str:
    """The sweeps as GitHub's and GitLab's markdown, the verdict first."""
    sweeps = safe(sweeps)
    changed = change(sweeps)
    parts = [f"**{text(changed)}**"] if changed else []
    for sweep in sweeps:
        parts += _one(sweep)
    return document(parts)


def _one(sweep: Sweep) -> Iterator[str]:
    yield f"**{text(headline(sweep))}**"
    for other in sweep.others:
        if other.kind is not ScalingVerdict.CANNOT_TELL:
            yield text(f"{OBJECTIVES[other.objective]}: {optimum_words(sweep, other)}")
    yield _table(sweep)
    notes = [line.strip() for gain in sweep.gains for line in balance(sweep, gain).splitlines()]
    if notes or sweep.notes:
        yield "\n".join(f"- {text(note)}" for note in (*notes, *sweep.notes))


def _table(sweep: Sweep) -> str:
    terms = terms_of(sweep)
    linear = ["of linear"] if sweep.linear else []
    past = ["past"] if sweep.series.ordered else []
    first = sweep.request.dimension if sweep.series.ordered else "layout"
    titles = (
        first,
        sweep.series.quantity,
        "5-95 %",
        *(SHORT[term] for term in terms),
        "speed-up",
        *linear,
        "best",
        *past,
    )
    rows = []
    for point, row in zip(sweep.series.points, sweep.scaling.standings, strict=True):
        low, high = row.interval_ns
        rows.append(
            (
                code(sweep.name(row.degree)),
                duration(row.value_ns),
                f"{duration(low)}-{duration(high)}",
                *(duration(point.terms_ns[term]) for term in terms),
                f"{row.speedup:.2f}x",
                *("–" if row.efficiency is None else share(row.efficiency) for _ in linear),
                chance(row.best_share),
                *(chance(row.past_share) for _ in past),
            )
        )
    return table(tuple(text(title) for title in titles), [(row[0], *map(text, row[1:])) for row in rows])
