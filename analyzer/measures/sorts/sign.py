"""Signs: names that tell something of a run, asked once a distinct name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.schema.workload import Fact, Sure

Column = Literal["host", "kernel", "call", "process", "version", "group", "device"]
"""Which names are asked: operations and ranges of the host, work on the device, runtime and driver calls, process
titles, libraries whose versions are recorded, descriptions of process groups, the device's name."""

Names = dict[Column, str]
"""Distinct names of each column, one a line."""

LONGEST = 60
"""Letters of a name in the evidence."""
ASKED = 300
"""Letters of a name that are asked: behind them come template arguments."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A name that says something.

    Attributes:
        match: regular expression, searched in every distinct name; `^` and `$` are a name's ends.
        column: which names it is asked of.
        says: the fact's value.
        sure: certain where nothing else writes such a name.
        source: who writes it.
        examples: real names that it claims (tested).
    """

    match: str
    column: Column
    says: str
    sure: Sure
    source: str
    examples: tuple[str, ...]


@once
def names_of_run(run: Run) -> Names:
    """Distinct names over all ranks."""
    return joined(run.traces)


def joined(traces: Iterable[Trace]) -> Names:
    """Distinct names of some ranks."""
    columns: dict[Column, dict[str, None]] = {}
    for trace in traces:
        origin = trace.origin
        for column, values in (
            ("host", trace.ops.name.values),
            ("host", trace.annotations.name.values),
            ("kernel", trace.activities.name.values),
            ("host" if origin.device == "cpu" else "kernel", trace.activities.name.values),
            ("call", trace.calls.name.values),
            ("process", origin.processes),
            ("version", tuple(origin.versions)),
            ("group", tuple(group.description for group in origin.groups) + trace.collectives.description.values),
            ("device", (origin.device_name,)),
        ):
            columns.setdefault(column, {}).update(dict.fromkeys(values))  # type: ignore[arg-type]
    return {column: "\n".join(_line(value) for value in values) for column, values in columns.items()}


def first(sign: Sign, names: Names) -> str | None:
    """The first name that the sign claims."""
    text = names.get(sign.column, "")
    hit = _expression(sign.match).search(text)
    if hit is None:
        return None
    begin, end = text.rfind("\n", 0, hit.start()) + 1, text.find("\n", hit.start())
    return text[begin : None if end < 0 else end]


def claims(signs: Iterable[Sign], names: Names) -> list[tuple[Sign, str]]:
    """Every sign that claims a name, with that name; surest first, then in the order of the table."""
    hits = [(sign, name) for sign in signs if (name := first(sign, names)) is not None]
    return sorted(hits, key=lambda hit: hit[0].sure != "certain")


def says(signs: Iterable[Sign], names: Names) -> Fact:
    """The value of the surest sign, of several the first in the table."""
    hits = claims(signs, names)
    return fact(*hits[0]) if hits else Fact()


def fact(sign: Sign, name: str) -> Fact:
    """What one sign says, with the name that shows it."""
    return Fact(sign.says, f"{_short(name)!r}: {sign.source}", sign.sure)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _line(value: str) -> str:
    return value[:ASKED].replace("\n", " ")


@cache
def _expression(match: str) -> re.Pattern[str]:
    return re.compile(match, re.MULTILINE)
