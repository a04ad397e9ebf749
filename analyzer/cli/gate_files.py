"""Files that a gate reads and writes: settings, baseline, history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analyzer.cli.output import writing
from analyzer.errors import UsageError
from analyzer.gate.baseline import Acceptance, Baseline, baseline, from_json, to_json
from analyzer.gate.history import Entry, read_history, to_line
from analyzer.gate.settings import GateSettings, read_settings
from analyzer.gate.verdict import Result
from analyzer.schema.report import Report

SETTINGS = ("shardscope.toml", "pyproject.toml")
"""Looked for where the command runs, the first one is taken."""


def settings_of(named: Path | None) -> GateSettings:
    """Settings of the named file, else of one of `SETTINGS`, else the defaults.

    Raises:
        UsageError: the named file is not there, or a file is no TOML of this form.
    """
    path = named or next((path for path in map(Path, SETTINGS) if path.is_file()), None)
    if path is None:
        return GateSettings()
    return read_settings(_text(path, "name another file with --config").decode(), str(path))


def baseline_of(path: Path) -> Baseline:
    """The baseline that the file holds.

    Raises:
        UsageError: there is no such file.
        TraceFormatError: it holds something else.
    """
    if not path.exists():
        raise UsageError(f"{path} is not there; write the first baseline with --update-baseline and commit it")
    return from_json(_text(path, "name another file with --baseline"), str(path))


def history_of(path: Path | None) -> tuple[Entry, ...]:
    """Past gates, none where there is no file yet.

    Raises:
        TraceFormatError: a line is no gate.
    """
    if path is None or not path.exists():
        return ()
    return read_history(_text(path, "name another file with --history").decode(), str(path))


def remember(path: Path, entry: Entry) -> None:
    """Append a gate to its history.

    Raises:
        UsageError: the file cannot be written.
    """
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(to_line(entry))


def accept(path: Path, reports: Sequence[Report], result: Result | None, reason: str, kept: Baseline | None) -> None:
    """Make the runs the baseline. What they lost against the old one is kept with the reason.

    Raises:
        UsageError: a loss without a reason, or the file cannot be written.
    """
    accepted = list(kept.accepted) if kept else []
    losses = list(result.losses) if result else []
    if losses and not reason:
        raise UsageError(
            f"the runs lose against {path} ({', '.join(losses)}); say why that is accepted with --reason TEXT"
        )
    if losses:
        accepted.append(Acceptance(reason, losses))
    text = to_json(baseline(reports, accepted))
    with writing(path):
        path.write_text(text, encoding="utf-8")


def _text(path: Path, otherwise: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); {otherwise}") from error
