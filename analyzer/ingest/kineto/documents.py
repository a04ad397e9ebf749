"""A list of events, cut between events into complete JSON documents of about one block each.

Why a wrong cut cannot pass: inside valid JSON the separator's brace, comma, brace and quote cannot all lie in a
string. Cut anywhere else than between two events, the halves do not balance, and a validating reader refuses them;
behind the list of events, what is cut has keys of its own, or no phase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.ingest.kineto.detail import ATEN, BULK, COUNTER, FLOWS, HOST_OPERATIONS, INSTANT, WAITING, Detail
from analyzer.ingest.kineto.head import Head, Separator
from analyzer.ingest.kineto.stream import Stream

BLOCK_BYTES = 1 << 19  # half a MB stays in the cache: 4 MB takes a quarter more time, 8 MB twice the memory

_OPEN, _CLOSE = b'{"traceEvents":[', b"]}"
_LAYOUT = re.compile(rb'"ph"(\s*:\s*)"X"(\s*,\s*)"cat"\s*:\s*"[^"\\]*"(\s*,\s*)"name"')


@dataclass(frozen=True, slots=True)
class Document:
    """Neighbouring events of one file.

    Attributes:
        pieces: their text as it stands in the file, without the braces and blanks around each.
        kept: those of the pieces that may be wanted.
        before: the piece just before them where it was not kept, else nothing.
        is_last: whether the last piece runs to the end of the file.
    """

    pieces: list[bytes]
    kept: list[bytes]
    before: list[bytes]
    is_last: bool


class Documents:
    """The documents of a file, front to back.

    Attributes:
        left_out: pieces so far that were not kept.
        separator: the bytes between two events.
        is_list: whether the file is a bare list.
    """

    def __init__(self, stream: Stream, head: Head, detail: Detail, block_bytes: int = BLOCK_BYTES) -> None:
        self.left_out = 0
        self.separator = head.separator or Separator(b"}", head.opening)
        self._is_cut = head.separator is not None
        self.is_list = head.is_list
        self._opening = head.opening
        self._stream, self._block_bytes = stream, block_bytes
        self._filter = _Filter(detail)
        self._ahead, self._ahead_at = head.events, 0
        self._rest = b""
        self._back: list[bytes] = []
        self._is_over = False

    def __iter__(self) -> Iterator[Document]:
        whole, size = self.separator.whole, self._block_bytes
        before: list[bytes] = []
        while self._is_cut and (block := self._read(size)):
            pieces = (self._rest + block).split(whole)
            self._rest = pieces.pop()
            if not pieces:
                size *= 2  # an event longer than a block is copied a few times, not once a block
                continue
            size = self._block_bytes
            pieces, self._back = self._back + pieces, []
            kept = self._filter.kept(pieces)
            self.left_out += len(pieces) - len(kept)
            if kept:
                yield Document(pieces, kept, before, is_last=False)
            if self._is_over:
                return
            before = [pieces[-1]] if not (self._back or self._filter.kept(pieces[-1:])) else []
        yield self.to_the_end(self._back, before)

    def to_the_end(self, pieces: list[bytes], before: list[bytes]) -> Document:
        """These pieces and all that follows, as the last document.

        Args:
            pieces: the last ones of the document handed out last.
            before: the piece before them where it was not kept, else nothing.
        """
        rest = [self._rest]
        while block := self._read(self._block_bytes):
            rest.append(block)
        self._rest, self._back, self._is_over = b"", [], True
        following = b"".join(rest)
        return Document(
            pieces + (following.split(self.separator.whole) if self._is_cut else [following]), [], before, is_last=True
        )

    def give_back(self, pieces: list[bytes]) -> None:
        """Put the last pieces of a document before the next one, where the event that they begin goes on."""
        self._back = pieces

    def text(self, pieces: list[bytes], *, is_last: bool) -> bytes:
        """A complete JSON document of these pieces."""
        events = self.separator.whole.join(pieces)
        if is_last:
            return b"".join(
                (_OPEN, self.separator.after if self._opening else b"", events, b"}" if self.is_list else b"")
            )
        return b"".join((_OPEN, self.separator.after, events, self.separator.before, _CLOSE))

    def event(self, piece: bytes) -> bytes:
        """A piece with its braces."""
        return self.separator.after + piece + self.separator.before

    def end(self, pieces: list[bytes]) -> bytes:
        """The end of the file from the first of these pieces on, as it stands there."""
        return (self.separator.after if self._opening else b"") + self.separator.whole.join(pieces)

    def _read(self, size: int) -> bytes:
        if self._ahead:
            block = self._ahead[self._ahead_at : self._ahead_at + size]
            self._ahead_at += size
            if self._ahead_at >= len(self._ahead):
                self._ahead = b""
            return block
        return self._stream.read(size)


class _Filter:
    """Leaves out pieces by their first bytes, once it has seen how the writer spaces them."""

    def __init__(self, detail: Detail) -> None:
        self._detail = detail
        self._drop: tuple[bytes, ...] = ()
        self._spare: tuple[bytes, ...] = ()

    def kept(self, pieces: list[bytes]) -> list[bytes]:
        """Those that may be wanted; all as long as no event began with phase and category."""
        drop, spare = self._drop, self._spare
        if not drop:
            layout = next(filter(None, map(_LAYOUT.match, pieces)), None)
            if layout is None:
                return pieces
            self._learn(*layout.groups())
            drop, spare = self._drop, self._spare
        return [piece for piece in pieces if not piece.startswith(drop) or piece.startswith(spare)]

    def _learn(self, colon: bytes, comma: bytes, before_name: bytes) -> None:
        phase = b'"ph"' + colon + b'"'

        def category(word: str) -> bytes:
            return phase + b'X"' + comma + b'"cat"' + colon + b'"' + word.encode() + b'"'

        def name(operations: bytes, start: str) -> bytes:
            return operations + before_name + b'"name"' + colon + b'"' + start.encode()

        drop = [phase + mark.encode() + b'"' for mark in (*FLOWS, COUNTER)]
        drop += [category(word) for word in BULK]
        # Not the other marks: the last of them ends the list, and what stands behind it must not be lost unseen.
        drop.append(phase + INSTANT.encode() + b'"' + comma + b'"cat"' + colon + b'"' + BULK[-1].encode() + b'"')
        operations = [category(word) for word in HOST_OPERATIONS]
        if self._detail is Detail.ALL:
            self._drop = tuple(drop)
            return
        if self._detail is Detail.BREAKDOWN:
            self._drop = (*drop, *operations)
            return
        self._drop = (*drop, *(name(form, ATEN) for form in operations))
        self._spare = tuple(name(form, word + '"') for form in operations for word in WAITING)
