"""One trace file as a Trace: device work, host calls, operations, annotations, metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from analyzer.ingest.events import ascend, device, devices, host, merged
from analyzer.ingest.events.origin import origin_of
from analyzer.ingest.events.records import records
from analyzer.ingest.events.shapes import shaped
from analyzer.ingest.filenames import FileIdentity
from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.kineto.kineto import read
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.ingest.sessions import UNRANKED
from analyzer.model.trace import EVERYTHING, CollectiveRecords, Note, Trace
from analyzer.stats.arrays import Integers, Mask


def read_traces(path: Path, identity: FileIdentity, detail: Detail) -> tuple[Trace, ...]:
    """The trace of one file, or those of all ranks of a merged one.

    A file without device work is read again with every host operation.

    Raises:
        TraceFormatError: no trace, or nothing in it.
    """
    raw = read(path, detail)
    placed = merged.parts(raw)
    if not placed:
        ranked = () if ascend.is_ascend(raw) else devices.ranks_of(raw)
        if ranked:
            return tuple(_of_several(part, identity, rank, len(ranked)) for rank, part in ranked)
        return (_trace(raw, identity, path),)
    return tuple(
        _trace(
            replace(part, problems=() if rank else raw.problems),
            replace(identity, rank=rank, placement=coordinates),
            None,
        )
        for rank, (coordinates, part) in enumerate(placed)
    )


def _of_several(part: RawTrace, identity: FileIdentity, rank: int, files_devices: int) -> Trace:
    """The trace of one of the devices of a file."""
    trace = _trace(part, replace(identity, rank=rank, placement={}), None)
    text = f"one file holds the work of {files_devices} devices: each is shown as a rank of its own"
    return replace(trace, notes=(*trace.notes, Note(text)))


def _trace(raw: RawTrace, identity: FileIdentity, path: Path | None) -> Trace:
    """One rank's trace; `path` to read again from, None for a part of a file."""
    if ascend.is_ascend(raw):
        raw = ascend.with_steps_named(raw)
        return _with_device(raw, identity, "npu", ascend.is_work(raw))
    work = device.is_work(raw)
    if work.any():
        return _with_device(raw, identity, device.device_kind(raw), work)
    return _without_device(read(path, Detail.ALL) if path else raw, identity)


def _with_device(raw: RawTrace, identity: FileIdentity, kind: str, work: Mask) -> Trace:
    correlation: Integers | None = None
    call_rows = raw.category.where(lambda category: category.lower() in device.CALLS)
    if kind == "npu":
        correlation = raw.integer("connection_id")
        call_rows |= ascend.is_call(raw)
    activities, notes, rows = device.activities(raw, work, kind)
    calls = device.events(raw, call_rows, correlation)
    used = np.bincount(np.clip(raw.process[rows], 0, 1 << 16)).argmax() if kind != "npu" else 0
    return Trace(
        rank=_rank(raw, identity),
        origin=origin_of(raw, identity, kind, int(used)),
        activities=activities,
        calls=calls,
        ops=device.events(raw, raw.category.where(lambda category: category.lower() in host.OPERATIONS)),
        annotations=device.events(raw, _annotations(raw)),
        collectives=records(raw, activities, rows, calls),
        notes=(*raw.problems, *notes),
    )


def _without_device(raw: RawTrace, identity: FileIdentity) -> Trace:
    activities, rows = host.leaf_activities(raw)
    calls = device.events(raw, raw.category.where(lambda category: category.lower() in device.CALLS))
    notes = list(raw.problems)
    if raw.metadata.get("deviceProperties") and len(activities):
        is_unknown = not host.is_carried_out(raw).any()  # collectives of a host are carried out for work on the host
        text = "a device is listed but none of its work was recorded"
        notes.append(
            Note(text, doubts=EVERYTHING) if is_unknown else Note(f"{text}: host operations are shown instead")
        )
        activities = host.not_compute(activities) if is_unknown else activities
    origin = origin_of(raw, identity, "cpu", None)
    return Trace(
        rank=_rank(raw, identity),
        origin=origin,
        activities=activities,
        calls=calls,
        ops=device.events(raw, raw.category.where(lambda category: category.lower() in host.OPERATIONS)),
        annotations=device.events(raw, _annotations(raw)),
        collectives=shaped(raw, activities, rows, origin.groups) if len(activities) else CollectiveRecords.none(),
        notes=tuple(notes),
    )


def _annotations(raw: RawTrace) -> Mask:
    marks: Mask = raw.category.where(lambda category: category == "user_annotation") & ~host.is_carried_out(raw)
    return marks


def _rank(raw: RawTrace, identity: FileIdentity) -> int:
    """Metadata first, then the file's name, then its folder."""
    job = raw.metadata.get("distributedInfo")
    stated = job.get("rank") if isinstance(job, dict) else None
    for rank in (stated, identity.rank):
        if isinstance(rank, int) and rank >= 0:
            return rank
    return UNRANKED
