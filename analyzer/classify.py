"""From kernel names to patterns, once a distinct name.

A pattern is a list of alternatives; most hold a run of plain characters that a name must contain. Looking for that run
first is what makes a name cost some 100 µs instead of 350 µs with 240 patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from analyzer import kernels
from analyzer.model.pattern import Pattern
from analyzer.plugins import offers

# What identifies a kernel stands first; behind it come template arguments, up to megabytes in a damaged trace.
ASKED_CHARACTERS = 4096

# Alternatives, groups, character classes and escapes of a regular expression; anything else is a plain character.
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[?*+]\??|\{\d*,?\d*\}\??|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_:<>/ ,&=-]|\\[.(){}|^$*+?\[\]]")


class _Alternative(NamedTuple):
    needle: str
    text: str
    pattern: Pattern


@cache
def patterns() -> tuple[Pattern, ...]:
    """Patterns of all modules in the order they are asked: by breadth, then module name, then place in its tuple."""
    offered = offers(kernels, "PATTERNS")
    return tuple(sorted((one for module in sorted(offered) for one in offered[module]), key=lambda one: one.breadth))


def classify(names: tuple[str, ...]) -> tuple[Pattern | None, ...]:
    """The first pattern that claims each name, None where none does; as long as `names`."""
    known: dict[str, Pattern | None] = {}
    for name in names:
        if name not in known:
            known[name] = _claim(name[:ASKED_CHARACTERS])
    return tuple(known[name] for name in names)


def _claim(name: str) -> Pattern | None:
    for needle, text, pattern in _alternatives():
        if needle in name and _expression(text)(name):
            return pattern
    return None


@cache
def _alternatives() -> tuple[_Alternative, ...]:
    return tuple(_Alternative(_needle(atoms), "".join(atoms), one) for one in patterns() for atoms in _split(one.match))


@cache
def _expression(text: str) -> Callable[[str], re.Match[str] | None]:
    """Compiled when a name first holds its needle: a run meets a tenth of the expressions."""
    compiled = re.compile(text)
    # `search` tries an anchored expression at every place of the name.
    return compiled.match if text.startswith("^") else compiled.search


def _split(match: str) -> Iterator[list[str]]:
    """The alternatives of the outermost level, each as its atoms."""
    depth, atoms = 0, list[str]()
    for atom in _ATOM.findall(match):
        if atom == "|" and depth == 0:
            yield atoms
            atoms = []
            continue
        depth += (atom == "(") - (atom == ")")
        atoms.append(atom)
    yield atoms


def _needle(atoms: list[str]) -> str:
    """The longest run of characters that every match contains, empty where there is none."""
    runs, depth = [""], 0
    for atom in atoms:
        if atom in "()":
            depth += 1 if atom == "(" else -1
        if depth == 0 and (atom.isalnum() or _PLAIN.fullmatch(atom)):
            runs[-1] += atom[-1]
        else:
            if atom[0] in "?*{" and depth == 0:
                runs[-1] = runs[-1][:-1]
            runs.append("")
    return max(runs, key=len)
