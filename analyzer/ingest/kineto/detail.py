"""How much of a trace is read. What nobody needs is left out by a deny-list: a category nobody knows is read."""

from __future__ import annotations

from enum import Enum

Key = tuple[str | None, str | None, object]
"""Phase, category and name of an event, as they stand in the file."""


class Detail(Enum):
    """How much of a trace is read.

    Attributes:
        BREAKDOWN: what the four terms need: device work, runtime and driver calls, annotations.
        DEVICE: the same, and the host operations that are not ATen's own, and ATen's that wait for the device.
        ALL: every host operation, and the window markers.
    """

    BREAKDOWN = "breakdown"
    DEVICE = "device"
    ALL = "all"


class Fate(Enum):
    """What becomes of an event."""

    SPAN = "span"
    DESCRIPTION = "description"
    LEFT_OUT = "left out"
    PAIR = "half of a begin/end pair"
    NO_EVENT = "no event"


HOST_OPERATIONS = ("cpu_op", "Operator")  # since 2022, before
ATEN = "aten::"
WAITING = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero")  # their end is that of a device-to-host copy
BULK = ("python_function", "cpu_instant_event")  # up to 90 % of a file recorded with stacks

COMPLETE, INSTANT, METADATA = "X", "i", "M"
FLOWS = ("s", "t", "f")
COUNTER = "C"
_PAIRS = frozenset("BEbe")
_MEMORY = "[memory]"  # allocator events carry no category before 2022


def fate(key: Key, detail: Detail) -> Fate:
    """What becomes of events with this phase, category and name."""
    phase, category, name = key
    if phase == COMPLETE:
        return Fate.SPAN if _is_wanted(category or "", str(name), detail) else Fate.LEFT_OUT
    if phase == METADATA:
        return Fate.DESCRIPTION
    if phase == INSTANT and detail is Detail.ALL and category not in BULK and name != _MEMORY:
        return Fate.SPAN
    if phase in _PAIRS:
        return Fate.PAIR
    return Fate.NO_EVENT if phase is None else Fate.LEFT_OUT


def _is_wanted(category: str, name: str, detail: Detail) -> bool:
    if category in BULK:
        return False
    if category not in HOST_OPERATIONS or detail is Detail.ALL:
        return True
    return detail is Detail.DEVICE and (not name.startswith(ATEN) or name in WAITING)
