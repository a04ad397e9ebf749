"""Points of a sweep: what was measured at one degree of one dimension."""

from __future__ import annotations

from dataclasses import dataclass, field

TERMS = ("compute", "communication", "movement", "sync")
VALUE = "value"
PACE = "time a token"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The collectives of a step.

    Attributes:
        calls: of one rank in one step, None where unknown.
        message_bytes: median message, None where unknown.
        level: the slowest rung that they cross, "" where unknown.
    """

    calls: float | None = None
    message_bytes: int | None = None
    level: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """How the KV memory was used while a point was measured; None where unknown.

    Attributes:
        preemptions: requests evicted for want of KV memory.
        kv_use: share of the KV memory in use, 0 to 1.
        hit_rate: share of prompt tokens found in the prefix cache, 0 to 1.
    """

    preemptions: float | None = None
    kv_use: float | None = None
    hit_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One degree, measured in one or more runs.

    Attributes:
        degree: ranks of the split under study; of layouts, the place in the source, from 1.
        values_ns: one positive value a run: the median steady step, or the time a token, as one run saw it.
        terms_ns: mean over runs of `compute`, `communication`, `movement`, `sync`; a term that is absent is unknown.
        steps: steady steps of the shortest run, None where the source does not say.
        step_error: relative standard error of a run's median from the spread of its steps, 0 where unknown.
        host_ns: time of the step in which the device waited for the host, None where unknown.
        exchange: the collectives of a step.
        memory: how the KV memory was used.
        name: of a layout, "" for a degree.
        gpus: that one instance takes, None where the degree is that number.
    """

    degree: int
    values_ns: tuple[float, ...]
    terms_ns: dict[str, float] = field(default_factory=dict)
    steps: int | None = None
    step_error: float = 0.0
    host_ns: float | None = None
    exchange: Exchange = field(default_factory=Exchange)
    memory: Memory = field(default_factory=Memory)
    name: str = ""
    gpus: int | None = None

    def __post_init__(self) -> None:
        if self.degree < 1 or not self.values_ns or min(self.values_ns) <= 0:
            raise ValueError(f"a point needs a degree of 1 or more and positive values, got {self}")

    @property
    def size(self) -> int:
        """GPUs that one instance takes."""
        return self.degree if self.gpus is None else self.gpus


@dataclass(frozen=True, slots=True)
class PointSeries:
    """One workload at several degrees, or in several layouts.

    Attributes:
        label: what sets this series apart from others of its source ("context 8192"), "" for the only one.
        points: ascending by degree, degrees unique.
        source: where it was read.
        quantity: what the values are.
        ordered: True for degrees, which can be past an optimum; False for layouts, whose order means nothing.
        notes: what a reader of the points must know.
        kv_heads: key-value heads of the model, None where unknown.
    """

    label: str
    points: tuple[Point, ...]
    source: str = ""
    quantity: str = VALUE
    ordered: bool = True
    notes: tuple[str, ...] = ()
    kv_heads: int | None = None

    def __post_init__(self) -> None:
        degrees = [point.degree for point in self.points]
        if degrees != sorted(set(degrees)):
            raise ValueError(f"degrees must be unique and ascending, got {degrees}")
