"""RUN arguments of commands that compare runs: traces are diagnosed, saved reports are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import rules
from analyzer import _exact_counts
from analyzer.cli._progress import progress
from analyzer.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.plugins import offers
from analyzer.render._safe import safe
from analyzer.report import Report, from_json

_REPORT = re.compile(rb'\s*\{\s*"schema"\s*:')
"""How a saved report begins; traces begin with `schemaVersion` or with anything else."""
_HEAD_BYTES = 256


def reports_of(paths: Sequence[Path]) -> list[Report]:
    """One report a path, in order: a directory, file or glob of traces, or a report that `diagnose` saved as JSON.

    Raises:
        RunNotFoundError: nothing there.
        TraceFormatError: neither traces nor a report.
    """
    known = list(offers(rules, "check").values())
    reports = []
    with progress("Reading runs") as advance:
        for done, path in enumerate(paths, start=1):
            if _is_report(path):
                report = from_json(path.read_bytes(), str(path))
            else:
                run = load(path)
                report = diagnose(run, known)
                report.extra[_exact_counts.KEY] = _exact_counts.count(run)
            reports.append(safe(report))
            advance("Reading runs", done, len(paths))
    return reports


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _REPORT.match(file.read(_HEAD_BYTES)) is not None
