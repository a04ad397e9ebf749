"""A progress bar on stderr: on a terminal only, and only for what takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

PATIENCE_S = 1.0

Advance = Callable[[str, float, float], None]
"""What is being done, how much of it is done, and how much there is."""


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """Yield `advance`; the bar appears after a second, whether or not anything advanced, and leaves nothing behind."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _unseen
        return
    with _bar(title) as advance:
        yield advance


def _unseen(what: str, done: float, whole: float) -> None:
    """Nobody looks."""


@contextmanager
def _bar(title: str) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415 (for a terminal only)
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True)
    tasks: dict[str, TaskID] = {title: bar.add_task(title, total=None)}

    def advance(what: str, done: float, whole: float) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=whole)
        bar.update(tasks[what], completed=done, total=whole)

    appear = Timer(PATIENCE_S, bar.start)
    appear.daemon = True
    if console.is_terminal:
        appear.start()
    try:
        yield advance
    finally:
        appear.cancel()
        if bar.live.is_started:
            bar.stop()
