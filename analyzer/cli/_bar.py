"""A progress bar on stderr, for a terminal only and for nothing that ends within a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import Progress, TaskID

_QUIET_S = 1.0

Advance = Callable[[str, float, float], None]
"""What is being done, how much of it is done, and how much there is."""


@contextmanager
def bar() -> Iterator[Advance]:
    """Draws progress as it is told, and leaves nothing behind."""
    console = Console(stderr=True)
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    tasks: dict[str, TaskID] = {}
    began_s = monotonic()

    def advance(what: str, done: float, whole: float) -> None:
        if monotonic() - began_s < _QUIET_S:
            return
        if not tasks:
            progress.start()
        if what not in tasks:
            tasks[what] = progress.add_task(what, total=whole)
        progress.update(tasks[what], completed=done)

    try:
        yield advance
    finally:
        progress.stop()
