"""What a topology source tells, whichever tool printed it: devices, links between them, placements of ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

# Which source is believed where two name the same pair, best first: the driver, then the vendor's tool, then
# what was derived from a PCI tree.
TRUST = ("nvml", "nvidia-smi", "amd-smi", "rocm-smi", "npu-smi", "nccl", "lstopo")

_BUS_ID = re.compile(r"(?P<domain>[0-9a-f]+):(?P<rest>[0-9a-f]+:[0-9a-f]+(?:\.[0-9a-f])?)$")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, NPU or NIC of one host.

    Attributes:
        name: `GPU0`, `NPU3`, or the system's name of a NIC (`mlx5_0`).
        bus_id: PCI address as `0000:1b:00.0`, "" where the source does not say.
        numa_node: nearest NUMA node, None where unknown.
        cpus: nearest CPUs as a list of ranges ("0-55,112-167"), "" where unknown.
        model: product name, "" where unknown.
    """

    name: str
    bus_id: str = ""
    numa_node: int | None = None
    cpus: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class FabricLink:
    """The path between two devices of one host.

    Attributes:
        between: device names, in the order of the source.
        kind: as the tool prints it: `NV18`, `XGMI`, `HCCS`, `C2C`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, `PCIE`.
        weight: the source's own cost figure, None where it has none.
        hops: the source's own hop count, None where it has none.
    """

    between: tuple[str, str]
    kind: str
    weight: int | None = None
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class Fabric:
    """Devices and links of one host, as one source tells them."""

    devices: tuple[Device, ...] = ()
    links: tuple[FabricLink, ...] = ()

    def renamed(self, names: dict[str, str]) -> Fabric:
        """The same fabric with devices called by other names; a device that `names` lacks keeps its own."""

        def name(old: str) -> str:
            return names.get(old, old)

        return Fabric(
            tuple(replace(device, name=name(device.name)) for device in self.devices),
            tuple(replace(link, between=(name(link.between[0]), name(link.between[1]))) for link in self.links),
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a rank runs, from a rank table.

    Attributes:
        rank: global rank.
        node: server id.
        device: device number on that server.
        address: network address of the device, "" where the table has none.
        super_pod: super pod id, "" where the table has none.
        group: id of the server group, "" where the table has one list of servers; ranks count from 0 in each group.
    """

    rank: int
    node: str
    device: int
    address: str = ""
    super_pod: str = ""
    group: str = ""


def bus_id(text: str) -> str:
    """A PCI address in one spelling, '00000000:1B:00.0' → '0000:1b:00.0'; other text only in lower case."""
    address = text.strip().lower()
    match = _BUS_ID.match(address)
    return f"{int(match['domain'], 16):04x}:{match['rest']}" if match else address


def last_bus_id(path: str) -> str:
    """The PCI address nearest to the end of a sysfs path, "" where there is none."""
    for component in reversed(PurePosixPath(path).parts):
        if _BUS_ID.match(component):
            return bus_id(component)
    return ""


def most_trusted(fabrics: dict[str, Fabric]) -> dict[tuple[str, str], tuple[FabricLink, str]]:
    """One link for each pair of devices with the source it is taken from, pairs in ascending order of names.

    Args:
        fabrics: by source; sources as in `TRUST`.
    """
    chosen: dict[tuple[str, str], tuple[FabricLink, str]] = {}
    for source in sorted(fabrics, key=TRUST.index):
        for link in fabrics[source].links:
            first, second = sorted(link.between)
            chosen.setdefault((first, second), (link, source))
    return dict(sorted(chosen.items()))
