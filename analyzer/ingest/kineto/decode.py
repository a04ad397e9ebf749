"""What is read of an event, typed, so that a JSON reader makes nothing else of it."""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec
import numpy as np
from msgspec import Raw, Struct, field

MISSING = int(np.iinfo(np.int64).min)
"""An integer that is not in the file. Not None: a column of integers alone is converted in one go."""

NO_TIME = float("nan")
"""A time that is not in the file; JSON itself has no such number."""

NO_TEXT = Raw(b"")

WHOLE_NS_BELOW = 2**43  # µs, 101 days: up to here a double holds whole nanoseconds
_FRACTION = re.compile(rb'"ts"\s*:\s*(\d{13,})(?:\.\d|[eE])')

Integer = int | float | str | None
Word = str | int | None


class Arguments(Struct, gc=False):
    """The arguments that are kept. The default says the kind: integer, text, or text of a nested value."""

    stream: Integer = MISSING
    device: Integer = MISSING
    correlation: Integer = MISSING
    correlation_id: Integer = MISSING
    connection_id: Integer = MISSING
    external_id: Integer = field(default=MISSING, name="External id")
    external_id_2021: Integer = field(default=MISSING, name="external id")
    bytes: Integer = MISSING
    size: Integer = MISSING
    size_byte: Integer = field(default=MISSING, name="size(Byte)")
    in_elements: Integer = field(default=MISSING, name="In msg nelems")
    out_elements: Integer = field(default=MISSING, name="Out msg nelems")
    group_size: Integer = field(default=MISSING, name="Group size")
    sequence: Integer = field(default=MISSING, name="Seq")
    rank: Integer = field(default=MISSING, name="Rank")
    source_rank: Integer = field(default=MISSING, name="Src Rank")
    target_rank: Integer = field(default=MISSING, name="Dst Rank")
    graph_node: Integer = field(default=MISSING, name="graph node id")
    wait_on_stream: Integer = MISSING
    collective: Word = field(default=None, name="Collective name")
    dtype: Word = None
    group: Word = field(default=None, name="Process Group Name")
    group_2024: Word = field(default=None, name="Process Group ID")
    group_description: Word = field(default=None, name="Process Group Description")
    group_ranks: str | list[int | str] | None = field(default=None, name="Process Group Ranks")
    in_split: str | list[int] | None = field(default=None, name="In split size")
    out_split: str | list[int] | None = field(default=None, name="Out split size")
    task_type: Word = field(default=None, name="Task Type")
    direction: Word = None
    input_dims: Raw = field(default=NO_TEXT, name="Input Dims")
    input_dims_2020: Raw = field(default=NO_TEXT, name="Input dims")
    input_type: Raw = field(default=NO_TEXT, name="Input type")
    concrete_inputs: Raw = field(default=NO_TEXT, name="Concrete Inputs")
    name: Word = None
    labels: Word = None


class Event(Struct, gc=False):
    """One event."""

    ph: str | None = None
    cat: str | None = None
    name: str | int | float | None = None
    pid: Integer = MISSING
    tid: Integer = MISSING
    ts: float | str | None = NO_TIME
    dur: float | str | None = NO_TIME
    args: Arguments | None = None


class ExactEvent(Event, gc=False):
    """One event of a file whose starts do not fit a double: nanoseconds since 1970 (written in early 2024)."""

    ts: Decimal | None = None  # type: ignore[assignment]


class _File(Struct, gc=False):
    events: list[Event] = field(default_factory=list, name="traceEvents")


class _Events(_File, gc=False, forbid_unknown_fields=True):
    pass


class _ExactFile(_File, gc=False):
    events: list[ExactEvent] = field(default_factory=list, name="traceEvents")  # type: ignore[assignment]


class _ExactEvents(_ExactFile, gc=False, forbid_unknown_fields=True):
    pass


class Decoder:
    """Reads documents strictly: what is no JSON, or not typed as it should be, gives None."""

    def __init__(self, start: bytes) -> None:
        """Choose how times are read.

        Args:
            start: text of the first events.
        """
        exact = any(int(match[1]) >= WHOLE_NS_BELOW for match in _FRACTION.finditer(start))
        self._events: msgspec.json.Decoder[_File] = msgspec.json.Decoder(_ExactEvents if exact else _Events)
        self._file: msgspec.json.Decoder[_File] = msgspec.json.Decoder(_ExactFile if exact else _File)
        self._event: msgspec.json.Decoder[Event] = msgspec.json.Decoder(ExactEvent if exact else Event)
        self._keys = msgspec.json.Decoder(dict[str, Raw])

    def events(self, document: bytes) -> list[Event] | None:
        """The events of a document that holds nothing else."""
        try:
            return self._events.decode(document).events
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def file(self, document: bytes) -> tuple[list[Event], dict[str, bytes]] | None:
        """The events of a document, and its other keys with the text of their values."""
        try:
            events = self._file.decode(document).events
            keys = self._keys.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return events, {key: bytes(value) for key, value in keys.items() if key != "traceEvents"}

    def event(self, text: bytes) -> Event | None:
        """One event."""
        try:
            return self._event.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
