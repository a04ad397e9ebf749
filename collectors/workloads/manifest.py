"""`run.json`, what a collector knows of a run and its traces do not say. Schema 1; every key may be absent.

schema      1
complete    true; false while the run lasts, and for ever where it was broken off
engine      "torch" for the built-in workloads, "vllm", "sglang"
workload    {"name": "tp", "work": "inference", "engine": "torch", "cores": 64}: name "tp", "pp", "dp", "ep", "cp",
            "dcp", "pd", "serve"; work "inference" or "serving"; cores of the host
role        "prefill", "decode" or "colocated" of the whole run; absent where ranks differ
roles       {"0": "prefill", "1": "decode"}: of each rank, where ranks differ
layout      {"world_size": 2, "tp": 2, "pp": 1, …}: ranks, degree of every axis; axes may share ranks (ep and dp do)
groups      {"tp": [[0, 1]]}: rank groups of the axes whose collectives are in the traces
model       dimensions under their names in a Hugging Face config
topology    {"nodes": {"0": "node-a", "1": "node-a"}}: node name of each rank
versions    {"torch": …, "python": …, "shardscope": …}
settings    batch (sequences of the whole job), context (prompt tokens), steps (decode steps a round), rounds,
            warmup, dtype, device, backend, threads (of a rank), seed; and what only this workload knows:
            skew, transfer, attention, idle_steps
command     the command line, without --out
profile     {"record_shapes": true, "with_stack": false, "predicted_bytes": …, "trace_bytes": …}: sizes of all ranks'
            traces, gzipped; the prediction is from one rehearsed round
reference   durations of steps: {"steps": …, "prefill_median_ns": …, "decode_median_ns": …} without the profiler,
            {"profiled_prefill_median_ns": …, "profiled_decode_median_ns": …} with it, and "inflation", all steps
            with it / all steps without. A step lasts as long as on its slowest rank
transfers   of pd: [{"round", "layer", "from", "to" (ranks), "bytes", "sent_ns", "posted_ns", "received_ns" (epoch),
            "time_ns"}]; time_ns is from both sent and awaited to arrived, null between nodes
expert_tokens  of ep: tokens routed to each expert in the profiled rounds, all layers and ranks
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from collectors.workloads.settings import JobSettings

SCHEMA = 1
NAME = "run.json"
AXES = ("tp", "pp", "dp", "ep", "cp", "dcp")

StepTimes = Mapping[str, Sequence[int]]


def described(settings: JobSettings, layout: Mapping[str, int], command: str) -> dict[str, Any]:
    """The entries of a built-in workload that are known before it runs."""
    return {
        "schema": SCHEMA,
        "complete": False,
        "engine": "torch",
        "workload": sort(settings.workload, "inference", "torch") | {"cores": os.cpu_count()},
        "layout": {"world_size": settings.ranks} | dict.fromkeys(AXES, 1) | dict(layout),
        "model": settings.size.config(),
        "versions": versions(("torch", "shardscope")),
        "settings": {
            "batch": settings.batch,
            "context": settings.context,
            "steps": settings.steps,
            "rounds": settings.rounds,
            "warmup": settings.warmup,
            "seed": settings.seed,
            **settings.extra,
        },
        "command": command,
        "profile": {"record_shapes": True, "with_stack": False},
    }


def sort(name: str, work: str, engine: str) -> dict[str, Any]:
    """The `workload` entry: what sort of run it is."""
    return {"name": name, "work": work, "engine": engine}


def versions(distributions: Sequence[str]) -> dict[str, str]:
    """Version of Python and of those distributions that are installed."""
    numbers = {"python": platform.python_version()}
    return numbers | {name: number for name in distributions if (number := installed(name)) is not None}


def installed(distribution: str) -> str | None:
    """Version of a distribution; None where it is not installed, as this one is not in a bare checkout."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def timed(plain: Sequence[StepTimes], profiled: Sequence[StepTimes] = ()) -> dict[str, int | float]:
    """The `reference` entry from the step durations of every rank, ns by phase."""
    plain_ns, profiled_ns = _slowest(plain), _slowest(profiled)
    entry: dict[str, int | float] = {"steps": sum(len(steps) for steps in plain_ns.values())}
    for phase, steps in plain_ns.items():
        entry[f"{phase}_median_ns"] = int(statistics.median(steps))
    for phase, steps in profiled_ns.items():
        entry[f"profiled_{phase}_median_ns"] = int(statistics.median(steps))
    if profiled_ns:
        entry["inflation"] = round(_total(profiled_ns) / _total(plain_ns), 3)
    return entry


def write(folder: Path, entries: Mapping[str, object]) -> None:
    """Put `run.json` into the folder, whole or not at all."""
    unfinished = folder / f"{NAME}.part"
    try:
        unfinished.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(folder / NAME)
    finally:
        unfinished.unlink(missing_ok=True)


def _slowest(ranks: Sequence[StepTimes]) -> dict[str, list[int]]:
    """Each step's duration on the slowest of the ranks that took it."""
    phases = dict.fromkeys(phase for times in ranks for phase in times)
    return {phase: _by_step([times[phase] for times in ranks if phase in times]) for phase in phases}


def _by_step(ranks: Sequence[Sequence[int]]) -> list[int]:
    """Longest at each place; ranks may have taken fewer steps (idle replicas)."""
    longest = max(len(steps) for steps in ranks)
    return [max(steps[step] for steps in ranks if step < len(steps)) for step in range(longest)]


def _total(phases: Mapping[str, Sequence[int]]) -> int:
    return sum(sum(steps) for steps in phases.values())
