"""`topology.json` beside the traces, as `shardscope collect topology` wrote it: hosts with links, places of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import msgspec

from analyzer.errors import TraceFormatError
from analyzer.model.topology import Process, Topology, farness
from analyzer.model.trace import Note, Trace

NAME = "topology.json"
SCHEMA = 1
DOWN = ("DOWN", "down", "INIT")
"""States of a NIC's port in which it carries nothing."""


class _Device(msgspec.Struct):
    name: str
    numa_node: int | None = None


class _Link(msgspec.Struct):
    first: str = msgspec.field(name="from")
    second: str = msgspec.field(name="to")
    kind: str = msgspec.field(name="type")


class _Nic(msgspec.Struct):
    name: str
    state: str = ""


class _NumaNode(msgspec.Struct):
    index: int
    cpus: str = ""


class _Process(msgspec.Struct):
    title: str = ""
    cpus: str = ""
    resident_bytes: dict[int, int] = {}
    environment: dict[str, str] = {}


class _Host(msgspec.Struct):
    devices: list[_Device] = []
    links: list[_Link] = []
    numa_nodes: list[_NumaNode] = []
    nics: list[_Nic] = []
    processes: dict[str, _Process] = {}


class _Place(msgspec.Struct):
    node: str
    device: int | None = None
    super_pod: str = ""


class _File(msgspec.Struct):
    schema: int = SCHEMA
    hosts: dict[str, _Host] = {}
    ranks: dict[str, _Place] = {}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A rank's host and device, as far as they are known."""

    rank: int
    host: _Host
    device: int | None


def read_topology(path: Path, traces: tuple[Trace, ...], known: Topology) -> tuple[Topology, tuple[Note, ...]]:
    """What the file adds to what is known of the places of ranks, and what is wrong with it.

    The first of these that places every trace's rank names the nodes: the file's own ranks, its processes, what was
    known before, and the file's host where it is the only one and has a device for every trace.

    Raises:
        TraceFormatError: no topology.json, or of another schema.
    """
    try:
        held = msgspec.json.decode(path.read_bytes(), type=_File)
    except msgspec.DecodeError as fault:
        raise TraceFormatError(f"{path}: {fault}; write it again with `shardscope collect topology --force`") from fault
    if held.schema != SCHEMA:
        raise TraceFormatError(f"{path}: schema {held.schema}, this version reads schema {SCHEMA}")
    processes = dict(_processes(held, traces))
    node_of, source = _nodes(held, traces, processes, known)
    if not node_of:
        return known, (Note(f"{NAME} does not say where the ranks run; give `collect topology` --pid RANK=PID"),)
    placed = list(_placed(held, traces, processes, node_of))
    strange = sorted({node for node in node_of.values() if node not in held.hosts})
    notes = (Note(f"{NAME} has no host {', '.join(strange)}: links there are unknown"),) if strange else ()
    by_node: dict[str, list[_Placed]] = {}
    for located in placed:
        by_node.setdefault(node_of[located.rank], []).append(located)
    topology = Topology(
        node_of,
        source,
        device_of={located.rank: located.device for located in placed if located.device is not None},
        domain_of={rank: entry.super_pod for rank, entry in _ranks(held).items() if entry.super_pod},
        links={pair: kind for places in by_node.values() for pair, kind in _links(places)},
        nics_of={located.rank: nics for located in placed if (nics := _nics(located))},
        numa_of={located.rank: numa for located in placed if (numa := _numa(located)) is not None},
        processes={rank: _process(held.hosts[host], process) for rank, (host, process) in processes.items()},
        cores_of={name: cores for name, host in held.hosts.items() if (cores := _cores(host))},
    )
    return topology, notes


def _ranks(held: _File) -> dict[int, _Place]:
    """Places by rank; those of server groups, which each count from 0, are not ranks of one job."""
    return {int(rank): entry for rank, entry in held.ranks.items() if rank.isdecimal()}


def _processes(held: _File, traces: tuple[Trace, ...]) -> Iterator[tuple[int, tuple[str, _Process]]]:
    """Host and process of each rank: by the number given, else by the title that only one trace and process share."""
    titles = Counter(title for trace in traces for title in trace.origin.processes)
    listed = Counter(process.title for host in held.hosts.values() for process in host.processes.values())
    rank_of = {title: trace.rank for trace in traces for title in trace.origin.processes if titles[title] == 1}
    for name, host in held.hosts.items():
        for key, process in host.processes.items():
            if key.isdecimal():
                yield int(key), (name, process)
            elif process.title in rank_of and listed[process.title] == 1:
                yield rank_of[process.title], (name, process)


def _nodes(
    held: _File, traces: tuple[Trace, ...], processes: Mapping[int, tuple[str, _Process]], known: Topology
) -> tuple[dict[int, str], str]:
    """Node of each rank, and how it came to be known."""
    needed = {trace.rank for trace in traces}
    numbers = [_number(trace) for trace in traces]
    only: dict[int, str] = {}
    if len(held.hosts) == 1 and None not in numbers and len(set(numbers)) == len(numbers):
        ((name, host),) = held.hosts.items()
        if all(_device_name(host, number) for number in numbers):
            only = dict.fromkeys(needed, name)
    for node_of, source in (
        ({rank: entry.node for rank, entry in _ranks(held).items()}, NAME),
        ({rank: host for rank, (host, _) in processes.items()}, NAME),
        (known.node_of, known.source),
        (only, NAME),
    ):
        if needed <= node_of.keys():
            return node_of, source
    return {}, "unknown"


def _placed(
    held: _File, traces: tuple[Trace, ...], processes: Mapping[int, tuple[str, _Process]], node_of: Mapping[int, str]
) -> Iterator[_Placed]:
    """Ranks and their hosts; no device where two ranks of a node would have the same."""
    numbers = {trace.rank: _number(trace) for trace in traces}
    for rank, (_, process) in processes.items():
        numbers[rank] = _visible(numbers.get(rank), process.environment)
    numbers |= {rank: entry.device for rank, entry in _ranks(held).items() if entry.device is not None}
    uses = Counter((node_of[rank], number) for rank, number in numbers.items() if rank in node_of)
    for rank, node in node_of.items():
        number = numbers.get(rank)
        yield _Placed(rank, held.hosts.get(node, _Host()), number if uses[node, number] == 1 else None)


def _number(trace: Trace) -> int | None:
    """The device that the trace's work ran on, as its process counts devices; None where there is not exactly one."""
    seen = set(trace.activities.process.tolist()) if trace.origin.device != "cpu" else set()
    return seen.pop() if len(seen) == 1 else None


def _visible(number: int | None, environment: Mapping[str, str]) -> int | None:
    """The host's number of a device that a process calls `number`; None where its list does not tell."""
    listed = environment.get("CUDA_VISIBLE_DEVICES") or environment.get("ASCEND_RT_VISIBLE_DEVICES")
    if number is None or not listed:
        return number
    names = listed.split(",")
    return int(names[number]) if number < len(names) and names[number].strip().isdecimal() else None


def _device_name(host: _Host, number: int | None) -> str:
    names = {device.name for device in host.devices} | {name for link in host.links for name in _ends(link)}
    return next((name for name in (f"GPU{number}", f"NPU{number}") if name in names), "")


def _ends(link: _Link) -> tuple[str, str]:
    return link.first, link.second


def _links(places: list[_Placed]) -> Iterator[tuple[tuple[int, int], str]]:
    """Link kinds between the ranks of one node."""
    kinds = {frozenset(_ends(link)): link.kind for link in places[0].host.links}
    for one, other in combinations(sorted(places, key=lambda located: located.rank), 2):
        pair = frozenset((_device_name(one.host, one.device), _device_name(other.host, other.device)))
        if pair in kinds:
            yield (one.rank, other.rank), kinds[pair]


def _nics(located: _Placed) -> tuple[str, ...]:
    """NICs nearest to a rank's device, those left out whose port is down."""
    device_name = _device_name(located.host, located.device)
    down = {nic.name for nic in located.host.nics if nic.state in DOWN}
    far: dict[str, int] = {}
    for link in located.host.links:
        others = [end for end in _ends(link) if end != device_name]
        if len(others) == 1 and not others[0].startswith(("GPU", "NPU")) and others[0] not in down:
            far[others[0]] = farness(link.kind)
    return tuple(sorted(name for name, distance in far.items() if distance == min(far.values())))


def _numa(located: _Placed) -> int | None:
    device_name = _device_name(located.host, located.device)
    return next((device.numa_node for device in located.host.devices if device.name == device_name), None)


def _cores(host: _Host) -> int:
    return len({core for node in host.numa_nodes for core in _range(node.cpus)})


def _process(host: _Host, process: _Process) -> Process:
    allowed = set(_range(process.cpus))
    nodes = tuple(sorted(node.index for node in host.numa_nodes if allowed & set(_range(node.cpus))))
    return Process(nodes, process.resident_bytes, process.environment)


def _range(text: str) -> Iterator[int]:
    """'0-3,8' → 0, 1, 2, 3, 8."""
    for span in filter(None, text.split(",")):
        first, _, last = span.partition("-")
        yield from range(int(first), int(last or first) + 1)
