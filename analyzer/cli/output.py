"""`--format`, `-o`, `--force`: the same for every command that makes a report."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from analyzer import plugins
from analyzer.errors import UsageError
from analyzer.render import formats
from analyzer.render.safe import inert, safe
from analyzer.schema.report import Report

F = TypeVar("F", bound=Callable[..., Any])

NARROWEST = 80


def output_options(command: F) -> F:
    """Add the three options; the command gets them as `form`, `out` and `force`."""
    choice = click.Choice(plugins.names(formats))
    form = click.option("--format", "form", type=choice, default="text", show_default=True, help="Form of the report.")
    return form(file_options()(command))


def file_options(text: str = "Write to FILE, not to stdout.", *, required: bool = False) -> Callable[[F], F]:
    """Add `-o` and `--force`; the command gets them as `out` and `force`, and runs only where FILE can be written."""

    def checked(context: click.Context, _option: click.Parameter, out: Path | None) -> Path | None:
        if out is not None and not context.resilient_parsing:
            check_place(out, force=context.params["force"])
        return out

    def add(command: F) -> F:
        where = click.Path(path_type=Path)
        out = click.option("-o", "out", required=required, metavar="FILE", type=where, callback=checked, help=text)
        # eager: read before -o, whose check needs it
        return out(click.option("--force", is_flag=True, is_eager=True, help="Overwrite FILE.")(command))

    return add


def write(report: Report, form: str, out: Path | None, *, force: bool) -> None:
    """Render and write; colour only on a terminal.

    Raises:
        UsageError: the file is there already.
    """
    terminal = out is None and sys.stdout.isatty()
    width = max(NARROWEST, shutil.get_terminal_size().columns) if terminal else NARROWEST
    text = import_module(f"{formats.__name__}.{form}").render(report, width, color=terminal)
    emit(text, out, force=force)


def check_place(out: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written: before the work, not after it.

    Raises:
        UsageError: the file is there already, is a directory, its directory is not there, or no permission.
    """
    with writing(out):
        is_there = _is_there(out)
        if is_there and out.is_dir():
            raise UsageError(f"{out} is a directory; name a file in it")
        if is_there and not force:
            raise UsageError(f"{out} exists; choose another name or pass --force")
        if not is_there and not out.parent.is_dir():
            raise UsageError(f"{out.parent} is no directory; make it, or choose another place for {out.name}")
    if not os.access(out if is_there else out.parent, os.W_OK):
        raise UsageError(f"{out}: cannot be written (Permission denied); choose another place")


def _is_there(out: Path) -> bool:
    """As `Path.exists`, which hides nothing else: a name too long and a closed directory are told."""
    try:
        out.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Tell what the system says of a file to write as a user's error.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror}); choose another place") from error


def say(line: str) -> None:
    """A line on stderr that acts on no terminal and no log, whatever a path or a file holds."""
    click.echo(inert(safe(line)), err=True)


def emit(text: str, out: Path | None, *, force: bool) -> None:
    """Write a finished text to a file or stdout.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    if out is None:
        click.echo(text, nl=False)
        return
    check_place(out, force=force)
    with writing(out):
        out.write_text(text, encoding="utf-8")
    say(f"Wrote {out}")
