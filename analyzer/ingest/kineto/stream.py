"""Bytes of a file, unpacked, as far as they can be had. Damage is told, not raised."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, final

from analyzer.errors import RunNotFoundError, TraceFormatError

READ_BYTES = 1 << 10  # of a packed file at a time: where it is damaged, this much before the damage is lost too
PLAIN_BYTES = 1 << 16  # of a plain file at a time, for small reads

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's code for "gzip header and trailer, largest window"
_LONGEST_SIGNATURE = 16

_UNREADABLE = (
    (b"\x28\xb5\x2f\xfd", "Zstandard data", "unpack it first: zstd -d"),
    (b"\xfd7zXZ\x00", "xz data", "unpack it first: xz -d"),
    (b"BZh", "bzip2 data", "unpack it first: bzip2 -d"),
    (b"\x04\x22\x4d\x18", "LZ4 data", "unpack it first: lz4 -d"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"SQLite format 3\x00", "an SQLite database", "export the trace as Chrome-trace JSON"),
    (b"\xff\xfe", "UTF-16 text", "convert it to UTF-8 first"),
    (b"\xfe\xff", "UTF-16 text", "convert it to UTF-8 first"),
)


@final
class Stream:
    """The unpacked bytes of one file, front to back.

    Attributes:
        path: the file.
        is_packed: whether it is gzip.
        offset: unpacked bytes handed out so far.
        problem: "" or, once the end is reached, what kept the rest from being read.
    """

    def __init__(self, path: Path) -> None:
        """Open by the first bytes, whatever the name says.

        Raises:
            RunNotFoundError: there is no such file.
            TraceFormatError: a directory, an empty file, no permission, or packed in a way that is not read here.
        """
        self.path = path
        self.offset = 0
        self.problem = ""
        try:
            self._file = path.open("rb", buffering=PLAIN_BYTES)
        except FileNotFoundError:
            raise RunNotFoundError(f"{path}: no such file") from None
        except IsADirectoryError:
            raise TraceFormatError(f"{path}: a directory, not a trace file; name a file in it") from None
        except OSError as error:
            raise TraceFormatError(f"{path}: cannot be opened ({error.strerror}); check its permissions") from None
        start = self._from_disk(_LONGEST_SIGNATURE)
        self.is_packed = start.startswith(_GZIP)
        try:
            self._refuse(start)
        except TraceFormatError:
            self._file.close()
            raise
        self._left = b""
        self._blocks = self._unpacked(start) if self.is_packed else self._plain(start)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end, none after it."""
        if not self.is_packed and not self._left and size >= PLAIN_BYTES:
            return self._straight(size)
        parts, held = [self._left], len(self._left)
        while held < size:
            block = next(self._blocks, None)
            if block is None:
                break
            parts.append(block)
            held += len(block)
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        taken, self._left = joined[:size], joined[size:]
        self.offset += len(taken)
        return taken

    def _straight(self, size: int) -> bytes:
        """A large plain block without a second copy of it."""
        start = next(self._blocks, b"") if self.offset == 0 else b""
        taken = start + self._from_disk(size - len(start)) if start else self._from_disk(size)
        self.offset += len(taken)
        return taken

    def _refuse(self, start: bytes) -> None:
        if not start:
            raise TraceFormatError(
                f"{self.path}: {self.problem or 'empty file (0 bytes)'}; record or copy the trace again"
            )
        for signature, what, cure in _UNREADABLE:
            if start.startswith(signature):
                raise TraceFormatError(f"{self.path}: {what}, not JSON; {cure}")

    def _from_disk(self, size: int) -> bytes:
        """Bytes of the file itself; after a read error none, and `problem` says so."""
        try:
            return self._file.read(size)
        except OSError as error:
            position = f"at byte {self._file.tell():,} of the file"
            self.problem = f"the disk gave an error {position} ({error.strerror}): the rest is missing"
            return b""

    def _plain(self, start: bytes) -> Iterator[bytes]:
        yield start
        while block := self._from_disk(PLAIN_BYTES):
            yield block

    def _unpacked(self, start: bytes) -> Iterator[bytes]:
        """Members of a gzip file, joined."""
        packed = start + self._from_disk(READ_BYTES)
        while packed := self._next_member(packed):
            unpacker = _library().decompressobj(_GZIP_WINDOW)
            while not unpacker.eof:
                try:
                    block = unpacker.decompress(packed)
                except _PackError as error:
                    position = f"before byte {self._file.tell():,} of the file"
                    self.problem = (
                        f"the gzip data is damaged {position} ({error}): events near there are missing or wrong"
                    )
                    return
                if block:
                    yield block
                packed = unpacker.unused_data if unpacker.eof else self._from_disk(READ_BYTES)
                if not packed and not unpacker.eof:
                    self.problem = (
                        self.problem
                        or f"the gzip data ends early, at byte {self._file.tell():,} of the file: the rest is missing"
                    )
                    return

    def _next_member(self, packed: bytes) -> bytes:
        """Packed bytes from the next member on, zero padding skipped; none where there is no further member."""
        packed = packed.lstrip(b"\0")
        while len(packed) < len(_GZIP) and (more := self._from_disk(READ_BYTES)):
            packed = (packed + more).lstrip(b"\0")
        if packed and not packed.startswith(_GZIP):
            self.problem = f"{len(packed):,} or more bytes of something else follow the gzip data: not read"
            return b""
        return packed


def _library() -> Any:  # noqa: ANN401 - one of two C modules with one interface
    """ISA-L where it is installed: it unpacks traces in half the time of zlib."""
    return importlib.import_module("isal.isal_zlib" if find_spec("isal") else "zlib")


_PackError: type[Exception] = _library().error
