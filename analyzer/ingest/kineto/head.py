"""The start of a trace file: what it says before its events, where they begin, and the bytes between two of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass

from analyzer.errors import TraceFormatError
from analyzer.ingest.kineto import foreign, problems, repair
from analyzer.ingest.kineto.problems import Problems
from analyzer.ingest.kineto.stream import Stream

HEAD_BYTES = 1 << 20  # read at first; holds the metadata of any trace seen and some thousand events
LONGEST_HEAD_BYTES = 1 << 26  # of metadata before the events; none seen exceeds 30 kB

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_BLANK = b" \t\r\n"
_EVENTS = "traceEvents"
_OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_FIRST_BRACE = re.compile(rb"\s*\{\s*")
_BETWEEN = re.compile(rb'(\s*)\}(\s*),(\s*)\{(\s*)(?="(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)")')
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Separator:
    r"""The bytes between two events; every writer uses one form for a whole file.

    Attributes:
        before: end of an event, `\n  }` in Kineto's own layout.
        after: start of the next, `\n  {\n    `.
    """

    before: bytes
    after: bytes

    @property
    def whole(self) -> bytes:
        """All of it."""
        return self.before + b"," + self.after


@dataclass(frozen=True, slots=True)
class Head:
    """What the start of a file says.

    Attributes:
        metadata: top-level keys before the events.
        events: what was read of the file from the first event on, its opening brace left out where there is one.
        opening: that brace with the blanks around it, or nothing where the list is empty or odd.
        separator: None where the list holds fewer than two events, or they are too damaged to tell.
        is_list: whether the file is a bare list.
    """

    metadata: dict[str, object]
    events: bytes
    opening: bytes
    separator: Separator | None
    is_list: bool


def read_head(stream: Stream, problem_counts: Problems) -> Head:
    """Read on until the first event.

    Raises:
        TraceFormatError: not JSON, or JSON without a list of events.
    """
    text = _more(stream, b"", HEAD_BYTES)
    if text.startswith(_BOM):
        problem_counts[problems.BYTE_ORDER_MARK] += 1
        text = text[len(_BOM) :]
    if not text.strip(_BLANK):
        raise TraceFormatError(
            f"{stream.path}: {stream.problem or 'nothing but blanks'}; record or copy the trace again"
        )
    first = text.lstrip(_BLANK)
    if first.startswith(b"["):
        problem_counts[problems.BARE_LIST] += 1
        return _from_events({}, first[1:], is_list=True)
    if not first.startswith(b"{"):
        raise TraceFormatError(f"{stream.path}: {foreign.no_json(first)}")
    return _object_head(stream, text, problem_counts)


def _object_head(stream: Stream, text: bytes, problem_counts: Problems) -> Head:
    while True:
        # Byte offsets survive: surrogateescape gives back exactly the bytes it took.
        walk = _Walk(text.decode("utf-8", "surrogateescape"))
        if walk.events_at is not None:
            return _from_events(walk.metadata, text[walk.events_at :], is_list=False)
        opening = _OPENING.search(text) if walk.is_broken else None
        if opening:
            problem_counts[problems.DAMAGED_HEAD] += 1
            return _from_events(_metadata(text[: opening.start()]), text[opening.end() :], is_list=False)
        longer = _more(stream, text, 2 * len(text)) if walk.is_broken and len(text) < LONGEST_HEAD_BYTES else text
        if len(longer) == len(text) or foreign.is_told_by(walk.keys):
            what = foreign.no_events(
                walk.keys, is_broken=walk.is_broken, problem=stream.problem, read_bytes=len(longer)
            )
            raise TraceFormatError(f"{stream.path}: {what}")
        text = longer


def keys_of(text: str) -> tuple[dict[str, object], bool, str]:
    """Top-level keys of an object; whether it stops being JSON before its end; and what stands behind that end."""
    walk = _Walk(text)
    return walk.metadata, walk.is_broken, walk.rest


class _Walk:
    """Steps over the top-level keys of an object up to its events.

    Attributes:
        metadata: keys passed, with their values.
        keys: the same keys, and the one whose value could not be read.
        events_at: byte after the bracket that opens the list of events, None where it was not reached.
        rest: text behind the object's end, "" where that was not reached.
        is_broken: whether the text stopped being JSON before the object ended (damaged, or there is more to read).
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.metadata: dict[str, object] = {}
        self.keys: list[str] = []
        self.events_at: int | None = None
        self.rest = ""
        self.is_broken = False
        try:
            self._run()
        except (ValueError, RecursionError, IndexError):
            self.is_broken = True

    def _run(self) -> None:
        offset = self._skip(0)
        while self._text[offset] in "{,":
            offset = self._skip(offset + 1)
            if self._text[offset] == "}":
                break
            key, offset = _DECODER.raw_decode(self._text, offset)
            self.keys.append(str(key))
            offset = self._expect(":", offset)
            if key == _EVENTS and self._text[offset] == "[":
                self.events_at = len(self._text[: offset + 1].encode("utf-8", "surrogateescape"))
                return
            value, offset = _DECODER.raw_decode(self._text, offset)
            self.metadata[str(key)] = value
            offset = self._skip(offset)
        if self._text[offset] != "}":
            raise ValueError("no comma or brace after a value")
        self.rest = self._text[offset + 1 :]

    def _expect(self, mark: str, offset: int) -> int:
        offset = self._skip(offset)
        if self._text[offset] != mark:
            raise ValueError(f"no {mark!r} at {offset}")
        return self._skip(offset + 1)

    def _skip(self, offset: int) -> int:
        blanks = _SPACE.match(self._text, offset)
        return blanks.end() if blanks else offset


def _from_events(metadata: dict[str, object], events: bytes, *, is_list: bool) -> Head:
    brace = _FIRST_BRACE.match(events)
    if not brace:
        return Head(metadata, events, b"", None, is_list)
    return Head(metadata, events[brace.end() :], brace[0], _separator(events, brace.end()), is_list)


def _separator(events: bytes, first_at: int) -> Separator | None:
    """The bytes between the first two events; between most of the events, where the first is damaged."""
    text = events.decode("utf-8", "surrogateescape")
    try:
        _, end = _DECODER.raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        met = Counter(match.groups() for match in _BETWEEN.finditer(events, first_at))
        return _of_blanks(*met.most_common(1)[0][0]) if met else None
    last = len(text[: end - 1].encode("utf-8", "surrogateescape"))
    while last > first_at and events[last - 1 : last] in (b" ", b"\n", b"\t", b"\r"):
        last -= 1
    between = _BETWEEN.match(events, last)
    return _of_blanks(*between.groups()) if between else None


def _of_blanks(before: bytes, comma: bytes, brace: bytes, key: bytes) -> Separator:
    return Separator(before + b"}" + comma, brace + b"{" + key)


def _metadata(damaged: bytes) -> dict[str, object]:
    """What can be had of a damaged head."""
    try:
        value = repair.loads(damaged + b'"":0}')
    except ValueError:
        return {}
    return {key: value for key, value in value.items() if key} if isinstance(value, dict) else {}


def _more(stream: Stream, text: bytes, size: int) -> bytes:
    """`text` and what follows it, `size` bytes in all where the file has them."""
    parts, held = [text], len(text)
    while held < size and (block := stream.read(size - held)):
        parts.append(block)
        held += len(block)
    return b"".join(parts)
