"""Whether kernels are launched one by one or replayed from graphs."""

from __future__ import annotations

import numpy as np

from analyzer.measures.sorts.sign import Sign, claims, fact, names_of_run
from analyzer.model.events import ABSENT
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.schema.workload import Fact

LAUNCHES = (
    Sign(
        r"^(?:cuda|hip|musa)GraphLaunch|^cuGraphLaunch|^aclmdlRIExecute|^cnrtTaskTopoEntityInvoke",
        "call",
        "graph",
        "certain",
        "replays a graph",
        ("cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"),
    ),
    Sign(
        r"Launch(?:Cooperative)?Kernel|LaunchKernel|^cnInvokeKernel|EnqueueKernelLaunch|^runFunction - |@Launch",
        "call",
        "eager",
        "certain",
        "launches a kernel",
        ("cudaLaunchKernelExC", "hipExtModuleLaunchKernel", "cuLaunchKernel", "cnInvokeKernel", "Hccl@Launch_Ffts"),
    ),
    Sign(
        r"StreamBeginCapture|StreamEndCapture|GraphInstantiate",
        "call",
        "capture",
        "certain",
        "captures a graph",
        ("cudaStreamBeginCapture_v2", "hipGraphInstantiate"),
    ),
    Sign(
        r"^(?:Default|Gradients)/",
        "kernel",
        "graph",
        "likely",
        "MindSpore sinks the whole graph to the device",
        ("Gradients/Default/network-WithLossCell/gradReLU/ReluGrad-op2",),
    ),
    Sign(
        r"^aclnn",
        "kernel",
        "eager",
        "likely",
        "the device runs single operations of CANN",
        ("aclnnMuls_MulAiCore_Mul",),
    ),
)
"""Calls that launch, and kernels that only one way of launching runs."""

WHOLE = 0.9
"""Share of a run's kernels from which it is called replayed; the rest is sampling, copies and preparation."""


def replay(run: Run) -> Fact:
    """Graph, eager, mixed, capture; none where no launch is in the recording."""
    seen = {sign.says: (sign, name) for sign, name in reversed(claims(LAUNCHES, names_of_run(run)))}
    if not seen:
        return Fact("none", "no launch is in the recording", "certain")
    if len(seen) == 1 or "graph" not in seen:
        return fact(*seen.get("capture", seen.get("eager", next(iter(seen.values())))))
    replayed, alone = (sum(counts) for counts in zip(*map(_kernels, run.traces), strict=True))
    if not replayed:
        return Fact("mixed", f"{seen['graph'][1]} beside launches of single kernels", "likely")
    share = replayed / (replayed + alone)
    evidence = f"{share:.0%} of kernels come from {seen['graph'][1]}"
    return Fact("graph" if share >= WHOLE else "mixed", evidence, "certain")


def _kernels(trace: Trace) -> tuple[int, int]:
    """Kernels that graphs launched, and those that were launched one by one."""
    graph = trace.calls.name.where(lambda name: "GraphLaunch" in name)
    numbers = np.unique(trace.calls.correlation[graph])
    rows = (trace.activities.kind != Kind.MOVEMENT) & (trace.activities.correlation != ABSENT)
    launched = trace.activities.correlation[rows]
    replayed = int(np.isin(launched, numbers).sum())
    return replayed, int(launched.size) - replayed
