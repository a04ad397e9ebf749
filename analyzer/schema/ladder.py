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
        basis: of the bytes: measured, or derived from the model's dimensions where no size is recorded.
        step_bytes: in one step, median over steps that moved any; None where bytes or steps are unknown.
        step_ns: exclusive time in one step, median over the same steps; None where steps are unknown.
    """

    level: str
    bytes: int | None
    time_ns: int
    basis: str
    step_bytes: int | None = None
    step_ns: int | None = None


@dataclass(frozen=True, slots=True)
class RankRung:
    """What one rank moved over one rung.

    Attributes:
        rank: whose it is.
        level: rung, as in the ladder.
        calls: copies and collectives.
        bytes: None where not recorded.
        time_ns: exclusive time, waiting for peers not included.
        basis: of the bytes.
        step_bytes: in one step, median over its steps that moved any.
        step_ns: exclusive time in one step, median over the same steps.
    """

    rank: int
    level: str
    calls: int
    bytes: int | None
    time_ns: int
    basis: str
    step_bytes: int | None
    step_ns: int | None
