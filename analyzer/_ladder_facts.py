"""What a report says of the distance ladder: bytes and time by rung."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LadderRow:
    """What moved over one rung.

    Attributes:
        level: rung.
        bytes: None where not recorded.
        time_ns: exclusive time of it, mean over ranks.
        basis: measured, derived or model.
    """

    level: str
    bytes: int | None
    time_ns: int
    basis: str
