"""Engine instances: which traces of a run share one numbering of ranks.

Two engines of a data-parallel deployment name their process groups alike and count their ranks from 0 each. Whatever a
trace says of groups and ranks holds within its own engine only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from analyzer.model.run import Run
from analyzer.model.trace import Trace

_REPLICA = re.compile(r"(?:^|[^A-Za-z])DP(\d+)")
"""In process titles: `VLLM::Worker_DP1_TP0`, `sglang::scheduler_DP0_TP1`."""


@dataclass(frozen=True, slots=True)
class EngineInstance:
    """The traces of one engine instance.

    Attributes:
        traces: positions in `run.traces`, ascending.
        numbers: the rank by which the instance itself calls each of them.
        size: ranks of the instance, None where not recorded.
        told_by: what tells it from the other instances, "" where it is the only one.
        certain: False where nothing but the times of collectives can tell who belongs to it.
    """

    traces: tuple[int, ...]
    numbers: tuple[int, ...]
    size: int | None
    told_by: str
    certain: bool = True

    @property
    def absent(self) -> tuple[int, ...]:
        """Ranks of the instance, by its own numbers, whose traces are not in the run."""
        return tuple(sorted(set(range(self.size or 0)) - set(self.numbers)))


def engine_instances(run: Run) -> tuple[EngineInstance, ...]:
    """Every trace in exactly one instance."""
    by_size: dict[int | None, list[int]] = {}
    for trace_index, trace in enumerate(run.traces):
        by_size.setdefault(_size(run, trace), []).append(trace_index)
    instances = [instance for size, members in by_size.items() for instance in _instances(run, members, size)]
    return tuple(sorted(instances, key=lambda instance: instance.traces))


def _size(run: Run, trace: Trace) -> int | None:
    return trace.origin.world_size if trace.origin.recorded_rank is not None else run.layout.world_size


def _number(trace: Trace) -> int:
    recorded = trace.origin.recorded_rank
    return trace.rank if recorded is None else recorded


def _replica(trace: Trace) -> str:
    """Data-parallel coordinate as the file name or the process title states it."""
    if "dp" in trace.origin.placement:
        return str(trace.origin.placement["dp"])
    hit = next((hit for title in trace.origin.processes if (hit := _REPLICA.search(title))), None)
    return hit.group(1) if hit else ""


_TELLS: tuple[tuple[str, Callable[[Trace], str]], ...] = (
    ("data-parallel replica", _replica),
    ("host", lambda trace: trace.origin.host),
    ("folder", lambda trace: str(PurePath(trace.origin.path).parent)),
    (
        "host and folder",
        lambda trace: f"{trace.origin.host} {PurePath(trace.origin.path).parent}",
    ),
)
"""What may tell instances apart, surest first."""


def _instances(run: Run, members: list[int], size: int | None) -> list[EngineInstance]:
    """Split traces of equal world size so that no rank number occurs twice in an instance."""
    numbers = [_number(run.traces[trace_index]) for trace_index in members]
    if size == 1:
        return [
            EngineInstance((trace_index,), (number,), size, "world size 1")
            for trace_index, number in zip(members, numbers, strict=True)
        ]
    if len(set(numbers)) == len(numbers) and not _own_numbering(run, members):
        return [EngineInstance(tuple(members), tuple(numbers), size, "")]
    for told_by, tell in _TELLS:
        by_origin: dict[str, list[int]] = {}
        for trace_index in members:
            by_origin.setdefault(tell(run.traces[trace_index]), []).append(trace_index)
        if len(by_origin) > 1 and all(_is_unique(run, traces) for traces in by_origin.values()):
            return [_instance(run, traces, size, told_by) for traces in by_origin.values()]
    return [EngineInstance(tuple(members), tuple(numbers), size, "times of collectives", certain=False)]


def _own_numbering(run: Run, members: list[int]) -> bool:
    """Whether replicas count their ranks from 0 each, though no number occurs twice because traces are absent.

    A number that counts over replicas exceeds the tensor-parallel coordinate on every replica but the first.
    """
    placed = [
        run.traces[trace_index]
        for trace_index in members
        if {"dp", "tp"} <= set(run.traces[trace_index].origin.placement)
    ]
    replicas = {trace.origin.placement["dp"] for trace in placed}
    return len(replicas) > 1 and all(
        trace.origin.recorded_rank == trace.origin.placement["tp"]
        for trace in placed
        if trace.origin.placement["dp"] > 0 and trace.origin.placement.get("pp", 0) == 0
    )


def _is_unique(run: Run, traces: list[int]) -> bool:
    return max(Counter(_number(run.traces[trace_index]) for trace_index in traces).values()) == 1


def _instance(run: Run, traces: list[int], size: int | None, told_by: str) -> EngineInstance:
    return EngineInstance(
        tuple(traces), tuple(_number(run.traces[trace_index]) for trace_index in traces), size, told_by
    )
