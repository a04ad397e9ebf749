"""Messages of collectives on a host, from the shapes of their tensors: gloo writes no other metadata."""

from __future__ import annotations

from math import prod

import msgspec
import numpy as np

from analyzer.ingest.raw import RawTrace
from analyzer.model.events import ABSENT, Activities, Integers, Labels
from analyzer.model.kind import Kind
from analyzer.model.trace import CollectiveRecords

WIDTH = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1, "signed char": 1, "short int": 2,
    "short": 2, "int": 4, "long int": 8, "long": 8, "bool": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
}  # fmt: skip
"""Bytes of an element by the C++ type that the profiler writes."""


def shaped(raw: RawTrace, work: Activities, rows: Integers) -> CollectiveRecords:
    """Records of the communication activities whose tensors' shapes are known.

    The bytes of all tensors of an operation are counted: of a gather, its inputs or outputs, as the operation lists.
    """
    dims, types = raw.text("Input Dims"), raw.text("Input type")
    known = (work.kind == Kind.COMMUNICATION) & dims.take(rows).where(lambda text: text not in ("", "[]"))
    at = np.flatnonzero(known)
    if at.size == 0:
        return CollectiveRecords.none()
    source = rows[at]
    shapes, kinds = dims.take(source).tolist(), types.take(source).tolist()
    table: dict[tuple[str, str], int] = {}
    for pair in zip(shapes, kinds, strict=True):
        if pair not in table:
            table[pair] = tensor_bytes(*pair)
    n_bytes = np.array([table[pair] for pair in zip(shapes, kinds, strict=True)], np.int64)
    blank, absent = Labels.of([""] * at.size), np.full(at.size, ABSENT, np.int64)
    return CollectiveRecords(
        activity=at.astype(np.int64),
        operation=work.subclass.take(at),
        group=blank,
        description=blank,
        members=blank,
        group_size=absent,
        dtype=Labels.of(kinds),
        in_bytes=n_bytes,
        out_bytes=n_bytes,
        sequence=absent,
        peer=absent,
        splits=blank,
    )


def tensor_bytes(dims: str, types: str) -> int:
    """Bytes of all tensors of an operation from the JSON of its shapes and types; ABSENT where a type is unknown."""
    try:
        shapes, kinds = msgspec.json.decode(dims), msgspec.json.decode(types or "[]")
    except msgspec.DecodeError:
        return ABSENT
    total, counted = 0, False
    for shape, kind in zip(shapes, kinds, strict=False):
        if not isinstance(shape, list) or not shape or kind not in WIDTH:
            continue
        tensors = shape if isinstance(shape[0], list) else [shape]
        total += WIDTH[kind] * sum(prod(tensor) for tensor in tensors)
        counted = True
    return total if counted else ABSENT
