"""What one run lets expect, as text: the range, the classes behind it, the bounds."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.render.console import printed
from analyzer.render.safe import safe
from analyzer.units import duration
from analyzer.whatif.foresight import DIMENSION, Foresight
from analyzer.whatif.time_classes import ScalingBehavior

SHOWN_CLASSES = 12
BOUNDS = "Upper bounds, not promises:"
SCALES = {
    ScalingBehavior.GEMM: "divided, down to the floor of a kernel",
    ScalingBehavior.EXPERTS: "divided, down to the floor of a kernel",
    ScalingBehavior.ATTENTION: "divided up to the number of KV heads",
    ScalingBehavior.REPLICATED: "stays",
    ScalingBehavior.COLLECTIVE: "as the links do",
    ScalingBehavior.SETUP: "stays while there are peers",
    ScalingBehavior.WAIT: "as the latest of the ranks",
    ScalingBehavior.HOST: "stays",
    ScalingBehavior.MOVEMENT: "state that is split shrinks",
    ScalingBehavior.UNKNOWN: "unknown: stays, or is divided",
}


def render(foresight: Foresight, width: int = 80, *, color: bool = False) -> str:
    """The answer as text.

    Args:
        foresight: what to show.
        width: columns; 80 fit.
        color: ANSI colours.
    """
    return printed(_parts(safe(foresight)), width, color=color)


def _parts(foresight: Foresight) -> Iterator[RenderableType]:
    expectation, then = foresight.expectation, foresight.expectation.degree
    yield Text(expectation.sentence(f"{DIMENSION.upper()}{then}"), style="bold")
    yield Text(origin(foresight))
    yield from (Text(f"! {note}", style="yellow") for note in expectation.notes)
    yield Text()
    yield _classes(foresight)
    yield Text()
    if foresight.marginal is not None:
        yield Text(foresight.marginal.sentence(f"{DIMENSION.upper()}{foresight.marginal.degree}"))
    if foresight.ceilings:
        yield Text(BOUNDS)
    yield from (Text(f"  {row.sentence}") for row in foresight.ceilings)


def origin(foresight: Foresight) -> str:
    """What was measured, and what the rest is."""
    now = f"{DIMENSION.upper()}{foresight.step.degree}"
    return f"{foresight.label}: {foresight.kind} steps at {now}; a model: measure before you use it"


def _classes(foresight: Foresight) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title, justify in (("class", "left"), ("now", "right"), ("then", "right"), ("with the degree", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    shown = foresight.classes[:SHOWN_CLASSES]
    for row, then_ns in shown:
        table.add_row(row.name, duration(row.time_ns), duration(then_ns), SCALES[row.sort])
    rest = foresight.classes[SHOWN_CLASSES:]
    if rest:
        times = [duration(sum(times)) for times in zip(*((row.time_ns, then) for row, then in rest), strict=True)]
        table.add_row(f"{len(rest)} more", *times, "as each does")
    return table
