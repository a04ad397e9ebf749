"""Flags, variables, commands and counters that advice names: whose, since and until when, on which devices."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

_toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

ENGINES = ("vllm", "sglang", "megatron")
"""Owners whose version decides; the flags of others (tools, libraries, routers) hold in every engine's run."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, variable, command or counter.

    Attributes:
        owner: who reads it: an engine, a library, a router, or a maker's tool.
        name: as typed, with what belongs to it.
        since: first version of the owner known to have it; `<=` before a version that has it where no older was read.
        deprecated: version from which on it is deprecated, "" where it is not.
        removed: version from which on it is gone, "" where it is not.
        successor: what is used in its place.
        default: version from which on it is on by default, "" where it is not.
        makers: of devices that it is for; () for any.
        needs: what else must hold.
        source: what was read.
        sure: `read`, or `memory` where no source was found for a statement above.
    """

    owner: str
    name: str
    since: str
    source: str
    deprecated: str = ""
    removed: str = ""
    successor: str = ""
    default: str = ""
    makers: tuple[str, ...] = ()
    needs: str = ""
    sure: str = "read"

    def fits(self, version: str) -> bool:
        """Whether it is to be named to a user of this version of its owner; the newest where the version is unknown."""
        endings = [numbers(ending) for ending in (self.deprecated, self.removed, self.default) if ending]
        ours = numbers(version)
        if not ours:
            return not endings
        has_it = self.since.startswith("<=") or ours >= numbers(self.since)
        return has_it and all(ours < ending for ending in endings)


@cache
def flags() -> tuple[Flag, ...]:
    """All that are known, in the order of the table."""
    held = _toml.loads(files("analyzer.data").joinpath("flags.toml").read_text("utf-8"))
    return tuple(
        Flag(owner, name, **{**row, "makers": tuple(row.get("makers", ()))})
        for owner, rows in held.items()
        for name, row in rows.items()
    )


def named(text: str, engines: tuple[str, ...]) -> Iterator[Flag]:
    """Flags that a text for these engines names; where several own one of that name, these engines' own.

    Args:
        text: a sentence of advice.
        engines: the sentence is for; () for all.
    """
    for hit in _names().finditer(text):
        rows = [flag for flag in flags() if flag.name == hit[0]]
        yield from [flag for flag in rows if flag.owner in engines] or rows


@cache
def _names() -> re.Pattern[str]:
    """Every name of the table, longest first, not within a longer word."""
    alternatives = "|".join(re.escape(name) for name in sorted({flag.name for flag in flags()}, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-]|\.\w)")


def numbers(version: str) -> tuple[int, ...]:
    """Of a release: `0.11.1rc2.dev3` → 0, 11, 1; () where there are none. `<=` before it is left out."""
    release = re.match(r"(?:<=)?v?(\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in release[1].split(".")) if release else ()
