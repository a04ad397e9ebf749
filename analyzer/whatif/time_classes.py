"""A step as classes of time, and what is known of how each class scales: the material of a what-if."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from analyzer.whatif.limits import Facts

FLOOR_NS = 3000.0
"""Time of a GEMM that no split takes away, where the class does not state its own: H100 and B200, bf16."""
FP8_FLOOR_NS = 5500.0
FP8_SPREAD = 0.20
"""Floor and spread for a class of fp8 GEMMs: single ones on H100 and B200 scatter by 0.11 to 0.23 at twice the degree,
and those of more than 64 tokens shrink 15 % less than the floor says."""
ATTENTION_FLOOR_NS = 10_000.0
"""Attention kernels shorter than this gain nothing from fewer heads."""

CUSTOM = "custom_all_reduce"
"""Operation of an engine's own all-reduce inside a node, which grows less with the ranks than NCCL's."""
Reference = Callable[[str, float, int], float]
"""(operation, message bytes, ranks) → nanoseconds of one call on one rung, waiting left out."""


class ScalingBehavior(str, Enum):
    """How a class of time changes with the degree, and so how unsure its extrapolation is."""

    GEMM = "gemm"
    EXPERTS = "experts"
    ATTENTION = "attention"
    REPLICATED = "replicated"
    COLLECTIVE = "collective"
    SETUP = "setup"
    WAIT = "wait"
    HOST = "host"
    MOVEMENT = "movement"
    UNKNOWN = "unknown"


SPREADS = {
    ScalingBehavior.GEMM: 0.10,
    ScalingBehavior.EXPERTS: 0.10,
    ScalingBehavior.ATTENTION: 0.15,
    ScalingBehavior.REPLICATED: 0.05,
    ScalingBehavior.COLLECTIVE: 0.20,
    ScalingBehavior.SETUP: 0.20,
    ScalingBehavior.WAIT: 0.30,
    ScalingBehavior.HOST: 0.10,
    ScalingBehavior.MOVEMENT: 0.30,
    ScalingBehavior.UNKNOWN: 0.10,
}
"""Spread of the logarithm of a class at twice or half the degree; it grows with the root of the doublings.

Single bf16 GEMMs on H100 and B200 scatter by 0.10 to 0.14 at twice and by 0.13 to 0.22 at four times the degree.
"""
NEW_RUNG_SPREAD = 0.40
"""The same for a collective that changes its rung, or that the run does not hold at all."""


@dataclass(frozen=True, slots=True)
class ClassTime:
    """One class of time in a step, exposed, so that the classes of a step sum to it.

    Attributes:
        name: as reports call it.
        sort: how it scales.
        time_ns: in one step, waiting left out of collectives.
        calls: kernels or collectives in one step.
        floor_ns: time of one call that no split takes away, None for the default of the sort.
        operation: of a collective (`all_reduce`, `custom_all_reduce`, …).
        message_bytes: of a collective, at this degree, None where unknown.
        sharded: whether moved state is divided by the degree; False where it is replicated.
        persistent: whether one rank is always the late one, so that more ranks wait no longer.
        imbalance: load of the fullest rank over the mean, of experts.
        spread: of the logarithm at twice the degree, None for that of the sort.
    """

    name: str
    sort: ScalingBehavior
    time_ns: float
    calls: float = 1.0
    floor_ns: float | None = None
    operation: str = "all_reduce"
    message_bytes: int | None = None
    sharded: bool = False
    persistent: bool = False
    imbalance: float = 1.0
    spread: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is anything to scale it by."""
        return not (
            self.sort is ScalingBehavior.UNKNOWN
            or (self.sort is ScalingBehavior.COLLECTIVE and self.message_bytes is None)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step of one run.

    Attributes:
        degree: of the split under study.
        classes: that sum to the step.
        reference: times of collectives on the rung that the group is on now, None where nothing is known of it.
        facts: what limits a split, as far as it is known.
    """

    degree: int
    classes: tuple[ClassTime, ...]
    reference: Reference | None = None
    facts: Facts = field(default_factory=Facts)

    @property
    def step_ns(self) -> float:
        """Length of the step."""
        return sum(class_time.time_ns for class_time in self.classes)
