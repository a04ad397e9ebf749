"""Axes that recorded process groups tell: by description where there is one, else by the order of their creation.

Engines create a group on the device and one on the host for every sub-group of an axis, axis after axis. The name of a
group is the number of groups before it, and `pg_count` counts those of all ranks. So the sizes of the groups that a
rank is in, and the numbers between them, tell the whole sequence.

Sources: vllm/distributed/parallel_state.py (`initialize_model_parallel`, tags 0.10 to 0.33);
sglang/srt/distributed/parallel_state.py; Megatron core/parallel_state.py; torch DeviceMesh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.ingest.layout.claims import Claim, engine_of
from analyzer.model.layout import Source
from analyzer.model.trace import ProcessGroup, Trace

_DESCRIBED = {
    "tp": "tp",
    "pp": "pp",
    "pp_broadcast": "pp",
    "dp": "dp",
    "ep": "ep",
    "moe_ep": "ep",
    "cp": "cp",
    "pcp": "cp",
    "attn_cp": "cp",
    "dcp": "dcp",
    "tensor_model_parallel_group": "tp",
    "pipeline_model_parallel_group": "pp",
    "data_parallel_group": "dp",
    "expert_model_parallel_group": "ep",
    "context_parallel_group": "cp",
}
"""Axis of a description, in lower case, without `:device`, `:cpu` and `mesh_`."""

_VLLM_ORDERS = (
    ("tp", "dcp", "cp", "pp", "dp", "ep", "eplb"),
    ("tp", "dcp", "cp", "pp", "dp", "ep"),
    ("tp", "dcp", "cp", "pp", "dp"),
    ("tp", "dcp", "pp", "dp", "ep"),
    ("tp", "pp", "dp", "ep"),
)
"""Axes after the world, by version: with expert balancing; 0.13, and experts from 0.23; dense from 0.23; 0.11; 0.10."""

_SGLANG_ORDER = ("tp", "pp")
"""Axes after the world where all others equal tp and are not created. Else tp is the first still."""


def described(traces: tuple[Trace, ...]) -> Iterator[Claim]:
    """Axes that descriptions of groups name."""
    seen: dict[str, dict[int, set[tuple[int, ...]]]] = {}
    words: dict[str, str] = {}
    for trace in traces:
        for group in trace.origin.groups:
            word = group.description.lower().partition(":")[0].removeprefix("mesh_")
            axis = _DESCRIBED.get(word)
            if axis is not None:
                words[axis] = group.description
                seen.setdefault(axis, {}).setdefault(group.size, set()).add(group.ranks)
    engine = engine_of(traces)
    for axis, by_size in seen.items():
        if len(by_size) != 1 or (axis == "ep" and engine == "vllm"):
            continue
        size, groups = next(iter(by_size.items()))
        sentence = f"process group {words[axis]!r} has {size} rank{'s' if size > 1 else ''}"
        yield Claim(axis, size, Source.METADATA, sentence, _members(groups, size))


def created(traces: tuple[Trace, ...]) -> Iterator[Claim]:
    """Axes that the order of creation tells, of vLLM and SGLang.

    vLLM makes its expert group whether or not experts are split, so one of several ranks says nothing about ep.
    """
    engine = engine_of(traces)
    sequences = [(trace, _sequence(trace)) for trace in traces]
    if engine not in {"vllm", "sglang"} or not sequences or any(sequence is None for _, sequence in sequences):
        return
    labelled = [_labelled(engine, trace, sequence or ()) for trace, sequence in sequences]
    count = traces[0].origin.group_count
    for axis in ("tp", "pp", "dp", "ep", "cp", "dcp"):
        groups = [labels.get(axis) for labels in labelled]
        sizes = {None if group is None else group.size for group in groups}
        size = next(iter(sizes))
        if len(sizes) != 1 or size is None or (axis == "ep" and size > 1):
            continue
        sentence = f"{axis} group of {size}, by the order in which {engine} creates its {count} process groups"
        members = {group.ranks for group in groups if group is not None}
        yield Claim(axis, size, Source.METADATA, sentence, _members(members, size))


def expert_group(traces: tuple[Trace, ...]) -> ProcessGroup | None:
    """The group over which experts are split where they are; None where none is recorded."""
    for trace in traces:
        for group in trace.origin.groups:
            if group.description.lower().partition(":")[0] in {"ep", "moe_ep"}:
                return group
        sequence = _sequence(trace)
        if sequence is not None and engine_of(traces) == "vllm":
            labels = _labelled("vllm", trace, sequence)
            if "ep" in labels:
                return labels["ep"]
    return None


def _sequence(trace: Trace) -> tuple[ProcessGroup, ...] | None:
    """This rank's group of each axis in order of creation, the world first; None where the names are no counters."""
    origin = trace.origin
    if origin.group_count is None or not origin.groups or not all(group.name.isdigit() for group in origin.groups):
        return None
    by_number = {int(group.name): group for group in origin.groups}
    world = max(group.size for group in origin.groups)
    sequence: list[ProcessGroup] = []
    next_number = 1
    while next_number < origin.group_count:
        group = _group_on_device(by_number, next_number, world)
        if group is None:
            return None
        sequence.append(group)
        next_number += 2 * (world // group.size)
    return tuple(sequence) if next_number == origin.group_count else None


def _group_on_device(by_number: dict[int, ProcessGroup], first: int, world: int) -> ProcessGroup | None:
    """The rank's group on the device among the sub-groups of the axis that starts at a number."""
    number = min((number for number in by_number if number >= first), default=None)
    if number is None:
        return None
    group, twin = by_number[number], by_number.get(number + 1)
    fits = twin is not None and twin.ranks == group.ranks and world % group.size == 0
    inside = number < first + 2 * (world // group.size) and (number - first) % 2 == 0
    return group if fits and inside else None


def _labelled(engine: str, trace: Trace, sequence: Sequence[ProcessGroup]) -> dict[str, ProcessGroup]:
    """Group of each axis; axes on which several orders that fit disagree are left out."""
    axes = sequence[1:]
    if engine == "sglang" and len(axes) != len(_SGLANG_ORDER):
        return {"tp": axes[0]} if axes else {}
    orders = _VLLM_ORDERS if engine == "vllm" else (_SGLANG_ORDER,)
    fitting = [dict(zip(order, axes, strict=True)) for order in orders if len(order) == len(axes)]
    world = max(group.size for group in trace.origin.groups)
    fitting = [labels for labels in fitting if _fits(labels, world)]
    if not fitting:
        return {}
    return {axis: group for axis, group in fitting[0].items() if all(other.get(axis) == group for other in fitting)}


def _fits(labels: dict[str, ProcessGroup], world: int) -> bool:
    size = {axis: group.size for axis, group in labels.items()}
    split = size.get("tp", 1) * size.get("cp", 1) * size.get("dp", 1)
    whole = split * size.get("pp", 1) == world
    inside = size.get("tp", 1) * size.get("cp", 1) % size.get("dcp", 1) == 0
    return whole and inside and size.get("ep", split) == split


def _members(groups: set[tuple[int, ...]], size: int) -> tuple[tuple[int, ...], ...]:
    """Rank groups that are fully recorded, of more than one rank."""
    return tuple(sorted(tuple(sorted(ranks)) for ranks in groups if len(ranks) == size > 1))
