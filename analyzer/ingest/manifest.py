"""`run.json` beside the traces: what a collector, or a person, knows of a run and its traces do not say.

Every key may be absent; keys that are not listed here are ignored.

    {"schema": 1, "engine": "vllm", "role": "decode", "roles": {"0": "prefill", "1": "decode"},
     "workload": {"work": "serving", "engine": "vllm", "phase": "decode", "cores": 64},
     "layout": {"tp": 2}, "groups": {"tp": [[0, 1]]}, "topology": {"nodes": {"0": "host-a", "1": "host-a"}},
     "model": {"hidden_size": 4096, …}, "versions": {…}, "settings": {…}, "reference": {…},
     "memory": {"preemptions": 0, "kv_use": 0.85}, "prefix_cache": {"queried_tokens": 900, "cached_tokens": 400},
     "expert_tokens": [1200, 900, …],
     "kv_transfers": {"transfers": 4, "bytes": …, "time_ns": …}, "transfers": [{"round": 0, "from": 0, "to": 1, …}, …],
     "metrics": {"change": {"vllm:prefix_cache_hits_total": 48.0, …}}}
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from analyzer.errors import TraceFormatError
from analyzer.ingest.handover import handover
from analyzer.model.layout import AXES, Layout, Source
from analyzer.model.topology import Topology
from analyzer.model.workload import Workload

NAME = "run.json"
SCHEMA = 1

Plain = int | float | str
_Facts = dict[str, Plain | bool | list[object] | dict[str, object] | None]


class _Topology(msgspec.Struct):
    nodes: dict[str, str] = {}


class _Metrics(msgspec.Struct):
    change: dict[str, float] = {}


class _Sort(msgspec.Struct):
    work: str = ""
    engine: str = ""
    phase: str = ""
    cores: int | None = None


class _File(msgspec.Struct):
    schema: int = SCHEMA
    complete: bool = True
    engine: str = "unknown"
    workload: _Sort | str = ""
    role: str = ""
    roles: dict[str, str] = {}
    layout: dict[str, int] = {}
    groups: dict[str, list[list[int]]] = {}
    topology: _Topology = msgspec.field(default_factory=_Topology)
    model: _Facts = {}
    versions: _Facts = {}
    settings: _Facts = {}
    reference: _Facts = {}
    memory: _Facts = {}
    prefix_cache: _Facts = {}
    expert_tokens: list[int] = []
    metrics: _Metrics = msgspec.field(default_factory=_Metrics)
    kv_transfers: _Facts = {}
    transfers: list[_Facts] = []


class Manifest(msgspec.Struct, frozen=True):
    """What `run.json` declares.

    Attributes:
        layout: None where it declares no axis.
        topology: source `declared` where it places ranks.
        workload: engine, role, model, versions, settings, reference, counters.
        complete: False where the collector was broken off.
    """

    layout: Layout | None
    topology: Topology
    workload: Workload
    complete: bool


def read_manifest(path: Path) -> Manifest:
    """What the file declares.

    Raises:
        TraceFormatError: no JSON, a value of another type, an axis or rank that does not exist, another schema.
    """
    try:
        held = msgspec.json.decode(path.read_bytes(), type=_File)
        handed = handover(held.kv_transfers, held.transfers, held.metrics.change, held.settings)
    except msgspec.DecodeError as fault:
        raise TraceFormatError(f"{path}: {fault}; correct the file or remove it, nothing in it is required") from fault
    if held.schema != SCHEMA:
        raise TraceFormatError(f"{path}: schema {held.schema}, this version reads schema {SCHEMA}")
    strange = sorted({*held.layout, *held.groups} - {*AXES, "world_size"})
    if strange:
        raise TraceFormatError(f"{path}: no such axis: {', '.join(strange)}; the axes are {', '.join(AXES)}")
    nodes = {_rank(rank, path): node for rank, node in held.topology.nodes.items()}
    return Manifest(
        _layout(held, path),
        Topology(nodes, source="declared") if nodes else Topology(),
        Workload(
            held.engine,
            held.role,
            _plain(held.model),
            {key: str(value) for key, value in held.versions.items()},
            _plain(held.settings),
            _numbers(held.reference),
            {_rank(rank, path): role for rank, role in held.roles.items()},
            _numbers(held.memory) | _numbers(held.prefix_cache),
            tuple(held.expert_tokens),
            held.metrics.change,
            handover=handed,
            declared=_declared(held),
            cores=held.workload.cores if isinstance(held.workload, _Sort) else None,
        ),
        held.complete,
    )


def _declared(held: _File) -> dict[str, str]:
    """What sort of run it is; before there was an object for it, `workload` was the name of a collector's workload."""
    sort = held.workload if isinstance(held.workload, _Sort) else _Sort()
    engine = sort.engine or (held.engine if held.engine != "unknown" else "")
    stated = {"work": sort.work, "engine": engine, "phase": sort.phase, "role": held.role}
    return {fact: value for fact, value in stated.items() if value}


def _layout(held: _File, path: Path) -> Layout | None:
    sizes = {axis: held.layout[axis] for axis in AXES if axis in held.layout}
    if any(size < 1 for size in held.layout.values()):
        raise TraceFormatError(f'{path}: a degree below 1 in "layout"; degrees are numbers of ranks')
    if not sizes and not held.groups:
        return None
    groups = {axis: tuple(tuple(sorted(ranks)) for ranks in held.groups[axis]) for axis in held.groups}
    evidence = {axis: f"run.json declares {axis} {size}" for axis, size in sizes.items()}
    return Layout(held.layout.get("world_size"), sizes, groups, Source.DECLARED, evidence)


def _plain(facts: _Facts) -> dict[str, Plain]:
    """Numbers and strings; switches as 0 and 1; nested values are left out."""
    plain: dict[str, Plain] = {}
    for key, value in facts.items():
        if isinstance(value, bool):
            plain[key] = int(value)
        elif isinstance(value, (int, float, str)):
            plain[key] = value
    return plain


def _numbers(facts: _Facts) -> dict[str, int | float]:
    return {key: value for key, value in _plain(facts).items() if not isinstance(value, str)}


def _rank(text: str, path: Path) -> int:
    if not text.isdecimal():
        raise TraceFormatError(f'{path}: {text!r} is no rank; ranks are the keys, as in {{"0": …}}')
    return int(text)
