"""What one run tells of its split: stages, load of experts, upper bounds. Part of the report's schema."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StageRow:
    """One row of pipeline stages in one kind of step.

    Attributes:
        ranks: in order of stages.
        kind: of step.
        stages_ns: median time of work of each stage in a step, hand-overs left out.
        cycle_ns: of the slowest stage.
        balance: mean stage over slowest stage, 0 to 1.
        speedup: over one rank that does all stages, in the steady state.
        bubble_share: of a step, in which the slowest stage does not work.
        imbalance_share: of a step, in which the mean stage waits for the slowest.
        sentence: the same in words.
        basis: measured, derived or model.
    """

    ranks: list[int]
    kind: str
    stages_ns: list[int]
    cycle_ns: int
    balance: float
    speedup: float
    bubble_share: float
    imbalance_share: float
    sentence: str
    basis: str


@dataclass(frozen=True, slots=True)
class ExpertRow:
    """The load of the experts of one group of ranks.

    Attributes:
        ranks: of the group.
        source: what was counted.
        imbalance: fullest rank over the mean.
        cause: balanced, noise or skew.
        lost_ns: by which the fullest rank exceeds the mean in a step, None where it cannot be told.
        exchange_ns: of dispatch and combine in a step, exclusive, mean over ranks.
        sentence: the same in words.
        advice: what to do.
        basis: measured, derived or model.
    """

    ranks: list[int]
    source: str
    imbalance: float
    cause: str
    lost_ns: int | None
    exchange_ns: int
    sentence: str
    advice: list[str]
    basis: str


@dataclass(frozen=True, slots=True)
class BoundRow:
    """An upper bound on what one change could save in one kind of step; never a promise.

    Attributes:
        kind: of step.
        name: what would be gone: waits, exposed copies, uneven experts, half the all-reduce latency.
        saved_ns: of the mean step, at most.
        step_ns: the mean step, from its start to the next one's.
        sentence: the same in words.
        basis: derived where measured time is left out, model where a figure of the hardware enters.
    """

    kind: str
    name: str
    saved_ns: int
    step_ns: int
    sentence: str
    basis: str


@dataclass(frozen=True, slots=True)
class ScalingFacts:
    """What one run tells of its split; what more or fewer ranks would do is `shardscope sweep`'s."""

    stages: list[StageRow] = field(default_factory=list)
    experts: list[ExpertRow] = field(default_factory=list)
    bounds: list[BoundRow] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """Every row in words, with its basis."""
        stages = [f"{row.sentence} ({row.basis})" for row in self.stages]
        experts = [f"{row.sentence} ({row.basis})" for row in self.experts]
        return stages + experts + [f"upper bound: {row.sentence} ({row.basis})" for row in self.bounds]
