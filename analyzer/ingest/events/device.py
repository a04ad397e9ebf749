"""Which events of a trace are work on a device, and how long each really ran."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analyzer.classify import classify
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.trace import Note
from analyzer.stats.arrays import Integers, Mask
from analyzer.units import count, duration

_VENDORS = ("cuda", "mtia", "mlu", "xpu", "privateuse1")

WORK = frozenset(
    ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events", "mlu_memcpy", "collective_comm")
)
"""Categories in lower case. `gpu_user_annotation` and `cuda_sync` lie on the same rows and are no work."""

CALLS = frozenset(("runtime", *(f"{vendor}_{layer}" for vendor in _VENDORS for layer in ("runtime", "driver"))))
"""Categories in lower case; HIP's calls are `cuda_runtime`."""

DEVICES = {
    "mtia_ccp_events": "mtia",
    "mtia_runtime": "mtia",
    "mlu_memcpy": "mlu",
    "mlu_runtime": "mlu",
    "xpu_runtime": "xpu",
}
SERIAL_STREAMS = frozenset(("cuda", "rocm", "xpu"))
"""Devices whose streams run one entry at a time, but for dependent launch."""

DEPENDENT_LAUNCH_NS = 20_000
"""Overlap on one stream that is no fault: dependent launch starts up to 5 µs early, old clocks count whole µs."""
CORRUPT_NS = 100_000_000
"""Inside one graph, whose branches may share a recorded stream, a fault is at least this long and covers others."""
COVERED = 3


def device_kind(raw: RawTrace) -> str:
    """`rocm`, `cuda`, `mtia`, `mlu` or `xpu` by runtime and categories; ROCm uses CUDA's categories."""
    present = {raw.category.values[code].lower() for code in np.unique(raw.category.codes)}
    if "hip_runtime_version" in raw.metadata or "roctracer_version" in raw.metadata:
        return "rocm"
    for category, vendor in DEVICES.items():
        if category in present:
            return vendor
    properties = raw.metadata.get("deviceProperties")
    if isinstance(properties, list) and any("AMD" in str(entry) for entry in properties):
        return "rocm"
    called = raw.name.take(raw.category.where(lambda category: category.lower() in CALLS))
    used = {called.values[code] for code in np.unique(called.codes)}
    return "rocm" if any(name.startswith("hip") for name in used) else "cuda"


def is_work(raw: RawTrace) -> Mask:
    """bool[n]: spans of a category that runs on a device."""
    return raw.category.where(lambda category: category.lower() in WORK) & raw.phase.where(lambda phase: phase == "X")


def events(raw: RawTrace, rows: Mask | Integers, correlation: Integers | None = None) -> Events:
    """The chosen events in order of start, longest first where they start together."""
    chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    start, length = raw.start_ns[chosen], raw.duration_ns[chosen]
    order = chosen[np.lexsort((-length, start))]
    linked = raw.integer("correlation") if correlation is None else correlation
    start = raw.start_ns[order]
    return Events(
        compact(raw.name.take(order)),
        start,
        start + raw.duration_ns[order],
        raw.process[order],
        raw.thread[order],
        linked[order],
    )


def compact(labels: Labels) -> Labels:
    """The same column without values that no row has."""
    used, codes = np.unique(labels.codes, return_inverse=True)
    return Labels(tuple(labels.values[code] for code in used.tolist()), codes.astype(np.int32).reshape(-1))


def activities(raw: RawTrace, rows: Mask, device: str) -> tuple[Activities, tuple[Note, ...], Integers]:
    """Device work in order of start, overruns clipped, with what was clipped and the row in `raw` of each."""
    chosen = np.flatnonzero(rows)
    start = raw.start_ns[chosen]
    order = chosen[np.lexsort((-raw.duration_ns[chosen], start))]
    work = events(raw, order)
    end_ns, notes = work.end_ns, tuple[Note, ...]()
    if device in SERIAL_STREAMS:
        end_ns, notes = _clipped(work)
    sizes = raw.integer("bytes")[order]
    directed = _directed(work.name, raw, order)
    made = Activities(
        directed, work.start_ns, end_ns, work.process, work.lane, work.correlation, classify(directed.values), sizes
    )
    return made, notes, order


_DIRECTIONS: Mapping[str, str] = {"HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH"}


def _directed(names: Labels, raw: RawTrace, rows: Integers) -> Labels:
    """MTIA names every copy `dma_request` and states its direction beside it: the name then says both."""
    if "dma_request" not in names.values:
        return names
    direction = raw.text("direction").take(rows).tolist()
    return Labels.of(
        f"{name} {_DIRECTIONS[way]}" if way in _DIRECTIONS else name
        for name, way in zip(names.tolist(), direction, strict=True)
    )


def _clipped(work: Events) -> tuple[Integers, tuple[Note, ...]]:
    """Ends that do not run into the next entry of the stream, and what was taken off.

    A stream runs one entry at a time. An end far beyond the next start is a fault of the record, known from ROCm.
    Kernels of one graph are spared: its branches run side by side and may be recorded on one stream. An entry of no
    duration takes up no time on its stream, so that none runs into it.
    """
    lasting = np.flatnonzero(work.end_ns > work.start_ns)
    if lasting.size == 0:
        return work.end_ns, ()
    order = lasting[np.lexsort((work.start_ns[lasting], work.lane[lasting], work.process[lasting]))]
    lane, process = work.lane[order], work.process[order]
    start, end, launch = work.start_ns[order], work.end_ns[order], work.correlation[order]
    follows = (lane[1:] == lane[:-1]) & (process[1:] == process[:-1])
    overrun = np.where(follows, end[:-1] - start[1:], 0)
    one_graph = (launch[1:] == launch[:-1]) & (launch[1:] != ABSENT)
    span = np.minimum(np.arange(start.size - 1) + COVERED, start.size - 1)
    covers = (end[:-1] > start[span]) & (lane[span] == lane[:-1]) & (process[span] == process[:-1])
    corrupt = (end[:-1] - start[:-1] >= CORRUPT_NS) & covers
    fault = (overrun > DEPENDENT_LAUNCH_NS) & (~one_graph | corrupt)
    if not fault.any():
        return work.end_ns, ()
    fixed = work.end_ns.copy()
    fixed[order[:-1][fault]] = start[1:][fault]
    removed = int(overrun[fault].sum())
    text = (
        f"{count(int(fault.sum()), 'device entry', 'device entries')} ran into the next one on its stream (a corrupt "
        f"duration): clipped, {duration(removed)} taken off"
    )
    return fixed, (Note(text),)
