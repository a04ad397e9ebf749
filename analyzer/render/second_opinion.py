"""What Holistic Trace Analysis said, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.units import count, duration, share

SHOWN_RANKS = 8
NAME = 60
"""Characters of a name on the critical path."""

_TERMS = (("compute", "compute_ns"), ("non-compute", "non_compute_ns"), ("idle", "idle_ns"))
_BOUNDS = {
    "cpu_bound": "host",
    "data_loading": "loading data",
    "gpu_compute_bound": "kernels",
    "gpu_communication_bound": "communication",
    "gpu_kernel_kernel_overhead": "gaps between kernels",
    "gpu_kernel_launch_overhead": "launch delay",
}


def hta_lines(opinion: Mapping[str, Any]) -> list[str]:
    """Lines for the object that `second_opinion` returned, which is `extra["hta"]` of a report."""
    rows = opinion["breakdown"]
    lines = [
        f"second opinion: Holistic Trace Analysis ({opinion['tool']})",
        "compute there is every kernel that is neither NCCL, HCCL nor a copy by name",
    ]
    lines += [_rank(row) for row in rows[:SHOWN_RANKS]]
    if len(rows) > SHOWN_RANKS:
        lines.append(f"… and {count(len(rows) - SHOWN_RANKS, 'more rank')} (--format json has all)")
    return [*lines, *_critical_path(opinion["critical_path"])]


def _rank(row: Mapping[str, Any]) -> str:
    if "unknown" in row:
        return f"rank {row['rank']}: unknown ({row['unknown']})"
    window_ns = row["window_ns"]
    terms = ", ".join(f"{word} {duration(row[key])} ({share(row[key] / max(window_ns, 1))})" for word, key in _TERMS)
    said = f"rank {row['rank']}: window {duration(window_ns)}, {terms}"
    left_out = row["entries_read"] - row["device_entries"]
    if left_out > 0:
        said += f"; leaves out {left_out:,} of {count(row['entries_read'], 'device entry', 'device entries')}"
    if row["other_entries"]:
        said += f"; takes {count(row['other_entries'], 'host operation or wait', 'host operations or waits')} for work"
    return said


def _critical_path(path: Mapping[str, Any]) -> list[str]:
    piece = path["annotation"] or "the whole trace"
    head = f"critical path of rank {path['rank']}, {piece}"
    if "unknown" in path:
        return [f"{head}: unknown ({path['unknown']})"]
    length_ns = path["length_ns"]
    parts = sorted(path["bound_ns"].items(), key=lambda item: -item[1])
    bound = ", ".join(f"{_BOUNDS.get(name, name)} {share(ns / max(length_ns, 1))}" for name, ns in parts if ns)
    longest = ", ".join(f"{entry['name'][:NAME]} {duration(entry['time_ns'])}" for entry in path["longest"])
    return [f"{head}: {duration(length_ns)}, bound by {bound or 'nothing'}", f"most time on it: {longest or 'nothing'}"]
