"""Reports and texts without characters that act: names in a trace are whatever someone called a kernel."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

# C0 but tab and line feed, C1, lone surrogates, and the marks that turn the direction of text: a terminal obeys the
# first two, XML and UTF-8 have no third, and the last make a reader see other text than what is there.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_REPLACEMENT = "\ufffd"


def safe(value: T) -> T:
    """The same text, report or other record, each acting character of each string replaced by U+FFFD."""
    return msgspec.convert(_without(msgspec.to_builtins(value)), type(value))


def _without(value: object) -> object:
    if isinstance(value, str):
        return _ACTING.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        return {_without(key): _without(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each) for each in value]
    return value
