"""Parallel axes: their sizes and rank groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

AXES = ("tp", "pp", "dp", "ep", "cp", "dcp")
EXCHANGES = ("dispatch", "combine", "all_to_all")

CONTRADICTION = "layout contradiction:"
"""Begin of every note on witnesses that disagree."""


class Source(str, Enum):
    """How a layout came to be known, surest first."""

    DECLARED = "declared"
    METADATA = "metadata"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the ranks of a run share the work.

    Attributes:
        world_size: ranks of the job, None where unknown; may exceed the number of traces.
        sizes: degree of each axis that is known. An axis that is absent is unknown, one of size 1 is not used.
        groups: rank groups of each axis, where known.
        source: of the whole; the weakest source of any axis.
        evidence: for each axis, the sentence that says how it came to be known.
    """

    world_size: int | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    source: Source = Source.UNKNOWN
    evidence: dict[str, str] = field(default_factory=dict)

    def axis_of(self, ranks: tuple[int, ...], operation: str = "") -> str | None:
        """The axis that has exactly this rank group; None where none has, or several and no operation decides.

        Experts and data-parallel replicas often share their ranks: an exchange between all is then the experts'.
        """
        members = tuple(sorted(ranks))
        axes = [axis for axis, groups in self.groups.items() if members in groups]
        if len(axes) > 1 and operation in EXCHANGES and "ep" in axes:
            return "ep"
        return axes[0] if len(axes) == 1 else None
