"""One host's topology from every source that answers, and its form in topology.json."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

from collectors.hosts import linux, topology_xml
from collectors.hosts import tool_text as topology_text
from collectors.hosts.fabric import Device, Fabric, Placement, most_trusted

SCHEMA = 1

TOOL_TIMEOUT_S = 60  # nvidia-smi without its persistence daemon initialises each GPU first: seconds a GPU

RANK_TABLE = "rank-table"
PARSERS: dict[str, Callable[[str], Fabric]] = {
    "nvidia-smi": topology_text.nvidia_smi,
    "rocm-smi": topology_text.rocm_smi,
    "amd-smi": topology_text.amd_smi,
    "npu-smi": topology_text.npu_smi,
    "nccl": topology_xml.nccl,
    "lstopo": topology_xml.lstopo,
}
_COMMANDS = {
    "nvidia-smi": ("nvidia-smi", "topo", "-m"),
    "rocm-smi": ("rocm-smi", "--showtopo"),
    "amd-smi": ("amd-smi", "topology"),
    "npu-smi": ("npu-smi", "info", "-t", "topo"),
    "lstopo": ("lstopo-no-graphics", "--of", "xml"),
}


@dataclass(slots=True)
class Snapshot:
    """What is known of one host, filled source by source.

    Attributes:
        fabrics: devices and links by source.
        placements: of ranks, from a rank table.
        numa_nodes, nics, processes: what Linux tells; processes by rank, or by "pid N" where the rank is unknown.
        environment: variables of this process that bear on communication; `withheld` names those left out.
        absent: by source, why it told nothing.
    """

    fabrics: dict[str, Fabric] = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()
    numa_nodes: tuple[linux.NumaNode, ...] = ()
    nics: tuple[linux.Nic, ...] = ()
    processes: dict[str, linux.HostProcess] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    absent: dict[str, str] = field(default_factory=dict)

    def read(self, texts: Mapping[str, str]) -> None:
        """Add what tools printed, by tool.

        Raises:
            TraceFormatError: a text is not what the tool prints.
        """
        for tool, text in texts.items():
            if tool == RANK_TABLE:
                self.placements = topology_text.rank_table(text)
            else:
                self.fabrics[tool] = PARSERS[tool](text)
                self.absent.pop(tool, None)

    def probe_tools(self) -> None:
        """Ask NVML and every tool of this host; note why one does not answer."""
        for tool, arguments in _COMMANDS.items():
            text, fault = _run(arguments)
            if fault:
                self.absent[tool] = fault
            else:
                self.read({tool: text})
        self.absent.setdefault("nccl", "not given: start a rank with NCCL_TOPO_DUMP_FILE and pass --nccl-topo")
        try:
            import pynvml  # noqa: PLC0415 -- optional, and slow to import
        except ImportError:
            self.absent["nvml"] = "nvidia-ml-py is not installed"
        else:
            self._probe_nvml(pynvml)

    def _probe_nvml(self, pynvml: ModuleType) -> None:
        from collectors.hosts import nvml as topology_nvml  # noqa: PLC0415 -- only where there is NVML

        try:
            self.fabrics["nvml"] = topology_nvml.fabric(pynvml)
        except pynvml.NVMLError as error:
            self.absent["nvml"] = str(error)

    def probe_linux(self, pids: Mapping[str, int], root: Path = Path("/")) -> None:
        """Add NUMA nodes, NICs, processes and environment of this host.

        Args:
            pids: processes by rank.
            root: of the file system with /sys and /proc.
        """
        self.numa_nodes = linux.numa_nodes(root / "sys")
        self.nics = linux.nics(root / "sys")
        self.environment, self.withheld = linux.allowed(os.environ)
        if not self.numa_nodes:
            self.absent["numa"] = "no NUMA nodes under /sys/devices/system/node"
        if not any(nic.bus_id and nic.interfaces for nic in self.nics):
            self.absent["rdma"] = "no RDMA device under /sys/class/infiniband"
        for rank, pid in pids.items():
            self._probe_process(rank, pid, root)
        for source, fabric in self.fabrics.items():
            self.fabrics[source] = Fabric(tuple(_near(device, root) for device in fabric.devices), fabric.links)

    def _probe_process(self, rank: str, pid: int, root: Path) -> None:
        try:
            self.processes[rank] = linux.process(root / "proc", pid)
        except OSError as error:
            self.absent[f"process {pid}"] = error.strerror or str(error)

    def as_json(self) -> dict[str, object]:
        """The host's entry in topology.json; empty parts are left out."""
        parts: dict[str, object] = {
            "devices": _devices(self.fabrics),
            "links": [
                {"from": pair[0], "to": pair[1], "type": link.kind, "source": source}
                | {name: figure for name in ("weight", "hops") if (figure := getattr(link, name)) is not None}
                for pair, (link, source) in most_trusted(self.fabrics).items()
            ],
            "numa_nodes": [asdict(node) for node in self.numa_nodes],
            "nics": [asdict(nic) for nic in self.nics],
            "processes": {rank: asdict(process) for rank, process in self.processes.items()},
            "environment": self.environment,
            "withheld": list(self.withheld),
            "absent": dict(sorted(self.absent.items())),
        }
        return {name: entry for name, entry in parts.items() if entry}


def _near(device: Device, root: Path) -> Device:
    """The device with the NUMA node that the kernel knows for its address, where its source did not say."""
    if device.numa_node is not None or not device.bus_id:
        return device
    numa_node = linux.pci_numa_node(root / "sys", device.bus_id)
    return Device(device.name, device.bus_id, numa_node, device.cpus, device.model)


def _devices(fabrics: Mapping[str, Fabric]) -> list[dict[str, object]]:
    """Each device once; of each attribute, what the first source says that knows it."""
    merged: dict[str, dict[str, object]] = {}
    for source in fabrics:
        for device in fabrics[source].devices:
            known = merged.setdefault(device.name, {"name": device.name})
            for name, attribute in asdict(device).items():
                if attribute not in ("", None):
                    known.setdefault(name, attribute)
    return [merged[name] for name in sorted(merged)]


def _run(arguments: tuple[str, ...]) -> tuple[str, str]:
    """What a tool prints, and why it printed nothing of use ("" where it did)."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    except FileNotFoundError:
        return "", "not installed"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {TOOL_TIMEOUT_S} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return "", f"exit code {done.returncode}: {said[0] if said else 'no message'}"
    return done.stdout, ""
