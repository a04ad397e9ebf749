"""Reports and texts without characters that act: names in a trace are whatever someone called a kernel."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

# C0 but tab and line feed, C1, lone surrogates, and the marks that turn the direction of text: a terminal obeys the
# first two, XML and UTF-8 have no third, and the last make a reader see other text than what is there.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_REPLACEMENT = "\ufffd"
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)


def safe(value: T) -> T:
    """The same text, report or other record, each acting character of each string replaced by U+FFFD."""
    return _without(value)  # type: ignore[no-any-return]


def quoted(json: str) -> str:
    """The same JSON with what acts written as escapes: equal when it is read back."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", json).replace("##[", "##\\u005b")


def inert(text: str) -> str:
    """Lines none of which is a command in a GitHub log: a sign that looks alike takes the place of `::` and `##[`.

    Source: GitHub's runner, src/Runner.Common/ActionCommand.cs: `::` starts a line, `##[` is anywhere in it.
    """
    return _COMMAND.sub("\\1∷", text).replace("##[", "#♯[")


def _without(value: Any) -> Any:  # noqa: ANN401 (any record goes in and comes out)
    """What holds no acting character is given back itself, not a copy."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return _ACTING.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        pairs = [(_without(key), _without(each)) for key, each in value.items()]
        same = all(key is old and each is value[old] for (key, each), old in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if isinstance(value, (list, tuple)):
        parts = [_without(each) for each in value]
        return value if all(map(_is, parts, value)) else type(value)(parts)
    return _record_without(value)


def _record_without(value: Any) -> Any:  # noqa: ANN401
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        changed = _changed(value, names)
        return replace(value, **changed) if changed else value
    if isinstance(value, msgspec.Struct):
        changed = _changed(value, value.__struct_fields__)
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _changed(value: object, names: Any) -> dict[str, Any]:  # noqa: ANN401
    found = {name: (getattr(value, name), _without(getattr(value, name))) for name in names}
    return {name: new for name, (old, new) in found.items() if new is not old}


def _is(one: object, other: object) -> bool:
    return one is other
