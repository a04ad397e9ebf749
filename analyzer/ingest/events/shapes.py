"""Messages of collectives on a host, from the shapes of their tensors: gloo writes no other metadata."""

from __future__ import annotations

from math import prod

import msgspec
import numpy as np

from analyzer.classify import classify
from analyzer.ingest.events.host import POINT_TO_POINT
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.events import ABSENT, Activities, Labels
from analyzer.model.kind import Kind
from analyzer.model.trace import CollectiveRecords, ProcessGroup
from analyzer.stats.arrays import Integers

WIDTH = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1, "signed char": 1, "short int": 2,
    "short": 2, "int": 4, "long int": 8, "long": 8, "bool": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
}  # fmt: skip
"""Bytes of an element by the C++ type that the profiler writes."""

_PEER_POSTS = ("c10d::send", "c10d::recv")


def shaped(raw: RawTrace, work: Activities, rows: Integers, groups: tuple[ProcessGroup, ...]) -> CollectiveRecords:
    """Records of the communication activities whose tensors' shapes are known.

    No record names its group. Where all groups of more than one rank have the same ranks, it can only be theirs.

    The bytes of all tensors of an operation are counted: of a gather, its inputs or outputs, as the operation lists.
    """
    dims, types = raw.text("Input Dims"), raw.text("Input type")
    known = (work.kind == Kind.COMMUNICATION) & dims.take(rows).where(lambda text: text not in ("", "[]"))
    activity = np.flatnonzero(known)
    if activity.size == 0:
        return CollectiveRecords.none()
    source = rows[activity]
    shapes, kinds = dims.take(source).tolist(), types.take(source).tolist()
    table: dict[tuple[str, str], int] = {}
    for pair in zip(shapes, kinds, strict=True):
        if pair not in table:
            table[pair] = tensor_bytes(*pair)
    n_bytes = np.array([table[pair] for pair in zip(shapes, kinds, strict=True)], np.int64)
    operation = _operations(raw, work, activity, source)
    shared = {group.ranks: group for group in reversed(groups) if group.size > 1}
    group = next(iter(shared.values())) if len(shared) == 1 else ProcessGroup("", "", ABSENT, ())
    gathered = operation.where(lambda word: word == "all_gather") & (n_bytes != ABSENT)
    out_bytes = np.where(gathered, n_bytes * group.size if group.size > 1 else ABSENT, n_bytes)
    blank, absent = Labels.of([""] * activity.size), np.full(activity.size, ABSENT, np.int64)
    return CollectiveRecords(
        activity=activity.astype(np.int64),
        operation=operation,
        group=Labels.of([group.name] * activity.size),
        description=Labels.of([group.description] * activity.size),
        members=Labels.of([str(list(group.ranks)) if group.ranks else ""] * activity.size),
        group_size=np.full(activity.size, group.size, np.int64),
        dtype=Labels.of(kinds),
        in_bytes=n_bytes,
        out_bytes=out_bytes,
        sequence=absent,
        peer=absent,
        splits=blank,
    )


def _operations(raw: RawTrace, work: Activities, activity: Integers, source: Integers) -> Labels:
    """Kind of each collective; gloo names the function that ran, the operation that posted it names the collective.

    A reduce-scatter runs as `gloo:all_reduce`. Posts and runs come in one order; where their numbers differ, the names
    of the runs stand.
    """
    runs = raw.name.where(lambda name: name.startswith("gloo:") and not name.startswith(POINT_TO_POINT))
    posts = raw.name.where(lambda name: name.startswith("c10d::") and not name.startswith(_PEER_POSTS))
    run_rows, post_rows = (
        rows[np.argsort(raw.start_ns[rows], kind="stable")] for rows in map(np.flatnonzero, (runs, posts))
    )
    words = work.subclass.take(activity).tolist()
    if run_rows.size != post_rows.size:
        return Labels.of(words)
    names = raw.name.take(post_rows).tolist()
    table = dict(zip(names, classify(tuple(names)), strict=True))
    posted = dict(zip(run_rows.tolist(), (table[name] for name in names), strict=True))
    patterns = (posted.get(row) for row in source.tolist())
    return Labels.of(word if post is None else post.subclass for word, post in zip(words, patterns, strict=True))


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
