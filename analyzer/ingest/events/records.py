"""Collective metadata: what torch wrote on kernels, or on the operation that launched them."""

from __future__ import annotations

import numpy as np

from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.kind import Kind
from analyzer.model.trace import CollectiveRecords
from analyzer.stats.arrays import Integers

OPERATIONS = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "_allgather_base": "all_gather",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "all_to_all_single": "all_to_all",
    "alltoall_base": "all_to_all",
    "gather": "gather_to_root",
    "scatter": "scatter_from_root",
    "reduce": "reduce_to_root",
}
"""Names that torch gave to an operation; those that are not here are words of ours already."""

NOT_A_CALL = ("wait", "startCoalescing", "endCoalescing", "")

ELEMENT_BYTES = {
    "Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Short": 2, "Int": 4, "Long": 8,
    "Bool": 1, "ComplexFloat": 8, "ComplexDouble": 16, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1,
}  # fmt: skip
"""By torch's element type names; a type that is not here has unknown bytes."""


def records(raw: RawTrace, work: Activities, rows: Integers, calls: Events) -> CollectiveRecords:
    """Metadata of the communication activities that have any.

    Args:
        raw: the file.
        work: its activities.
        rows: int64[n], row in `raw` of each activity.
        calls: launches, in order of start.
    """
    name = raw.text("Collective name")
    communicates = np.flatnonzero(work.kind == Kind.COMMUNICATION)
    described = rows[communicates]
    bare = name.take(described).where(lambda word: word == "")
    described = np.where(bare, _launching_operation(raw, work, communicates, calls), described)
    kept = described != ABSENT
    operation = name.take(np.maximum(described, 0))
    kept &= ~operation.where(lambda word: word in NOT_A_CALL)
    activity, source = communicates[kept], described[kept]
    return _columns(raw, activity, source) if activity.size else CollectiveRecords.none()


def _launching_operation(raw: RawTrace, work: Activities, chosen: Integers, calls: Events) -> Integers:
    """Row in `raw` of the `record_param_comms` around the launch of each chosen activity; ABSENT where none is."""
    none = np.full(chosen.size, ABSENT, np.int64)
    described = np.flatnonzero(raw.name.where(lambda name: name == "record_param_comms"))
    launches = np.flatnonzero(calls.correlation != ABSENT)
    if described.size == 0 or launches.size == 0:
        return none
    keys, first = np.unique(calls.correlation[launches], return_index=True)
    position = np.minimum(np.searchsorted(keys, work.correlation[chosen]), keys.size - 1)
    launched = keys[position] == work.correlation[chosen]
    call = launches[first[position]]
    order = described[np.lexsort((raw.start_ns[described], raw.thread[described]))]
    launching = none
    for thread in np.unique(raw.thread[order]):
        on_thread = order[raw.thread[order] == thread]
        before = np.searchsorted(raw.start_ns[on_thread], calls.start_ns[call], side="right") - 1
        operation = on_thread[np.maximum(before, 0)]
        inside = calls.start_ns[call] <= raw.start_ns[operation] + raw.duration_ns[operation]
        hit = launched & (before >= 0) & inside & (calls.lane[call] == thread)
        launching = np.where(hit, operation, launching)
    return launching


def _columns(raw: RawTrace, activity: Integers, source: Integers) -> CollectiveRecords:
    dtype = raw.text("dtype").take(source)
    width = np.array([ELEMENT_BYTES.get(word, ABSENT) for word in dtype.values] or [ABSENT], np.int64)[dtype.codes]
    elements = (raw.integer(key)[source] for key in ("In msg nelems", "Out msg nelems"))
    in_bytes, out_bytes = (np.where((n < 0) | (width < 0), ABSENT, n * width).astype(np.int64) for n in elements)
    operation = raw.text("Collective name").take(source)
    splits = [
        "" if in_split in ("", "[]") and out_split in ("", "[]") else f"{in_split};{out_split}"
        for in_split, out_split in zip(
            raw.text("In split size").take(source).tolist(),
            raw.text("Out split size").take(source).tolist(),
            strict=True,
        )
    ]
    target, origin = raw.integer("Dst Rank")[source], raw.integer("Src Rank")[source]
    words = tuple(OPERATIONS.get(word, word) for word in operation.values)
    return CollectiveRecords(
        activity=activity.astype(np.int64),
        operation=Labels(words, operation.codes),
        group=raw.text("Process Group Name").take(source),
        description=raw.text("Process Group Description").take(source),
        members=raw.text("Process Group Ranks").take(source),
        group_size=raw.integer("Group size")[source],
        dtype=dtype,
        in_bytes=in_bytes,
        out_bytes=out_bytes,
        sequence=raw.integer("Seq")[source],
        peer=np.where(target != ABSENT, target, origin),
        splits=Labels.of(splits),
    )
