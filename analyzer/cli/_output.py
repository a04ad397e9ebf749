"""`--format`, `-o`, `--force`: the same for every command that makes a report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from analyzer import plugins, render
from analyzer.errors import UsageError
from analyzer.report import Report

F = TypeVar("F", bound=Callable[..., Any])

NARROWEST = 80


def output_options(command: F) -> F:
    """Add the three options; the command gets them as `form`, `out` and `force`."""
    formats = click.Choice(plugins.names(render))
    options = (
        click.option("--format", "form", type=formats, default="text", show_default=True, help="Form of the report."),
        click.option(
            "-o", "out", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE, not to stdout."
        ),
        click.option("--force", is_flag=True, help="Overwrite FILE."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def write(report: Report, form: str, out: Path | None, *, force: bool) -> None:
    """Render and write; colour only on a terminal.

    Raises:
        UsageError: the file is there already.
    """
    terminal = out is None and sys.stdout.isatty()
    width = max(NARROWEST, shutil.get_terminal_size().columns) if terminal else NARROWEST
    text = import_module(f"{render.__name__}.{form}").render(report, width, color=terminal)
    emit(text, out, force=force)


def emit(text: str, out: Path | None, *, force: bool) -> None:
    """Write a finished text to a file or stdout.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    if out is None:
        click.echo(text, nl=False)
        return
    if out.exists() and not force:
        raise UsageError(f"{out} exists; choose another name or pass --force")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror}); choose another place") from error
    click.echo(f"Wrote {out}", err=True)
