"""What a run does already: advice to do it is not given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from analyzer.model.pattern import Blend, Pattern
from analyzer.model.run import Run

_LOW_LATENCY = re.compile(r"internode_ll|low_?latency", re.IGNORECASE)
_DEEPEP = re.compile(r"deep_ep|dpsk(?:::|\d+)ep")
_LIBRARY = re.compile(r"^(?:void )?(?:nccl|rccl|hccl|hcom|oneccl)", re.IGNORECASE)
_EXPERTS = ("moe_gemm", "moe_route", "dispatch", "combine")
_SIZES = ("num_experts", "n_routed_experts", "num_local_experts")
"""Names that model files give to the number of experts."""


def follows(run: Run, feature: str) -> bool:
    """Whether a feature is on, or a flag is set in what is recorded of the run's start."""
    return is_set(run, feature) if feature.startswith("--") else FEATURES[feature](run)


def is_set(run: Run, flag: str) -> bool:
    """Whether the recorded command holds a flag, or a setting of its name is on."""
    setting = run.workload.settings.get(flag.lstrip("-").replace("-", "_"))
    if setting not in (None, 0, "", "false", "False"):
        return True
    words = str(run.workload.settings.get("command", "")).split()
    return any(word == flag or word.startswith(f"{flag}=") for word in words)


def has_experts(run: Run) -> bool:
    """Whether the model has experts: its dimensions say so, the layout splits them, or their kernels run."""
    if any(run.workload.model.get(name) for name in _SIZES) or run.layout.sizes.get("ep", 1) > 1:
        return True
    return any(pattern.subclass in _EXPERTS for _, pattern in _known_kernels(run))


def _low_latency(run: Run) -> bool:
    return any(_LOW_LATENCY.search(name) for name, _ in _known_kernels(run))


def _deepep(run: Run) -> bool:
    return any(_DEEPEP.search(name) for name, _ in _known_kernels(run))


def _fused_reduction(run: Run) -> bool:
    return any(pattern.blend is Blend.FUSED for _, pattern in _reductions(run))


def _custom_reduction(run: Run) -> bool:
    return any(not _LIBRARY.match(name) for name, _ in _reductions(run))


def _reductions(run: Run) -> Iterator[tuple[str, Pattern]]:
    return ((name, pattern) for name, pattern in _known_kernels(run) if pattern.subclass == "all_reduce")


def _known_kernels(run: Run) -> Iterator[tuple[str, Pattern]]:
    """Each distinct name of a device's work that a pattern claims."""
    for trace in run.traces:
        for name, pattern in zip(trace.activities.name.values, trace.activities.patterns, strict=True):
            if pattern is not None:
                yield name, pattern


FEATURES: dict[str, Callable[[Run], bool]] = {
    "low-latency expert kernels": _low_latency,
    "DeepEP": _deepep,
    "fused all-reduce": _fused_reduction,
    "custom all-reduce": _custom_reduction,
}
"""Features that advice may name in `unless`."""
