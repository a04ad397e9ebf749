"""Who made the device."""

from __future__ import annotations

from analyzer.measures.sorts.sign import Sign, claims, fact, names_of_run
from analyzer.model.run import Run
from analyzer.schema.workload import Fact, Sure

MAKERS = (
    Sign(r"^(?:NVIDIA|Tesla|Quadro|GeForce)\b", "device", "nvidia", "certain", "the device's name", ("NVIDIA H200",)),
    Sign(r"^AMD\b|^Instinct|\bMI\d{3}X?\b", "device", "amd", "certain", "the device's name", ("AMD Instinct MI300X",)),
    Sign(r"^Ascend|^910[A-Z]", "device", "huawei", "certain", "the device's name", ("Ascend910B4",)),
    Sign(r"^Intel", "device", "intel", "certain", "the device's name", ("Intel(R) Data Center GPU Max 1550",)),
    Sign(r"^MLU\d", "device", "cambricon", "certain", "the device's name", ("MLU370",)),
    Sign(r"^hip[A-Z]", "call", "amd", "certain", "calls of HIP", ("hipLaunchKernel",)),
    Sign(
        r"^cuda[A-Z]|^cu[A-Z]\w+", "call", "nvidia", "likely", "calls of CUDA", ("cudaLaunchKernel", "cuLaunchKernel")
    ),
    Sign(r"^cnrt[A-Z]|^cnInvoke", "call", "cambricon", "certain", "calls of Cambricon's runtime", ("cnrtQueueSync",)),
    Sign(r"^ze[A-Z]\w+Append|^urEnqueue", "call", "intel", "likely", "calls of Level Zero", ("urEnqueueKernelLaunch",)),
    Sign(r"^musa[A-Z]", "call", "moore-threads", "certain", "calls of MUSA", ("musaLaunchKernel",)),
    Sign(
        r"^Cijk_|miopen|channelMasks",
        "kernel",
        "amd",
        "likely",
        "kernels of ROCm's libraries",
        ("Cijk_Alik_Bljk_BBS_BH", "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"),
    ),
)
"""Signs of device makers."""

_KINDS = {"cuda": "nvidia", "rocm": "amd", "npu": "huawei", "xpu": "intel", "mtia": "meta", "mlu": "cambricon"}
"""Kind of device as read → who makes it."""


def maker(run: Run) -> Fact:
    """As the device's name or the calls say, else by the kind of records; `cpu` where no rank has a device."""
    seen = claims(MAKERS, names_of_run(run))
    makers = {sign.says for sign, _ in seen if sign.sure == seen[0][0].sure}
    if len(makers) == 1:
        return fact(*seen[0])
    kinds = {trace.origin.device for trace in run.traces}
    if makers or len(kinds) > 1:
        return Fact()
    kind = kinds.pop()
    sure: Sure = "certain" if kind in ("npu", "mtia", "mlu") else "likely"
    return Fact(
        _KINDS.get(kind, "cpu"), f"{kind} records" if kind != "cpu" else "no work on a device is recorded", sure
    )
