"""Progress on stderr: only on a terminal, only for what takes longer than a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

PATIENCE_S = 1.0


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield `advance(done, total)`; a bar appears after a second and goes when the work is done."""
    title_column, share_column = TextColumn("{task.description}"), TextColumn("{task.percentage:>3.0f} %")
    bar = Progress(
        title_column, BarColumn(), share_column, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    task = bar.add_task(title, total=None)

    def advance(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)

    appear = Timer(PATIENCE_S, bar.start)
    appear.daemon = True
    if bar.console.is_terminal:
        appear.start()
    try:
        yield advance
    finally:
        appear.cancel()
        bar.stop()
