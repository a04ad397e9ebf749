"""Parts of a report as the text of a terminal: one way for every command."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType


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
    return "\n".join(_inert(line.rstrip()) for line in out.getvalue().splitlines()) + "\n"


def _inert(line: str) -> str:
    """A line that starts with `::` is a command in a GitHub log: a sign that looks alike takes its place."""
    return line.replace("::", "∷", 1) if line.lstrip().startswith("::") else line
