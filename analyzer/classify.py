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
    claims: Callable[[str], re.Match[str] | None]
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
    for needle, claims, pattern in _alternatives():
        if needle in name and claims(name):
            return pattern
    return None


@cache
def _alternatives() -> tuple[_Alternative, ...]:
    return tuple(_alternative(text, one) for one in patterns() for text in _split(one.match))


def _alternative(text: str, pattern: Pattern) -> _Alternative:
    compiled = re.compile(text)
    # `search` tries an anchored expression at every place of the name.
    return _Alternative(_needle(text), compiled.match if text.startswith("^") else compiled.search, pattern)


def _split(match: str) -> Iterator[str]:
    """The alternatives of the outermost level."""
    depth, text = 0, ""
    for atom in _ATOM.findall(match):
        if atom == "|" and depth == 0:
            yield text
            text = ""
            continue
        depth += (atom == "(") - (atom == ")")
        text += atom
    yield text


def _needle(text: str) -> str:
    """The longest run of characters that every match of `text` contains, empty where there is none."""
    runs, depth = [""], 0
    for atom in _ATOM.findall(text):
        depth += (atom == "(") - (atom == ")")
        if depth == 0 and _PLAIN.fullmatch(atom):
            runs[-1] += atom[-1]
        else:
            if atom[0] in "?*{" and depth == 0:
                runs[-1] = runs[-1][:-1]
            runs.append("")
    return max(runs, key=len)
