"""What Linux tells of a host: NUMA nodes, NICs, where a process runs and where its memory lies, its environment.

Every function takes the root of the file system it reads, so that a recorded tree can be read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from collectors.hosts.fabric import last_bus_id

PREFIXES = (
    "ASCEND_",
    "DEEP_EP_",
    "FI_",
    "FLASHINFER_",
    "GLOO_",
    "HCCL_",
    "HIP_",
    "HSA_",
    "LMCACHE_",
    "MC_",
    "MOONCAKE_",
    "NCCL_",
    "NIXL_",
    "NVSHMEM_",
    "RCCL_",
    "ROCM_",
    "ROCR_",
    "SGLANG_",
    "SGL_",
    "TORCH_NCCL_",
    "UCX_",
    "VLLM_",
)
NAMES = frozenset(
    {
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "LOCAL_RANK",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "PYTORCH_CUDA_ALLOC_CONF",
        "RANK",
        "WORLD_SIZE",
    }
)
WITHHELD_WORDS = ("AUTH", "CREDENTIAL", "KEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN")

_PASSWORD_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_PAGES = re.compile(r"\bN(?P<node>\d+)=(?P<pages>\d+)")
_PAGE_KIB = re.compile(r"\bkernelpagesize_kB=(?P<kib>\d+)")
_RATE = re.compile(r"(?P<gbit>[\d.]+) Gb/sec")
_ENGINE_TITLE = re.compile(r"(?:VLLM::(?:Worker|EngineCore)|sglang::scheduler)\S*")
_DEFAULT_PAGE_KIB = 4  # where numa_maps names no page size (kernels before 3.17)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: its CPUs as ranges, its memory, its distances to all nodes (10 is itself; ACPI SLIT)."""

    index: int
    cpus: str
    memory_bytes: int
    distances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nic:
    """A network device: RDMA device with its port's rate, or an Ethernet interface.

    Attributes:
        name: `mlx5_0`, `eth0`.
        link_layer: `InfiniBand` or `Ethernet`.
        gbit_per_s: nominal rate of the first port, None where the driver does not say.
        state: of the first port, as the driver says ("ACTIVE", "up").
        interfaces: network interfaces of an RDMA device.
    """

    name: str
    bus_id: str
    numa_node: int | None
    link_layer: str
    gbit_per_s: float | None
    state: str
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostProcess:
    """Where a process may run and where its memory lies.

    Attributes:
        title: command line or the title it gave itself (`VLLM::Worker_TP0`).
        cpus: CPUs it may run on, as ranges.
        memory_nodes: NUMA nodes it may take memory from, as ranges.
        resident_bytes: memory by NUMA node that holds it.
        environment: allowed variables of its environment.
        withheld: names of variables that were left out.
    """

    pid: int
    title: str
    cpus: str
    memory_nodes: str
    resident_bytes: dict[int, int] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()


def numa_nodes(sys: Path) -> tuple[NumaNode, ...]:
    """NUMA nodes from /sys/devices/system/node, by index; none where the kernel has no NUMA support."""
    folders = sorted((sys / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    return tuple(
        NumaNode(
            index=int(folder.name[4:]),
            cpus=_read(folder / "cpulist"),
            memory_bytes=_kib(_read(folder / "meminfo"), "MemTotal"),
            distances=tuple(int(word) for word in _read(folder / "distance").split()),
        )
        for folder in folders
    )


def _kib(text: str, name: str) -> int:
    match = re.search(rf"{name}:\s+(\d+) kB", text)
    return int(match[1]) * 1024 if match else 0


def nics(sys: Path) -> tuple[Nic, ...]:
    """RDMA devices, then network interfaces on a device of their own; loopback, bridges and tunnels are left out."""
    rdma = tuple(_rdma_nic(folder) for folder in sorted((sys / "class/infiniband").glob("*")))
    taken = {interface for nic in rdma for interface in nic.interfaces}
    folders = sorted(path for path in (sys / "class/net").glob("*") if (path / "device").exists())
    return rdma + tuple(_ethernet_nic(folder) for folder in folders if folder.name not in taken)


def _rdma_nic(folder: Path) -> Nic:
    port = min((folder / "ports").glob("*"), default=folder / "ports/1")
    rate = _RATE.search(_read(port / "rate"))
    return Nic(
        name=folder.name,
        bus_id=last_bus_id(str((folder / "device").resolve())),
        numa_node=_node(_read(folder / "device/numa_node")),
        link_layer=_read(port / "link_layer"),
        gbit_per_s=float(rate["gbit"]) if rate else None,
        state=_read(port / "state").partition(": ")[2],
        interfaces=tuple(sorted(path.name for path in (folder / "device/net").glob("*"))),
    )


def _ethernet_nic(folder: Path) -> Nic:
    speed = _read(folder / "speed")
    device_folder = (folder / "device").resolve()
    return Nic(
        name=folder.name,
        bus_id=last_bus_id(str(device_folder)),
        # A virtio device has no node of its own; the PCI function above it has.
        numa_node=_node(_read(device_folder / "numa_node") or _read(device_folder.parent / "numa_node")),
        link_layer="Ethernet",
        gbit_per_s=int(speed) / 1000 if speed.isdigit() else None,
        state=_read(folder / "operstate"),
    )


def pci_numa_node(sys: Path, bus_id: str) -> int | None:
    """NUMA node of a PCI function, None where the firmware does not say."""
    return _node(_read(sys / "bus/pci/devices" / bus_id / "numa_node"))


def _node(text: str) -> int | None:
    return int(text) if text.isdigit() else None  # the kernel writes -1 for unknown


def process(proc: Path, pid: int) -> HostProcess:
    """Affinity, memory and environment of a process.

    Raises:
        FileNotFoundError: no such process.
        PermissionError: it belongs to someone else.
    """
    folder = proc / str(pid)
    status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
    variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
    kept, withheld = allowed(dict(pair.split("=", 1) for pair in variables if "=" in pair))
    return HostProcess(
        pid=pid,
        title=_title(folder),
        cpus=status["Cpus_allowed_list"].strip(),
        memory_nodes=status.get("Mems_allowed_list", "").strip(),
        resident_bytes=resident_bytes((folder / "numa_maps").read_text()) if (folder / "numa_maps").exists() else {},
        environment=kept,
        withheld=withheld,
    )


def _title(folder: Path) -> str:
    """The first word of the command line and no more: arguments may hold secrets."""
    return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip().partition(" ")[0]


def engine_processes(proc: Path) -> Iterator[int]:
    """PIDs of the worker processes of vLLM and SGLang, told by the titles they give themselves."""
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            title = _title(folder)
        except OSError:  # ended meanwhile, or another user's
            continue
        if _ENGINE_TITLE.match(title):
            yield int(folder.name)


def resident_bytes(numa_maps: str) -> dict[int, int]:
    """Bytes by NUMA node from the text of /proc/PID/numa_maps."""
    total: dict[int, int] = {}
    for line in numa_maps.splitlines():
        size = _PAGE_KIB.search(line)
        page_bytes = int(size["kib"] if size else _DEFAULT_PAGE_KIB) * 1024
        for match in _PAGES.finditer(line):
            node = int(match["node"])
            total[node] = total.get(node, 0) + int(match["pages"]) * page_bytes
    return dict(sorted(total.items()))


def allowed(environment: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables that bear on communication and placement, and the names of those that may be secret.

    A name with one of `WITHHELD_WORDS` is withheld whatever its value; user names and passwords are cut from URLs.
    """
    relevant = sorted(name for name in environment if name in NAMES or name.startswith(PREFIXES))
    withheld = tuple(name for name in relevant if any(word in name.upper() for word in WITHHELD_WORDS))
    return {name: _PASSWORD_IN_URL.sub("", environment[name]) for name in relevant if name not in withheld}, withheld


def _read(path: Path) -> str:
    """The text of a file of the kernel; "" where it is not there, or where the driver refuses to answer."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
