"""RUN arguments of every command: what a path holds decides how it is read, its name never does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from analyzer.cli.progress import progress
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import UsageError
from analyzer.ingest.load import load
from analyzer.measures.window import windowed
from analyzer.model.run import Run
from analyzer.render.safe import safe
from analyzer.rule import Rule
from analyzer.schema.report import Report, from_json
from analyzer.sweep.csv_points import is_table

_REPORT = re.compile(rb'\s*\{\s*"schema"\s*:')
"""How a saved report begins; traces begin with `schemaVersion` or with anything else."""
_HEAD_BYTES = 256


def run_of(*places: str | Path) -> Run:
    """The traces at one or several places that belong together, within their window: directories, files or globs.

    Raises:
        UsageError: a saved report, or a CSV of points, in place of traces.
        RunNotFoundError: nothing there.
        TraceFormatError: no traces.
    """
    for place in map(Path, places):
        if _is_report(place):
            raise UsageError(f"{place} is a saved report; name the traces that it was made from")
        if is_table(place):
            raise UsageError(f"{place} is a table of measured points, which only sweep reads; name traces")
    with progress("Reading traces") as advance:
        return windowed(load(*places, advance=lambda done, whole: advance("Reading traces", done, whole)))


def runs_of(paths: Sequence[Path]) -> dict[Path, Run]:
    """One run a distinct path, in order.

    Raises:
        UsageError: as `run_of`.
        RunNotFoundError: nothing there.
        TraceFormatError: no traces.
    """
    return {path: run_of(path) for path in dict.fromkeys(paths)}


def reports_of(paths: Sequence[Path], rules: Iterable[Rule] = ()) -> list[Report]:
    """One report a path, in order: a directory, file or glob of traces, or a report that `diagnose` saved as JSON.

    Args:
        paths: in any mixture.
        rules: that traces are asked.

    Raises:
        RunNotFoundError: nothing there.
        TraceFormatError: neither traces nor a report.
    """
    known = list(rules)
    reports = []
    with progress("Reading runs") as advance:
        for done, path in enumerate(paths, start=1):
            saved = _is_report(path)
            report = from_json(path.read_bytes(), str(path)) if saved else diagnose(load(path), known)
            reports.append(safe(report))
            advance("Reading runs", done, len(paths))
    return reports


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _REPORT.match(file.read(_HEAD_BYTES)) is not None
