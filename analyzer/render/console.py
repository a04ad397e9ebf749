"""Parts of a report as the text of a terminal: one way for every command."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType

from analyzer.render.safe import inert


def printed(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    """The parts one below the other, without blanks at the ends of lines.

    Args:
        parts: what to show.
        width: columns.
        color: ANSI colours.
    """
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False, emoji=False, markup=False
    )
    for part in parts:
        console.print(part)
    return inert("\n".join(line.rstrip() for line in out.getvalue().splitlines())) + "\n"
