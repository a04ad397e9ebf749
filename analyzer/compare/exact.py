"""Quantities without noise: calls, bytes, launches, layouts, rungs. Equal or not; no statistics, no repeats needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import msgspec

from analyzer.errors import TraceFormatError
from analyzer.measures.counts import KEY, Counts
from analyzer.schema.report import CollectiveRow, Report

NO_WORK = ("idle", "capture")
"""Kinds of step over which nothing is divided."""
UNKNOWN = "unknown"

Value = Fraction | str


class State(str, Enum):
    """How the values of a head lie to those of a base."""

    SAME = "same"
    MORE = "more"
    LESS = "less"
    DIFFERS = "differs"
    VARIES = "varies"
    BASE_ONLY = "base only"
    HEAD_ONLY = "head only"


@dataclass(frozen=True, slots=True)
class ExactRow:
    """One quantity on both sides.

    Attributes:
        name: `calls.tp.all_reduce`, `launches.decode`, `layout.tp`, `rung.ep.dispatch`, …
        base: distinct values over the runs that state it, ascending.
        head: the same.
        state: MORE and LESS where no value of one side lies within the other; VARIES where runs of a side disagree and
            the sides overlap.
    """

    name: str
    base: tuple[Value, ...]
    head: tuple[Value, ...]
    state: State


def quantities(report: Report) -> dict[str, Value]:
    """All of one run. Calls, bytes and moved bytes are of one rank and one step; of the window where there is no step.

    Names: `calls.AXIS.KIND` and `bytes.AXIS.KIND` of collectives, `rung.AXIS.KIND` that they cross, `moved.RUNG` bytes
    of copies, `launches.KIND` and `activities.KIND` a step, `tokens.KIND` and `requests.KIND` in a step, `steps.KIND`
    recorded, `layout.AXIS`, `ranks`.
    """
    return dict(_all(report))


def counts_of(report: Report) -> Counts | None:
    """The counts that a report holds, None where it holds none.

    Raises:
        TraceFormatError: it holds something else under that key.
    """
    if KEY not in report.extra:
        return None
    try:
        return msgspec.convert(report.extra[KEY], Counts)
    except msgspec.ValidationError as error:
        raise TraceFormatError(f"{report.run.label}: extra.{KEY} of the report is damaged ({error})") from error


def step_count(report: Report) -> int:
    """Steps with work, of all kinds; 0 where none was found."""
    return sum(row.count for row in report.breakdown.steps if row.kind not in NO_WORK)


def exact_rows(base: Sequence[dict[str, Value]], head: Sequence[dict[str, Value]]) -> tuple[ExactRow, ...]:
    """One row a quantity that any run states, in order of appearance. A collective that is absent has no calls."""
    names = dict.fromkeys(name for run in (*base, *head) for name in run)
    return tuple(_row(name, _stated(name, base), _stated(name, head)) for name in names)


def _all(report: Report) -> Iterator[tuple[str, Value]]:
    run, steps = report.run, report.breakdown.steps
    yield "ranks", Fraction(len(run.ranks))
    yield from ((f"layout.{axis}", Fraction(size)) for axis, size in run.layout.items() if isinstance(size, int))
    yield from _collectives(report)
    counts = counts_of(report)
    if counts is not None:
        yield from ((f"launches.{kind}", Fraction(value)) for kind, value in counts.launches.items())
        yield from ((f"activities.{kind}", Fraction(value)) for kind, value in counts.activities.items())
    divisor = step_count(report) or 1
    for rung in report.ladder:
        if rung.bytes is not None and not rung.level.startswith("between"):
            yield f"moved.{rung.level}", Fraction(rung.bytes, divisor)
    for step in steps:
        yield f"steps.{step.kind}", Fraction(step.count)
        if step.tokens is not None:
            yield f"tokens.{step.kind}", Fraction(step.tokens)
        if step.requests is not None:
            yield f"requests.{step.kind}", Fraction(step.requests)


def collectives(report: Report) -> dict[str, list[CollectiveRow]]:
    """Rows by `AXIS.KIND`, over the groups of an axis; where the axis is unknown, by size of group."""
    named: dict[str, list[CollectiveRow]] = {}
    for row in report.collectives:
        size = f"group_of_{len(row.group)}" if row.group else UNKNOWN
        axis = size if row.dimension == UNKNOWN else row.dimension
        named.setdefault(f"{axis}.{row.kind}", []).append(row)
    return named


def _collectives(report: Report) -> Iterator[tuple[str, Value]]:
    divisor = step_count(report) or 1
    for name, rows in collectives(report).items():
        # a rank's calls: a group of n ranks with c calls is n times c entries, over all ranks of the axis
        members = len({rank for row in rows for rank in row.group}) or 1
        entries = [(row.count * (len(row.group) or 1), row.bytes) for row in rows]
        yield f"calls.{name}", Fraction(sum(count for count, _ in entries), members * divisor)
        if all(size is not None for _, size in entries):
            carried = sum(count * (size or 0) for count, size in entries)
            yield f"bytes.{name}", Fraction(carried, members * divisor)
        rungs = sorted({row.level for row in rows})
        if UNKNOWN not in rungs:
            yield f"rung.{name}", ", ".join(rungs)


def _stated(name: str, runs: Sequence[dict[str, Value]]) -> tuple[Value, ...]:
    absent = Fraction(0) if name.startswith("calls.") else None
    values = {run.get(name, absent) for run in runs}
    return tuple(sorted((value for value in values if value is not None), key=_order))


def _order(value: Value) -> tuple[bool, Fraction, str]:
    return (True, Fraction(0), value) if isinstance(value, str) else (False, value, "")


def _row(name: str, base: tuple[Value, ...], head: tuple[Value, ...]) -> ExactRow:
    return ExactRow(name, base, head, _state(base, head))


def _state(base: tuple[Value, ...], head: tuple[Value, ...]) -> State:
    if not base or not head:
        return State.BASE_ONLY if base else State.HEAD_ONLY
    if base == head:
        return State.SAME if len(base) == 1 else State.VARIES
    if isinstance(base[0], str) or isinstance(head[0], str):
        return State.DIFFERS
    if _order(head[0]) > _order(base[-1]):
        return State.MORE
    return State.LESS if _order(head[-1]) < _order(base[0]) else State.VARIES
