"""Lines of a request log → columns, many at a time; lines that are no requests are counted, the first is named."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.model.events import ABSENT
from analyzer.routing.block_ids import hashed_tokens, hashed_words, wrapped_integers
from analyzer.stats.arrays import Integers

HASH_FIELDS = ("hash_ids", "block_hashes", "prefix_hashes")
TOKEN_FIELDS = ("prompt_token_ids", "token_ids")
_INPUT_FIELDS = ("input_length", "prompt_tokens", "input_tokens")
_OUTPUT_FIELDS = ("output_length", "completion_tokens", "output_tokens")
_CACHED_FIELDS = ("cached_tokens", "num_cached_tokens")
_SESSION_FIELDS = ("session_id", "user")
_WORKER_FIELDS = ("worker",)
_READ_BYTES = 1 << 23  # of file a turn: long enough for numpy, short enough for a progress bar
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's code for a gzip header and the largest window


_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class _Fields(msgspec.Struct, gc=False, kw_only=True):
    """What any request may say beside its blocks."""

    timestamp: _Whole | float | None = None
    arrival_time: _Whole | float | None = None
    input_length: _Count | None = None
    prompt_tokens: _Count | None = None
    input_tokens: _Count | None = None
    output_length: _Count | None = None
    completion_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    num_cached_tokens: _Count | None = None
    session_id: int | str | None = None
    user: int | str | None = None
    worker: int | str | None = None


@dataclass(frozen=True, slots=True)
class _Form:
    """Where the requests of one log keep their blocks.

    Attributes:
        name: the field, one of HASH_FIELDS or TOKEN_FIELDS.
        element: int or str.
        decoder: of one line.
    """

    name: str
    element: type
    decoder: msgspec.json.Decoder[Any]


@dataclass(slots=True)
class Rows:
    """Columns of n requests as they stand in the file, chunk by chunk, and what could not be read.

    Attributes:
        block_tokens: tokens of a block, for logs that hold token ids.
        form: field of the blocks, None until the first request is seen.
        lines: number of lines that are not blank.
        bad: number of those that are not requests.
        first_bad: line number and fault of the first of them; (0, "") where there is none.
        columns: int64 or float64 chunks of each column; `blocks` and `block_count` are ragged.
        words: `session` and `worker` of each request as text, "" where not given.
    """

    block_tokens: int
    form: _Form | None = None
    lines: int = 0
    bad: int = 0
    first_bad: tuple[int, str] = (0, "")
    columns: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=lambda: {"session": [], "worker": []})

    def add(self, data: bytes, first_line: int) -> None:
        """Read whole lines, the first of which has this number."""
        if self.form is None:
            self.form = _form(data)
        if self.form is None:
            self._each(data, first_line, _no_form)
            return
        try:
            rows = self.form.decoder.decode_lines(data)
            numbers = _line_numbers(data, first_line, len(rows))
        except msgspec.DecodeError:
            rows, numbers = self._each(data, first_line, self.form.decoder.decode)
        else:
            self.lines += len(rows)
        if rows:
            self._keep(rows, numbers)

    @property
    def form_name(self) -> str:
        """The field that holds the blocks, "" where no line is a request."""
        return "" if self.form is None else self.form.name

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column of all requests."""
        return np.concatenate(self.columns.get(name) or [np.zeros(0, np.int64)])

    def reject(self, line: int, fault: str, count: int) -> None:
        """Count lines that are not requests, `line` being the first of them."""
        if self.bad == 0 or line < self.first_bad[0]:
            self.first_bad = (line, fault)
        self.bad += count

    def _each(
        self, data: bytes, first_line: int, decode: Callable[[bytes], Any]
    ) -> tuple[list[Any], npt.NDArray[np.int64]]:
        rows, numbers = [], []
        for number, line in enumerate(data.splitlines(), first_line):
            if not line.strip():
                continue
            self.lines += 1
            try:
                rows.append(decode(line))
                numbers.append(number)
            except msgspec.DecodeError as error:
                self.reject(number, str(error), 1)
        return rows, np.array(numbers, np.int64)

    def _keep(self, rows: list[Any], numbers: npt.NDArray[np.int64]) -> None:
        blocks = list(map(attrgetter("blocks"), rows))
        chunk: dict[str, npt.NDArray[Any]] = {
            "line": numbers,
            "timestamp": _times(rows, "timestamp"),
            "arrival_time": _times(rows, "arrival_time"),
            "input": _integers(rows, _INPUT_FIELDS),
            "output": _integers(rows, _OUTPUT_FIELDS),
            "cached": _integers(rows, _CACHED_FIELDS),
        }
        if self.form_name in TOKEN_FIELDS:
            tokens = np.fromiter(map(len, blocks), np.int64, len(blocks))
            chunk["input"] = np.where(chunk["input"] == ABSENT, tokens, chunk["input"])
            blocks = [hashed_tokens(row, self.block_tokens) for row in blocks]
        flat = [block for row in blocks for block in row]
        chunk["block_count"] = np.fromiter(map(len, blocks), np.int64, len(blocks))
        chunk["blocks"] = hashed_words(flat) if flat and isinstance(flat[0], str) else wrapped_integers(flat)
        for name, values in chunk.items():
            self.columns.setdefault(name, []).append(values)
        self.words["session"].extend(_words(rows, _SESSION_FIELDS))
        self.words["worker"].extend(_words(rows, _WORKER_FIELDS))


def read_rows(path: Path, block_tokens: int, tick: Callable[[int], None]) -> tuple[Rows, str]:
    """All requests of a file, plain or gzip, and a word on how it ended: "" where it ended as it should.

    Args:
        path: JSON lines.
        block_tokens: tokens of a block, for logs that hold token ids.
        tick: told the bytes of file read so far.
    """
    rows = Rows(block_tokens)
    line = 1
    with path.open("rb") as stream:
        try:
            for data in _whole_lines(_bytes(stream)):
                rows.add(data, line)
                line += data.count(b"\n")
                tick(stream.tell())
        except (EOFError, zlib.error) as error:
            return rows, f"the gzip data ends early or is damaged after line {line - 1} ({error})"
    return rows, ""


def _bytes(stream: BinaryIO) -> Iterator[bytes]:
    magic = stream.read(len(_GZIP_MAGIC))
    stream.seek(0)
    if magic != _GZIP_MAGIC:
        while data := stream.read(_READ_BYTES):
            yield data
        return
    inflate = zlib.decompressobj(_GZIP_WINDOW)
    while packed := stream.read(_READ_BYTES // 8):
        while packed:
            yield inflate.decompress(packed)
            packed = inflate.unused_data
            if packed:
                inflate = zlib.decompressobj(_GZIP_WINDOW)
    if not inflate.eof:
        raise EOFError("end of file within a gzip member")


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
    if rest:
        yield rest


def _form(data: bytes) -> _Form | None:
    """The form of the first line that is a request with at least one block; of one with none, where all have none."""
    probe = msgspec.json.Decoder()
    name_and_type: tuple[str, type] | None = None
    for line in data.splitlines():
        try:
            row = probe.decode(line)
        except msgspec.DecodeError:
            continue
        name = next(
            (name for name in HASH_FIELDS + TOKEN_FIELDS if isinstance(row, dict) and row.get(name) is not None), ""
        )
        if name and isinstance(row[name], list):
            name_and_type = (name, str if row[name] and isinstance(row[name][0], str) else int)
            if row[name]:
                break
    if name_and_type is None:
        return None
    name, element = name_and_type
    columns = [("blocks", list[element], msgspec.field(name=name))]  # type: ignore[valid-type]
    row_type = msgspec.defstruct("Request", columns, bases=(_Fields,), kw_only=True, gc=False)
    return _Form(name, element, msgspec.json.Decoder(row_type))


def _no_form(line: bytes) -> Any:  # noqa: ANN401  # stands in for a decoder
    msgspec.json.decode(line)
    raise msgspec.ValidationError(f"none of {', '.join(HASH_FIELDS + TOKEN_FIELDS)} is in it")


def _line_numbers(data: bytes, first_line: int, count: int) -> npt.NDArray[np.int64]:
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if lines == count:
        return np.arange(first_line, first_line + count, dtype=np.int64)
    filled = [number for number, line in enumerate(data.splitlines(), first_line) if line.strip()]
    return np.array(filled, np.int64)


def _integers(rows: list[Any], names: tuple[str, ...]) -> Integers:
    """int64[n]: the first of the fields that a row has, ABSENT where it has none."""
    column = np.full(len(rows), ABSENT, np.int64)
    for name in names:
        values = list(map(attrgetter(name), rows))
        if values.count(None) < len(values):
            given = np.array([ABSENT if value is None else value for value in values], np.int64)
            column = np.where(column == ABSENT, given, column)
    return column


def _times(rows: list[Any], name: str) -> npt.NDArray[Any]:
    """int64[n] where all are whole, else float64[n] with NaN where a row has none."""
    values = list(map(attrgetter(name), rows))
    if values.count(None) == len(values):
        return np.full(len(values), np.nan)
    return np.array([np.nan if value is None else value for value in values])


def _words(rows: list[Any], names: tuple[str, ...]) -> list[str]:
    words = [""] * len(rows)
    for name in names:
        values = list(map(attrgetter(name), rows))
        if values.count(None) < len(values):
            words = [word or ("" if value is None else str(value)) for word, value in zip(words, values, strict=True)]
    return words
