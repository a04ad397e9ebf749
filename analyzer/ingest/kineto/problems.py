"""What can be wrong with a file, each with what follows from it. Counted while reading, printed with the report."""

from __future__ import annotations

from collections import Counter

from analyzer.model.trace import Note

BARE_LIST = "a bare list of events: rank, device and clock base are not stated in the file"
BYTE_ORDER_MARK = "byte order mark before the JSON, skipped"
DAMAGED_HEAD = "damaged JSON before the events: what the file says of rank, device and clock base may be lost"
DAMAGED_TAIL = "damaged JSON after the events: what the file says there (clock base, name, versions) may be lost"
TAIL_CUT = "the file ends in the keys behind its events: all events are there, clock base or name may be lost"
MORE_TEXT = "text behind the end of the JSON, not read: perhaps a second trace in the same file"
COMMA = "comma behind the last event, ignored"
ENDS_EARLY = "the file ends before its events do: sums cover the part that was written"
INCOMPLETE = "event cut off at the end of the file, left out"
REPAIRED = "event with broken JSON, repaired: its name may differ from the original by a few characters"
GLUED = "damaged text between two events, skipped"
ODD_TYPES = "event with an argument of an unknown type: that argument is left out"
LOST = "event too damaged to be read: its time is missing from every sum"
NO_PHASE = "object in the list that is no event (no phase), left out"
PAIRS = "begin/end event, which the PyTorch profiler never writes, left out: its time is in no sum"
NO_START = "complete event without a start, left out: its time is missing from every sum"
NO_DURATION = "complete event without a duration, left out: its time is missing from every sum"
ODD_START = "complete event whose start is no number or out of range, left out: its time is missing from every sum"
ODD_DURATION = (
    "complete event whose duration is no number or out of range, left out: its time is missing from every sum"
)
NEGATIVE = "complete event with a negative duration, left out: its time is missing from every sum"
FAR = (
    "event stamped an hour or more from all others (zero, another epoch or unit), left out: its time is missing from "
    "every sum"
)
ROUNDED = "start too large for a double with nanoseconds, rounded by up to 1 µs"
BASE_TWICE = "starts are absolute although the file states a clock base: the base was not added"
ODD_BASE = "the clock base is no number of nanoseconds: starts are compared within this file only"
NO_EVENTS = "no event at all: nothing was recorded"

Problems = Counter[str]
"""How often each was met."""


def notes(problems: Problems) -> tuple[Note, ...]:
    """One note a problem, in order of first appearance."""
    return tuple(Note(text, count) for text, count in problems.items() if count)
