"""What one witness says of one axis."""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.model.layout import Source
from analyzer.model.trace import Trace

RankGroups = tuple[tuple[int, ...], ...]

_VLLM_STEP = re.compile(r"^execute_(?:new|context|\d+_context)_\d+")


@dataclass(frozen=True, slots=True)
class Claim:
    """The size of an axis, by one witness.

    Attributes:
        axis: `tp`, `pp`, `dp`, `ep`, `cp` or `dcp`.
        size: degree.
        source: how sure the witness is.
        sentence: what it saw.
        groups: rank groups that it saw, () where it saw none.
        at_least: `size` is only what is needed to explain what was seen.
    """

    axis: str
    size: int
    source: Source
    sentence: str
    groups: RankGroups = ()
    at_least: bool = False


def engine_of(traces: tuple[Trace, ...]) -> str:
    """`vllm`, `sglang`, or "" where neither titles, versions, file names nor annotations tell."""
    for trace in traces:
        origin = trace.origin
        titles = " ".join(origin.processes).lower()
        for engine in ("sglang", "vllm"):
            if f"{engine}::" in titles or engine in origin.versions:
                return engine
        if "dcp" in origin.placement:
            return "vllm"
        for engine in ("sglang", "vllm"):
            if any(name.startswith(f"{engine}::") for name in trace.ops.name.values):
                return engine
        names = trace.annotations.name.values
        # Builds of SGLang write vLLM's form around their own.
        if any(name.startswith("step[") for name in names):
            return "sglang"
        if any(_VLLM_STEP.match(name) for name in names):
            return "vllm"
    return ""


def is_complete(traces: tuple[Trace, ...], world: int | None) -> bool:
    """Whether every rank of the world has a trace here."""
    return world is not None and len(traces) >= world
