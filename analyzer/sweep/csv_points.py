"""CSV of measured points → series of a sweep. One row is one run at one degree."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import TraceFormatError, UsageError
from analyzer.sweep.point import PACE, TERMS, VALUE, Exchange, Memory, Point, PointSeries

NS_PER_MS = 1e6
NS_PER_S = 1e9
CONFIGURATION = (
    "engine",
    "version",
    "model",
    "precision",
    "batch",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "graph",
)
"""What must be equal over the runs of a series."""
IGNORED = ("run", "note")
_HEAD_BYTES = 1024
_GZIP = b"\x1f\x8b"
_TERM_COLUMNS = {f"{term}_ms": term for term in TERMS}
_NUMBERS = (
    "value_ms",
    "tokens_per_s",
    *_TERM_COLUMNS,
    "steps",
    "host_ms",
    "calls",
    "message_bytes",
    "preemptions",
    "kv_use",
    "hit_rate",
    "gpus",
)
_KNOWN = ("degree", "layout", *_NUMBERS, "level", "context", *CONFIGURATION, *IGNORED)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the file.

    Attributes:
        line: as an editor counts.
        degree: ranks, or the place of a layout in the file.
        layout: name of a layout, "" for a degree.
        context: tokens of context, None without that column.
        numbers: those of the numeric columns that are filled.
        level: rung, "" where not stated.
        configuration: as stated.
    """

    line: int
    degree: int
    layout: str
    context: int | None
    numbers: dict[str, float]
    level: str
    configuration: dict[str, str]


def is_table(path: Path) -> bool:
    """Whether a file is a table of points: its first line has the column of degrees or layouts, or it is named so."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    if head.lstrip()[:1] in (b"{", b"[") or head.startswith(_GZIP):
        return False
    titles = {title.strip(b' \t"').lower() for title in head.partition(b"\n")[0].split(b",")}
    return bool(titles & {b"degree", b"layout"}) or path.suffix.lower() == ".csv"


def read_points(path: Path) -> tuple[PointSeries, ...]:
    """The series of a file: one, or one a context length where there is a column `context`.

    Columns: `degree` (or `layout`, a name, for layouts of one number of GPUs), and `value_ms` or `tokens_per_s` (of
    the whole group of ranks); the terms `compute_ms`, `communication_ms`, `movement_ms`, `sync_ms`; `steps`,
    `host_ms`, `calls`, `message_bytes`, `level`, `preemptions`, `kv_use`, `hit_rate`; `gpus` of one
    instance, where that is not the degree; `context`; and what must be equal in every
    row (`engine`, `version`, `model`, …).

    Raises:
        TraceFormatError: unreadable, a column missing, unknown or of no use, a value that is none; with file, line
            and column.
        UsageError: rows of different configurations.
    """
    rows = list(_rows(path))
    if not rows:
        raise TraceFormatError(f"{path}: no row under the header; write one row a run: degree,value_ms")
    series = []
    for context in sorted({row.context for row in rows}, key=lambda value: value or 0):
        mine = [row for row in rows if row.context == context]
        _check_configuration(path, mine)
        points = tuple(
            _point(path, [row for row in mine if row.degree == degree])
            for degree in sorted({row.degree for row in mine})
        )
        label = "" if context is None else f"context {context:,}"
        quantity = VALUE if "value_ms" in mine[0].numbers else PACE
        series.append(PointSeries(label, points, str(path), quantity, ordered=not mine[0].layout))
    return tuple(series)


def _rows(path: Path) -> Iterator[_Row]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceFormatError(f"{path}: not readable as a CSV of points ({error})") from error
    lines = csv.reader(text.splitlines())
    header = [title.strip().lower() for title in next(lines, [])]
    _check_header(path, header)
    layouts: dict[str, int] = {}
    for number, cells in enumerate(lines, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise TraceFormatError(f"{path}: line {number} has {len(cells)} cells, the header {len(header)}")
        named = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        if "layout" in named:
            if not named["layout"]:
                raise TraceFormatError(f"{path}: line {number}, column layout, is empty; name the layout")
            named["degree"] = str(layouts.setdefault(named["layout"], len(layouts) + 1))
        yield _row(path, number, named)


def _check_header(path: Path, header: list[str]) -> None:
    if ("degree" in header) == ("layout" in header) or ("value_ms" in header) == ("tokens_per_s" in header):
        raise TraceFormatError(
            f"{path}: line 1 has the columns {', '.join(header) or '(none)'}; "
            "needed are degree (or layout) and one of value_ms and tokens_per_s"
        )
    if len(set(header)) != len(header):
        twice = next(title for title in header if header.count(title) > 1)
        raise TraceFormatError(f"{path}: line 1 has column {twice!r} twice; keep one")
    for title in header:
        if title not in _KNOWN:
            raise TraceFormatError(f"{path}: line 1 has an unknown column {title!r}; known are {', '.join(_KNOWN)}")


def _row(path: Path, line: int, cells: dict[str, str]) -> _Row:
    numbers = {
        title: _number(path, line, title, cells[title], positive=title in ("value_ms", "tokens_per_s"))
        for title in _NUMBERS
        if cells.get(title)
    }
    if not {"value_ms", "tokens_per_s"} & set(numbers):
        raise TraceFormatError(f"{path}: line {line}, column value_ms or tokens_per_s, is empty; leave the line out")
    return _Row(
        line=line,
        degree=_whole(path, line, "degree", cells["degree"]),
        layout=cells.get("layout", ""),
        context=_whole(path, line, "context", cells["context"]) if "context" in cells else None,
        numbers=numbers,
        level=cells.get("level", ""),
        configuration={title: cells[title] for title in CONFIGURATION if title in cells},
    )


def _number(path: Path, line: int, column: str, text: str, *, positive: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        wanted = "a number above 0" if positive else "a number, 0 or more"
        raise TraceFormatError(f"{path}: line {line}, column {column}: {text!r} is not {wanted}")
    return value


def _whole(path: Path, line: int, column: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise TraceFormatError(f"{path}: line {line}, column {column}: {text!r} is not a whole number above 0")
    return int(text)


def _check_configuration(path: Path, rows: list[_Row]) -> None:
    for title in rows[0].configuration:
        first = rows[0]
        for row in rows[1:]:
            if row.configuration[title] != first.configuration[title]:
                raise UsageError(
                    f"{path}: {title} differs, {first.configuration[title]!r} in line {first.line} and "
                    f"{row.configuration[title]!r} in line {row.line}; sweep one {title} at a time"
                )


def _point(path: Path, rows: list[_Row]) -> Point:
    """The runs of one degree as one point: terms and counts are means, steps those of the shortest run."""
    for title in _NUMBERS:
        stated = [title in row.numbers for row in rows]
        if any(stated) and not all(stated):
            line = rows[stated.index(False)].line
            raise TraceFormatError(
                f"{path}: line {line}, column {title}: empty, but other runs of degree {rows[0].degree} state it"
            )
    levels = {row.level for row in rows}
    mean = {title: _mean(row.numbers[title] for row in rows) for title in _NUMBERS if title in rows[0].numbers}
    message_bytes = mean.get("message_bytes")
    return Point(
        degree=rows[0].degree,
        values_ns=tuple(_value_ns(row.numbers) for row in rows),
        terms_ns={term: mean[title] * NS_PER_MS for title, term in _TERM_COLUMNS.items() if title in mean},
        steps=int(min(row.numbers["steps"] for row in rows)) if "steps" in mean else None,
        host_ns=mean["host_ms"] * NS_PER_MS if "host_ms" in mean else None,
        exchange=Exchange(
            calls=mean.get("calls"),
            message_bytes=None if message_bytes is None else round(message_bytes),
            level=levels.pop() if len(levels) == 1 else "",
        ),
        memory=Memory(mean.get("preemptions"), mean.get("kv_use"), mean.get("hit_rate")),
        name=rows[0].layout,
        gpus=_gpus(path, rows),
    )


def _gpus(path: Path, rows: list[_Row]) -> int | None:
    stated = {row.numbers["gpus"]: row.line for row in rows if "gpus" in row.numbers}
    if not stated:
        return None
    number = min(stated)
    if len(stated) > 1 or number < 1 or number != int(number):
        raise TraceFormatError(
            f"{path}: line {max(stated.values())}, column gpus: a degree takes one whole number of GPUs, "
            f"got {', '.join(f'{value:g}' for value in sorted(stated))}"
        )
    return int(number)


def _value_ns(numbers: dict[str, float]) -> float:
    """Time of a step, or time a token where a rate was measured."""
    return numbers["value_ms"] * NS_PER_MS if "value_ms" in numbers else NS_PER_S / numbers["tokens_per_s"]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
