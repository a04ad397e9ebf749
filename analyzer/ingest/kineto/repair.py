"""JSON that is not quite JSON, read as its writer meant it. Slow: for what a strict reader has refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_STRING = r'"(?:[^"\\]|\\.)*"'
_C_NUMBER = re.compile(_STRING + r"|(?<=[:\[,\s])[-+]?(?:nan|inf)(?:\([a-z0-9]*\))?(?=\s*[,\]}])", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_NAME = re.compile(r'("name"\s*:\s*")(.*?)("\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:|\}))', re.DOTALL)
_BARE_QUOTE = re.compile(r'(?<!\\)"')


def loads(raw: bytes, fraction: Callable[[str], object] = float) -> object:
    """The value that `raw` stands for, numbers with a fraction as `fraction` makes them.

    Accepted beyond JSON, one after the other until it parses: bytes that are no UTF-8 (replaced by U+FFFD), raw
    control characters, NaN and Infinity, C's nan and inf, trailing commas, escapes that JSON does not know,
    quotes inside an event's name.

    Raises:
        ValueError: none of this makes it JSON.
    """
    text = raw.decode("utf-8", "replace")
    for cure in (_no_cure, _c_numbers, _trailing_commas, _escapes, _quotes):
        text = cure(text)
        try:
            value: object = json.loads(text, strict=False, parse_float=fraction)
        except (ValueError, RecursionError):
            continue
        return value
    raise ValueError(f"{len(raw):,} bytes that no repair makes JSON")


def whole(text: str) -> str:
    """The same text with lone surrogates replaced, so that it can be printed."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _no_cure(text: str) -> str:
    return text


def _c_numbers(text: str) -> str:
    return _C_NUMBER.sub(lambda match: match[0] if match[0].startswith('"') else "NaN", text)


def _trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: match[0] if match[0].startswith('"') else "", text)


def _escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\\\\" if match[0] == "\\" else match[0], text)


def _quotes(text: str) -> str:
    return _NAME.sub(lambda match: match[1] + _BARE_QUOTE.sub('\\\\"', match[2]) + match[3], text)
