"""Topology XML → devices and links: NCCL's dump (`NCCL_TOPO_DUMP_FILE`) and hwloc's (`lstopo --of xml`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from xml.etree import ElementTree as ET

from analyzer.errors import TraceFormatError
from collectors.hosts.fabric import Device, Fabric, FabricLink, bus_id

# Class codes: PCI Code and ID Assignment Specification. NCCL writes 0x068000 for the far end of a link to an NVSwitch.
_SWITCH_CLASS = "0x068000"
_GPU_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
_HOST_BRIDGE = "0-1"
# hwloc 2 numbers the kinds of OS devices: hwloc_obj_osdev_type_e.
_NETWORK, _OPENFABRICS = "2", "3"
_GPU_OS_DEVICE = re.compile(r"(?:nvml|cuda|rsmi|ascend)(?P<index>\d+)$")


@dataclass(slots=True)
class _Node:
    """A device in its place: the elements above it, root first."""

    device: Device
    above: tuple[ET.Element, ...]
    is_gpu: bool = False
    nvlinks: dict[str, int] = field(default_factory=dict)


def nccl(text: str) -> Fabric:
    """GPUs, NICs and links from the file that NCCL writes where `NCCL_TOPO_DUMP_FILE` says.

    NVLink counts are added up through NVSwitches; other paths are named as NCCL does: PIX, PXB, PHB, SYS.

    Raises:
        TraceFormatError: not such a file.
    """
    root = _root(text, "system", "the file NCCL writes with NCCL_TOPO_DUMP_FILE")
    nodes = [node for element, above in _walk(root, ()) for node in _nccl_devices(element, above)]
    if not nodes:
        raise TraceFormatError("<system> holds no <gpu> and no <net>; dump the topology from a process that uses GPUs")
    return Fabric(tuple(node.device for node in nodes), tuple(_links(nodes, _nccl_path)))


def _nccl_devices(element: ET.Element, above: tuple[ET.Element, ...]) -> Iterator[_Node]:
    if element.tag not in {"gpu", "net"}:
        return
    numa = next((parent.get("numaid", "") for parent in above if parent.tag == "cpu"), "")
    address = next((bus_id(parent.get("busid", "")) for parent in reversed(above) if parent.tag == "pci"), "")
    numa_node = int(numa) if numa.isdigit() else None
    if element.tag == "net":
        yield _Node(Device(element.get("name", ""), address, numa_node), above)
        return
    nvlinks: dict[str, int] = {}
    for link in element.iter("nvlink"):
        is_switch = link.get("tclass") == _SWITCH_CLASS
        far = _SWITCH_CLASS if is_switch else bus_id(link.get("target", ""))
        nvlinks[far] = nvlinks.get(far, 0) + int(link.get("count", "1"))
    device = Device(f"GPU{element.get('dev', '')}", address, numa_node)
    yield _Node(device, above, is_gpu=True, nvlinks=nvlinks)


def _nccl_path(first: _Node, second: _Node) -> str:
    """PIX: one PCI switch; PXB: several; PHB: the CPU's host bridge; SYS: another CPU."""
    count = first.nvlinks.get(second.device.bus_id, 0) or min(
        first.nvlinks.get(_SWITCH_CLASS, 0), second.nvlinks.get(_SWITCH_CLASS, 0)
    )
    if count:
        return f"NV{count}"
    near, beyond = _split(first.above, second.above)
    if not near or near[-1].tag == "system":
        return "SYS"
    if near[-1].tag == "cpu":
        return "PHB"
    # The last <pci> above a device is its own slot, so two elements beyond the switch are one slot each.
    switches = sum(element.tag == "pci" and element.find("pci") is not None for element in beyond)
    return "PXB" if switches else "PIX"


def lstopo(text: str) -> Fabric:
    """GPUs, NICs and links from `lstopo --of xml`, hwloc 2 or later.

    Raises:
        TraceFormatError: not such a file.
    """
    root = _root(text, "topology", "the output of `lstopo --of xml`")
    nodes = [node for element, above in _walk(root, ()) for node in _hwloc_devices(element, above)]
    return Fabric(tuple(node.device for node in nodes), tuple(_links(nodes, _hwloc_path)))


def lstopo_host(text: str) -> str:
    """The host name in `lstopo --of xml`, "" where it has none."""
    root = _root(text, "topology", "the output of `lstopo --of xml`")
    return next((info.get("value", "") for info in root.iter("info") if info.get("name") == "HostName"), "")


def _hwloc_devices(element: ET.Element, above: tuple[ET.Element, ...]) -> Iterator[_Node]:
    if element.get("type") != "PCIDev":
        return
    address = bus_id(element.get("pci_busid", ""))
    numa_node = _numa_node(above)
    inside = [child.get("name", "") for child in element.iter("object") if child.get("type") == "OSDev"]
    if (element.get("pci_type") or "")[:4] in _GPU_CLASSES:
        indices = [match["index"] for name in inside if (match := _GPU_OS_DEVICE.match(name))]
        model = next((i.get("value", "") for i in element.iter("info") if i.get("name") == "GPUModel"), "")
        name = f"GPU{indices[0]}" if indices else address
        yield _Node(Device(name, address, numa_node, model=model), above, is_gpu=True)
        return
    names = {child.get("osdev_type"): child.get("name", "") for child in element.iter("object")}
    if nic := names.get(_OPENFABRICS) or names.get(_NETWORK):
        yield _Node(Device(nic, address, numa_node), above)


def _numa_node(above: Iterable[ET.Element]) -> int | None:
    """The one node in the nearest node set above a device; None where that set has several."""
    sets = [element.get("nodeset") for element in above if element.get("nodeset")]
    if not sets:
        return None
    bits = int((sets[-1] or "").replace("0x", "").replace(",", ""), 16)
    return bits.bit_length() - 1 if bits.bit_count() == 1 else None


def _hwloc_path(first: _Node, second: _Node) -> str:
    """As `nvidia-smi` names paths. A PCI switch is two bridges deep: an upstream port and one port for each device."""
    near, _ = _split(first.above, second.above)
    common = near[-1]
    if common.get("type") != "Bridge":
        packages = [element for element in near if element.get("type") == "Package"]
        return "NODE" if packages or first.device.numa_node == second.device.numa_node is not None else "SYS"
    if common.get("bridge_type") == _HOST_BRIDGE:
        return "PHB"
    deepest = max(len(first.above), len(second.above)) - len(near)
    return "PIX" if deepest <= 1 else "PXB"


def _root(text: str, tag: str, expected: str) -> ET.Element:
    if "<!ENTITY" in text:
        raise TraceFormatError(f"XML with entities of its own is not read; expected {expected}")
    try:
        root = ET.fromstring(text)  # noqa: S314 -- entities are refused above
    except ET.ParseError as error:
        raise TraceFormatError(f"not XML ({error}); expected {expected}") from error
    if root.tag != tag:
        raise TraceFormatError(f"the root element is <{root.tag}>; expected {expected}")
    return root


def _walk(element: ET.Element, above: tuple[ET.Element, ...]) -> Iterator[tuple[ET.Element, tuple[ET.Element, ...]]]:
    yield element, above
    for child in element:
        yield from _walk(child, (*above, element))


def _links(nodes: list[_Node], path: Callable[[_Node, _Node], str]) -> Iterator[FabricLink]:
    """Links between GPUs, and between each GPU and each NIC; two NICs have none."""
    for first, second in combinations(nodes, 2):
        if first.is_gpu or second.is_gpu:
            yield FabricLink((first.device.name, second.device.name), path(first, second))


def _split(first: tuple[ET.Element, ...], second: tuple[ET.Element, ...]) -> tuple[list[ET.Element], list[ET.Element]]:
    """The elements above both, root first, and those above only one of them."""
    shared = [one for one, other in zip(first, second, strict=False) if one is other]
    return shared, [*first[len(shared) :], *second[len(shared) :]]
