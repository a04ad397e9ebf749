"""GPUs, NVLinks and PCI paths from NVIDIA's management library, through nvidia-ml-py."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from collectors.hosts.fabric import Device, Fabric, FabricLink, bus_id

# nvmlGpuTopologyLevel_t, by the names that `nvidia-smi topo -m` gives them.
_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


@dataclass(frozen=True, slots=True)
class _Gpu:
    handle: Any  # a ctypes pointer of nvidia-ml-py
    device: Device
    nvlinks: dict[str, int]  # far end's PCI address → active links


def fabric(pynvml: Any) -> Fabric:  # noqa: ANN401 -- the module itself, which ships no types
    """GPUs and the links between them.

    Args:
        pynvml: the module of nvidia-ml-py.

    Raises:
        pynvml.NVMLError: no driver, or one that does not answer.
    """
    pynvml.nvmlInit()
    try:
        gpus = [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        addresses = {gpu.device.bus_id for gpu in gpus}
        links = []
        for first, second in combinations(gpus, 2):
            count = _nvlinks(first, second, addresses)
            kind = f"NV{count}" if count else _pci_path(pynvml, first, second)
            links.append(FabricLink((first.device.name, second.device.name), kind))
        return Fabric(tuple(gpu.device for gpu in gpus), tuple(links))
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: Any, index: int) -> _Gpu:  # noqa: ANN401 -- as above
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = pynvml.nvmlDeviceGetName(handle)
    device = Device(
        name=f"GPU{index}",
        bus_id=bus_id(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
        model=_text(name),
    )
    nvlinks: dict[str, int] = {}
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            if pynvml.nvmlDeviceGetNvLinkState(handle, link) != pynvml.NVML_FEATURE_ENABLED:
                continue
            far = bus_id(_text(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId))
        except pynvml.NVMLError:  # no NVLink on this GPU, or fewer of them
            break
        nvlinks[far] = nvlinks.get(far, 0) + 1
    return _Gpu(handle, device, nvlinks)


def _nvlinks(first: _Gpu, second: _Gpu, gpu_addresses: set[str]) -> int:
    """Direct links between two GPUs, or else links that both have to the same switches."""
    # Behind a hypervisor all switches show one made-up address, the same on both sides, so this holds there too.
    switches = (first.nvlinks.keys() & second.nvlinks.keys()) - gpu_addresses
    return first.nvlinks.get(second.device.bus_id, 0) or min(
        sum(first.nvlinks[address] for address in switches), sum(second.nvlinks[address] for address in switches)
    )


def _pci_path(pynvml: Any, first: _Gpu, second: _Gpu) -> str:  # noqa: ANN401 -- as above
    level = int(pynvml.nvmlDeviceGetTopologyCommonAncestor(first.handle, second.handle))
    return _LEVELS.get(level, f"level {level}")


def _text(value: str | bytes) -> str:
    """Text; nvidia-ml-py before 11.515 returns bytes."""
    return value.decode() if isinstance(value, bytes) else value
