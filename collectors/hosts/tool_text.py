"""Text of vendors' tools → devices and links: nvidia-smi, rocm-smi, amd-smi, npu-smi, Ascend rank tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from analyzer.errors import TraceFormatError
from collectors.hosts.fabric import Device, Fabric, FabricLink, Placement, bus_id

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_NVIDIA_DEVICE = re.compile(r"(?:GPU|NIC)\d+$")
_NVIDIA_NIC_NAME = re.compile(r"^\s*(?P<nic>NIC\d+):\s*(?P<name>\S+)\s*$", re.MULTILINE)
_NPU_DEVICE = re.compile(r"(?:NPU|Phy-ID\s?)\d+$")
_ROCM_BANNER = re.compile(r"^=+\s*(?P<title>[^=]*?)\s*=+$")
_ROCM_NUMA = re.compile(r"^GPU\s?\[?(?P<gpu>\d+)\]?\s*:\s*\(Topology\) Numa Node:\s*(?P<node>\d+)", re.MULTILINE)
_AMD_TABLE = re.compile(r"^(?P<title>[A-Z][A-Z -]+) TABLE:$")
_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$")
_UNKNOWN_CELLS = frozenset({"X", "0", "SELF", "NA", "N/A", ""})


def nvidia_smi(text: str) -> Fabric:
    """GPUs, NICs and links from `nvidia-smi topo -m`.

    NICs are called by their own names (`mlx5_0`) where the legend gives them.

    Raises:
        TraceFormatError: there is no matrix in the text.
    """
    devices, links = _square(_ANSI.sub("", text), _NVIDIA_DEVICE, "nvidia-smi topo -m")
    nic_names = {match["nic"]: match["name"] for match in _NVIDIA_NIC_NAME.finditer(text)}
    return Fabric(devices, links).renamed(nic_names)


def npu_smi(text: str) -> Fabric:
    """NPUs and links from `npu-smi info -t topo`; devices are called `NPU0`, … also where it prints `Phy-ID0`.

    Raises:
        TraceFormatError: there is no matrix in the text.
    """
    devices, links = _square(_ANSI.sub("", text), _NPU_DEVICE, "npu-smi info -t topo")
    return Fabric(devices, links).renamed({device.name: re.sub(r"\D+", "NPU", device.name) for device in devices})


def _square(text: str, device: re.Pattern[str], tool: str) -> tuple[tuple[Device, ...], tuple[FabricLink, ...]]:
    """Devices and links of a matrix whose rows and columns bear the same names.

    Columns are separated by tabs, or by spaces once the text has been pasted; a row of a NIC has no affinities.
    """
    lines = text.splitlines()
    columns: list[str] = []
    rows: dict[str, list[str]] = {}
    for line in lines:
        words = re.sub(r"Phy-ID (?=\d)", "Phy-ID", line).split()
        named = [word for word in words if device.match(word)]
        if not columns and named and words[: len(named)] == named:
            columns = named
        elif columns and words and words[0] in columns:
            rows[words[0]] = words[1:]
        elif rows:
            break
    if not rows:
        raise TraceFormatError(f"no matrix of devices in {len(lines)} lines; expected the output of `{tool}`")
    if short := [name for name, cells in rows.items() if len(cells) < len(columns)]:
        raise TraceFormatError(
            f"the row of {short[0]} has fewer cells than the {len(columns)} devices of the header; "
            f"save the whole output of `{tool}` to a file and pass that"
        )
    devices = tuple(_with_affinity(name, rows[name][len(columns) :]) for name in columns if name in rows)
    return devices, tuple(_upper(columns, rows))


def _with_affinity(name: str, cells: Sequence[str]) -> Device:
    """The device with what follows its links: CPU affinity, then NUMA node, then more that is not kept."""
    known = [cell if _RANGES.match(cell) else "" for cell in cells] + ["", ""]
    return Device(name, cpus=known[0], numa_node=int(known[1]) if known[1].isdigit() else None)


def _upper(columns: Sequence[str], rows: dict[str, list[str]]) -> Iterable[FabricLink]:
    for index, first in enumerate(columns):
        for beyond, second in enumerate(columns[index + 1 :], index + 1):
            if first in rows and rows[first][beyond] not in _UNKNOWN_CELLS:
                yield FabricLink((first, second), rows[first][beyond])


def rocm_smi(text: str) -> Fabric:
    """GPUs, links with weights and hops, NUMA nodes from `rocm-smi --showtopo` (or `--showtopotype`).

    Raises:
        TraceFormatError: the table of link types is not in the text.
    """
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in text.splitlines():
        if banner := _ROCM_BANNER.match(line.strip()):
            title = banner["title"]
        sections.setdefault(title, []).append(line)
    kinds = _table(sections.get("Link Type between two GPUs", []))
    if not kinds:
        raise TraceFormatError(
            f"no table 'Link Type between two GPUs' in {len(text.splitlines())} lines; "
            "expected the output of `rocm-smi --showtopo`"
        )
    nodes = {f"GPU{match['gpu']}": int(match["node"]) for match in _ROCM_NUMA.finditer(text)}
    devices = tuple(Device(name, numa_node=nodes.get(name)) for name in dict.fromkeys(first for first, _ in kinds))
    weights = _table(sections.get("Weight between two GPUs", []))
    hops = _table(sections.get("Hops between two GPUs", []))
    return Fabric(devices, tuple(_weighted(kinds, weights, hops)))


def amd_smi(text: str) -> Fabric:
    """GPUs (by PCI address and number) and links with weights and hops from `amd-smi topology`.

    Raises:
        TraceFormatError: the table of link types is not in the text.
    """
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in text.splitlines():
        if heading := _AMD_TABLE.match(line.strip()):
            title = heading["title"]
        sections.setdefault(title, []).append(line)
    kinds = _table(sections.get("LINK TYPE", []))
    if not kinds:
        raise TraceFormatError(
            f"no 'LINK TYPE TABLE' in {len(text.splitlines())} lines; expected the output of `amd-smi topology`"
        )
    addresses = list(dict.fromkeys(first for first, _ in kinds))
    names = {address: f"GPU{index}" for index, address in enumerate(addresses)}
    links = tuple(_weighted(kinds, _table(sections.get("WEIGHT", [])), _table(sections.get("HOPS", []))))
    devices = tuple(Device(address, bus_id=bus_id(address)) for address in addresses)
    return Fabric(devices, links).renamed(names)


def _table(lines: Sequence[str]) -> dict[tuple[str, str], str]:
    """Cells by (row, column) of a table whose rows are named as its columns are."""
    columns: list[str] = []
    cells: dict[tuple[str, str], str] = {}
    for line in lines:
        words = line.split()
        if not columns and words and all(_NVIDIA_DEVICE.match(word) or _BUS_ID.fullmatch(word) for word in words):
            columns = words
        elif columns and words and words[0] in columns and len(words) == len(columns) + 1:
            cells.update({(words[0], column): cell for column, cell in zip(columns, words[1:], strict=True)})
    return cells


def _weighted(
    kinds: dict[tuple[str, str], str], weights: dict[tuple[str, str], str], hops: dict[tuple[str, str], str]
) -> Iterable[FabricLink]:
    seen: set[tuple[str, str]] = set()
    for pair, kind in kinds.items():
        if kind in _UNKNOWN_CELLS or pair[::-1] in seen:
            continue
        seen.add(pair)
        yield FabricLink(pair, kind, weight=_number(weights.get(pair, "")), hops=_number(hops.get(pair, "")))


def _number(cell: str) -> int | None:
    return int(cell) if cell.isdigit() else None


def rank_table(text: str) -> tuple[Placement, ...]:
    """Placements by rank from an Ascend rank table (`hccl.json`), versions 1.0 and 1.2, also with server groups.

    Raises:
        TraceFormatError: not a rank table, or one that is still being written.
    """
    try:
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceFormatError(f"not a rank table: {error}") from error
    if not isinstance(table, dict) or not {"server_list", "server_group_list"} & table.keys():
        raise TraceFormatError("not a rank table: neither 'server_list' nor 'server_group_list' at the top")
    if table.get("status", "completed") != "completed":
        raise TraceFormatError(f"the rank table's status is '{table['status']}'; wait until it is 'completed'")
    tables = [table, *table.get("server_group_list", [])]
    pods = {
        server["server_id"]: str(pod["super_pod_id"])
        for group in tables
        for pod in group.get("super_pod_list", [])
        for server in pod["server_list"]
    }
    return tuple(
        sorted(
            (
                Placement(
                    rank=int(device["rank_id"]),
                    node=server["server_id"],
                    device=int(device["device_id"]),
                    address=device.get("device_ip", ""),
                    super_pod=pods.get(server["server_id"], ""),
                    group=str(group.get("group_id", "")),
                )
                for group in tables
                for server in group.get("server_list", [])
                for device in server.get("device", [])
                if "rank_id" in device
            ),
            key=lambda placement: (placement.group, placement.rank),
        )
    )
