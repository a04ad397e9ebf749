"""Pipeline stages: the cycle, the balance, the bubble, and the speed-up that is left."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.units import duration, share


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a row of stages makes of its ranks.

    Attributes:
        stages_ns: time of one micro-batch in each stage, p of them.
        micro_batches: that pass between two flushes, None where the pipeline never drains.
        cycle_ns: of the slowest stage: one micro-batch leaves a cycle.
        slowest: index of that stage.
        balance: mean stage over slowest stage, 0 to 1.
        speedup: over one rank that does all stages, in the steady state; at most p.
        bubble_share: of the ranks' time, lost while the pipeline fills and drains.
        imbalance_share: of the ranks' time, lost in waiting for the slowest stage.
    """

    stages_ns: tuple[float, ...]
    micro_batches: int | None
    cycle_ns: float
    slowest: int
    balance: float
    speedup: float
    bubble_share: float
    imbalance_share: float

    @property
    def sentence(self) -> str:
        """The larger loss first; 'not the bubble' where it is the smaller one."""
        count = len(self.stages_ns)
        gain = f"{self.speedup:.2f}x from {count} stages"
        slow = (
            f"stage {self.slowest} takes {duration(self.cycle_ns)}, the mean {duration(self.balance * self.cycle_ns)}"
        )
        if self.bubble_share > self.imbalance_share:
            batches = self.micro_batches
            return f"{gain}: the bubble takes {share(self.bubble_share)} with {batches} micro-batches; {slow}"
        lost = f"not the bubble ({share(self.bubble_share)}) but the slowest stage ({share(self.imbalance_share)})"
        return f"{gain}: {lost}: {slow}"


def pipeline(stages_ns: tuple[float, ...], micro_batches: int | None = None) -> Pipeline:
    """The account of a pipeline from the times of its stages.

    With m micro-batches between two flushes a pass takes Σ stages + (m - 1) × cycle; with equal stages the bubble is
    (p - 1)/(m + p - 1).

    Args:
        stages_ns: positive, in order; transfers to the next stage belong to the stage that waits for them.
        micro_batches: that pass between two flushes, None for serving without any.

    Raises:
        ValueError: no stage, or one without time.
    """
    if not stages_ns or min(stages_ns) <= 0:
        raise ValueError(f"stages take time, got {stages_ns}")
    whole_ns, cycle_ns = sum(stages_ns), max(stages_ns)
    balance = whole_ns / len(stages_ns) / cycle_ns
    filled = 1.0 if micro_batches is None else micro_batches * cycle_ns / (whole_ns + (micro_batches - 1) * cycle_ns)
    return Pipeline(
        stages_ns=stages_ns,
        micro_batches=micro_batches,
        cycle_ns=cycle_ns,
        slowest=stages_ns.index(cycle_ns),
        balance=balance,
        speedup=whole_ns / cycle_ns,
        bubble_share=1 - filled,
        imbalance_share=filled * (1 - balance),
    )
