"""Documents to events, by a chain in which each step reads what the one before it refused.

The filtered document; the whole document; event by event; up to JOINED pieces of one event that holds a list of
objects; the end of the list and the file's last keys; an event repaired. What is left then is lost, and counted.
On a sound file only the first step runs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal

import msgspec

from analyzer.ingest.kineto import problems, repair, scan
from analyzer.ingest.kineto.decode import MISSING, Arguments, Decoder, Event
from analyzer.ingest.kineto.documents import Document, Documents
from analyzer.ingest.kineto.head import keys_of
from analyzer.ingest.kineto.problems import Problems

JOINED = 64  # pieces that one event may have been cut into, at objects inside it or at text that looks like its end

_BLANKS = re.compile(f"[{scan.BLANK}]*")
_START = re.compile(rb'\{\s*"ph"\s*:')


class Salvage:
    """Reads the documents of one file.

    Attributes:
        metadata: the file's own keys behind its events.
    """

    def __init__(self, documents: Documents, decoder: Decoder, problem_counts: Problems) -> None:
        self.metadata: dict[str, object] = {}
        self._documents = documents
        self._decoder = decoder
        self._problem_counts = problem_counts

    def events(self, document: Document) -> list[Event]:
        """The events of one document, those left out by their first bytes not among them."""
        if document.is_last:
            return self._to_the_end(document.pieces, document.before)
        events = self._decoder.events(self._documents.text(document.kept, is_last=False))
        if events is not None and not any(event.ph is None for event in events):
            return events
        pieces = document.before + document.pieces
        text = self._documents.text(pieces, is_last=False)
        events = self._decoder.events(text)
        if events is not None:
            return events
        if self._decoder.file(text) is not None:  # sound, but with other keys: the list ended in it
            return self._to_the_end(self._documents.to_the_end(pieces, []).pieces, [])
        return self._one_by_one(pieces, is_last=False)

    def _to_the_end(self, pieces: list[bytes], before: list[bytes]) -> list[Event]:
        read = self._decoder.file(self._documents.text(pieces, is_last=True))
        if read is None and before:
            return self._to_the_end(before + pieces, [])
        if read is None:
            return self._one_by_one(pieces, is_last=True)
        events, keys = read
        for key, value in keys.items():
            self._keep(key, value)
        return events

    def _keep(self, key: str, value: bytes) -> None:
        """A key behind the events; a strict reader does not look into the strings that it passes over."""
        try:
            self.metadata[key] = json.loads(value)
        except ValueError:
            self._problem_counts[problems.DAMAGED_TAIL] += 1
            self.metadata |= _repaired_keys(f',"{key}":{value.decode("utf-8", "surrogateescape")}}}')

    def _one_by_one(self, pieces: list[bytes], *, is_last: bool) -> list[Event]:
        events: list[Event] = []
        index = 0
        while index < len(pieces) - is_last:
            event = self._decoder.event(self._documents.event(pieces[index]))
            if event is not None:
                events.append(event)
                index += 1
                continue
            step = self._refused(pieces[index : index + JOINED], is_all=is_last or index + JOINED <= len(pieces))
            if step is None:
                self._documents.give_back(pieces[index:])
                return events
            more, length = step
            events += more
            index += length
            if not length:
                rest = pieces[index:] if is_last else self._documents.to_the_end(pieces[index:], []).pieces
                return events + self._walk(self._documents.end(rest))
        return events + self._walk(self._documents.end(pieces[index:])) if is_last else events

    def _refused(self, pieces: list[bytes], *, is_all: bool) -> tuple[list[Event], int] | None:
        """What can be had where a piece is no event by itself.

        Args:
            pieces: that piece and those behind it.
            is_all: whether further ones would not help.

        Returns:
            Events, and the number of pieces that they take up; 0 where the list of events ends in the first event.
            None where the first event goes on behind the pieces.
        """
        text, first = (self._documents.event(each) for each in (self._joined(pieces), pieces[0]))
        size = scan.size(text)
        if scan.ends_list(first) if size is None else scan.is_bracket(text[size:]):
            return [], 0
        lengths = list(dict.fromkeys((1, scan.closing(pieces)))) if size is None else [self._count(pieces, size)]
        for length in lengths:
            one = self._documents.event(self._joined(pieces[:length]))
            event = (self._decoder.event(one) or self._mended(one)) if length else None
            if event is not None:
                return [event], length
        return None if 0 in lengths and not is_all else (self._unglued(first), 1)

    def _joined(self, pieces: list[bytes]) -> bytes:
        return self._documents.separator.whole.join(pieces)

    def _count(self, pieces: list[bytes], size: int) -> int:
        """How many pieces an event of so many bytes takes up."""
        lengths = (len(self._documents.event(self._joined(pieces[: index + 1]))) for index in range(len(pieces)))
        return next((number for number, length in enumerate(lengths, 1) if length >= size), len(pieces))

    def _unglued(self, raw: bytes) -> list[Event]:
        """Events with damage between them; what is no such event is lost."""
        starts = [match.start() for match in _START.finditer(raw)] or [0]
        events = []
        for start, following in zip(starts, [*starts[1:], len(raw)], strict=True):
            one = raw[start : raw.rfind(b"}", start, following) + 1]
            event = self._decoder.event(one) or self._mended(one)
            if event is None:
                self._problem_counts[problems.LOST] += 1
            else:
                events.append(event)
        self._problem_counts[problems.GLUED] += len(starts) - 1
        return events

    def _walk(self, end: bytes) -> list[Event]:
        """The last events and the keys behind them, wherever the list ends."""
        text = end.decode("utf-8", "surrogateescape")
        events: list[Event] = []
        offset = 0
        while True:
            blank = _BLANKS.match(text, offset)
            between, start, offset = (blank[0], offset, blank.end()) if blank else ("", offset, offset)
            has_comma = "," in between
            if text[offset : offset + 1] == "]":
                self._problem_counts[problems.COMMA] += has_comma
                self._read_tail(text[offset + 1 :])
                return events
            stop = scan.stop(text, offset) if offset < len(text) else None
            if stop is None:
                self._problem_counts[problems.INCOMPLETE] += 1 if offset < len(text) else 0
                self._problem_counts[problems.ENDS_EARLY] += 1
                return events
            raw = text[offset:stop].encode("utf-8", "surrogateescape")
            event = self._decoder.event(raw) or self._mended(raw)
            events += [event] if event else self._unglued(raw)
            self._problem_counts[problems.GLUED] += start > 0 and not has_comma
            offset = stop

    def _read_tail(self, tail: str) -> None:
        """Keys behind the list of events, given without its bracket; of a bare list nothing follows."""
        metadata, is_broken, rest = ({}, False, tail) if self._documents.is_list else keys_of('{"":0' + tail)
        if is_broken and tail.rstrip().endswith("}"):
            self._problem_counts[problems.DAMAGED_TAIL] += 1
            metadata = _repaired_keys(tail) or metadata
        elif is_broken:
            self._problem_counts[problems.TAIL_CUT] += 1
        if rest.strip("\0 \t\r\n"):
            self._problem_counts[problems.MORE_TEXT] += 1
        self.metadata |= {key: value for key, value in metadata.items() if key}

    def _mended(self, raw: bytes) -> Event | None:
        """One event leniently; None where it cannot be had."""
        try:
            value = repair.loads(raw, Decimal)
            event = self._decoder.event(_typed(value)) if isinstance(value, dict) else None
        except ValueError:
            return None
        if event is not None:
            self._problem_counts[problems.ODD_TYPES if _is_sound(raw) else problems.REPAIRED] += 1
        return event


def _repaired_keys(tail: str) -> dict[str, object]:
    try:
        value = repair.loads(('{"":0' + tail).encode("utf-8", "surrogateescape"))
    except ValueError:
        return {}
    return {key: each for key, each in value.items() if key} if isinstance(value, dict) else {}


def _is_sound(raw: bytes) -> bool:
    """Whether this is JSON after all, so that only its types were refused."""
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _typed(event: dict[str, object]) -> bytes:
    """The event again, without the values whose types are not those of an event."""
    typed: dict[str, object] = {key: _scalar(event.get(key)) for key in ("name", "pid", "tid")}
    typed |= {key: _worded(event.get(key)) for key in ("ph", "cat", "ts", "dur")}
    given = event.get("args")
    typed["args"] = {
        key: _KINDS[key](value) for key, value in (given.items() if isinstance(given, dict) else ()) if key in _KINDS
    }
    # What a document could not hold (a lone surrogate) must not get out of here either.
    return repair.whole(json.dumps(typed, default=float, ensure_ascii=False)).encode()


def _scalar(value: object) -> object:
    if isinstance(value, (float, Decimal)):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _worded(value: object) -> str | None:
    """Text of a number, NaN and Infinity too: they are said to be no times, not to be missing."""
    return str(value) if isinstance(value, (str, int, float, Decimal)) and not isinstance(value, bool) else None


def _nested(value: object) -> object:
    try:
        json.dumps(value, default=float, allow_nan=False)
    except ValueError:
        return None
    return value


_KINDS: dict[str, Callable[[object], object]] = {
    argument.encode_name: _scalar if argument.default == MISSING else _worded if argument.default is None else _nested
    for argument in msgspec.structs.fields(Arguments)
}
