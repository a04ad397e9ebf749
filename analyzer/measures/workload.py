"""What sort of run it is: work, engine, device maker, replay, phases, roles, use of groups."""

from __future__ import annotations

from analyzer.model.run import Run
from analyzer.once import once
from analyzer.schema.workload import UNKNOWN, Fact, WorkloadFacts

_MAKERS = {"cuda": "nvidia", "rocm": "amd", "npu": "huawei", "xpu": "intel", "mtia": "meta", "mlu": "cambricon"}
"""Kind of device as read → who makes it."""


@once
def workload(run: Run) -> WorkloadFacts:
    """What the traces, their sidecars and run.json tell of the run as a whole."""
    kinds = {trace.origin.device for trace in run.traces}
    makers = {_MAKERS.get(kind, "cpu") for kind in kinds}
    maker = Fact(makers.pop(), f"{kinds.pop()} records", "certain") if len(makers) == 1 else Fact()
    engine = run.workload.engine
    known = Fact(engine, "as read", "likely") if engine != UNKNOWN else Fact()
    return WorkloadFacts(engine=known, maker=maker)
