"""Where an object ends in text that may be damaged."""

from __future__ import annotations

import json
import re

BLANK = " \t\r\n,"

_DECODER = json.JSONDecoder(strict=False)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACES = str.maketrans("{}[]", "    ")
_NEXT = re.compile(r'\}\s*(?:,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)")|(?=\]\s*(?:,\s*"|\}\s*$|$)))')


def size(text: bytes) -> int | None:
    """Bytes up to the end of the first object; None where it is damaged or does not end."""
    characters = text.decode("utf-8", "surrogateescape")
    end = _end(characters, characters.index("{"))
    return None if end is None else len(characters[:end].encode("utf-8", "surrogateescape"))


def is_bracket(text: bytes) -> bool:
    """Whether the list closes next."""
    return text.lstrip(BLANK.encode()).startswith(b"]")


def ends_list(event: bytes) -> bool:
    """Whether the list of events ends behind this damaged event."""
    text = event.decode("utf-8", "surrogateescape")
    end = stop(text, text.index("{"))
    return end is not None and text[end:].lstrip(BLANK).startswith("]")


def _end(text: str, offset: int) -> int | None:
    """Where the sound object that begins at `offset` ends."""
    try:
        return _DECODER.raw_decode(text, offset)[1]
    except (ValueError, RecursionError):
        return None


def stop(text: str, offset: int) -> int | None:
    """Where the object that begins at `offset` ends, damaged or not; None where the text ends first."""
    sound_end = _end(text, offset)
    if sound_end is not None:
        return sound_end
    # Where a quote is the damage, strings mislead.
    for view in (_without_braces_in_strings(text[offset:]), text[offset:]):
        depth = end = 0
        for match in _NEXT.finditer(view):
            start, end = end, match.start() + 1
            depth += view.count("{", start, end) - view.count("}", start, end)
            if depth == 0:
                return offset + end
    return None


def _without_braces_in_strings(text: str) -> str:
    """The same text, as long as it was."""
    return _STRING.sub(lambda match: match[0].translate(_BRACES), text)


def _after(piece: bytes, depth: int, *, in_string: bool) -> tuple[int, bool]:
    """Depth of braces, and whether inside a string, behind a piece that begins so. Separators change neither."""
    text = piece.decode("utf-8", "replace")
    if in_string:
        end = _STRING_END.match(text)
        if end is None:
            return depth, True
        text = text[end.end() :]
    outside, quote, _ = _STRING.sub("", text).partition('"')
    return depth + outside.count("{") - outside.count("}"), bool(quote)


def closing(pieces: list[bytes]) -> int:
    """How many pieces from the first on close all that it opens, 1 where it opens nothing; 0 where all do not."""
    depth, in_string = 0, False
    for length, piece in enumerate(pieces, 1):
        depth, in_string = _after(piece, depth, in_string=in_string)
        if depth <= 0 and not in_string:
            return length
    return 0
