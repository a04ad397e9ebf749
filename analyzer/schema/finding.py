"""What a rule says of a run: how bad and how sure are two fields."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from analyzer.schema.advice import Suggestion


class Severity(str, Enum):
    """How bad."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Basis(str, Enum):
    """How sure: read off the trace, computed from readings, or from a model of the hardware."""

    MEASURED = "measured"
    DERIVED = "derived"
    MODEL = "model"


class Locality(str, Enum):
    """The form of locality that was lost."""

    SPATIAL = "spatial"
    TEMPORAL = "temporal"
    DEVICE = "device"
    NUMA = "numa"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where to look.

    Attributes:
        ranks: at least one.
        spans_ns: (start, end) of the worst places, absolute, at most a handful.
        names: kernels, calls or settings concerned.
    """

    ranks: tuple[int, ...]
    spans_ns: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.ranks:
            raise ValueError("evidence names at least one rank")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's verdict on one run.

    Attributes:
        message: one sentence with its figures.
        severity: how bad.
        basis: how sure.
        evidence: where to look.
        advice: what to do, in terms of real settings and with the conditions under which; the first is the one to try
            first. One at least holds in every run.
        cost_ns: time that at most could be recovered, in the rank's whole window; None where it cannot be told.
        cost_share: the same as a share of that window, 0 to 1.
        locality: the form of locality lost, None where the finding is not about one.
    """

    message: str
    severity: Severity
    basis: Basis
    evidence: Evidence
    advice: tuple[Suggestion, ...]
    cost_ns: int | None = None
    cost_share: float | None = None
    locality: Locality | None = None
