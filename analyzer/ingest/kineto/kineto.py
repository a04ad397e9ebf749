"""One trace file to columns: the door of reading."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from analyzer.errors import TraceFormatError
from analyzer.ingest.kineto import exact, foreign, problems
from analyzer.ingest.kineto.columns import Builder
from analyzer.ingest.kineto.decode import Decoder
from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.kineto.documents import BLOCK_BYTES, Documents
from analyzer.ingest.kineto.head import read_head
from analyzer.ingest.kineto.problems import Problems
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.ingest.kineto.repair import whole
from analyzer.ingest.kineto.salvage import Salvage
from analyzer.ingest.kineto.stamps import near_others
from analyzer.ingest.kineto.stream import Stream

__all__ = ["Detail", "read"]

_ABSOLUTE_FROM_NS = 10**18  # September 2001; a start after a clock base is at most some months
_DEEPEST = 50  # levels of nesting in metadata; no more than 5 were seen
_LATEST_BASE_NS = 2**62  # the year 2116


def read(path: Path, detail: Detail, *, block_bytes: int = BLOCK_BYTES) -> RawTrace:
    """What a Kineto trace holds; whatever damage there is, all that can be had, and notes on the rest.

    Args:
        path: Chrome-trace JSON as torch.profiler or torch_npu exports it, plain or gzip, an object or a bare list.
        detail: how much of it is wanted.
        block_bytes: read at a time; changes nothing in the result.

    Raises:
        RunNotFoundError: there is no such file.
        TraceFormatError: not such a trace, or nothing of it can be had.
    """
    found = Problems()
    with Stream(path) as stream:
        head = read_head(stream, found)
        other = foreign.vendor(head.opening + head.events)
        if other:
            raise TraceFormatError(f"{path}: {other}")
        documents = Documents(stream, head, detail, block_bytes)
        salvage = Salvage(documents, Decoder(head.events), found)
        builder = Builder(detail, found)
        with _no_collector():
            for document in documents:
                builder.add(salvage.events(document))
        if stream.problem:
            found[stream.problem] += 1
    if builder.seen + documents.left_out == 0:
        _refuse_empty(path, found)
        found[problems.NO_EVENTS] += 1
    return _trace(path, builder, head.metadata | salvage.metadata, found)


def _trace(path: Path, builder: Builder, metadata: dict[str, object], found: Problems) -> RawTrace:
    metadata = {whole(key): _printable(value) for key, value in metadata.items()}
    columns = builder.dense()
    integers, texts = builder.arguments()
    raw = RawTrace(path, *columns, integers, texts, builder.descriptions(), builder.words, metadata, ())
    near = near_others(raw.start_ns)
    if near is not None:
        found[problems.FAR] += int(np.count_nonzero(~near))
        raw = raw.take(near)
    start_ns = raw.start_ns + _base_ns(metadata, int(raw.start_ns.max(initial=0)), found)
    return replace(raw, start_ns=start_ns, problems=problems.notes(found))


def _base_ns(metadata: dict[str, object], latest_ns: int, found: Problems) -> int:
    """Nanoseconds that the file's starts count from."""
    base = exact.integer(metadata.get("baseTimeNanoseconds", 0))
    if not 0 <= base < _LATEST_BASE_NS:
        found[problems.ODD_BASE] += 1
        return 0
    if base and latest_ns >= _ABSOLUTE_FROM_NS:
        found[problems.BASE_TWICE] += 1
        return 0
    return base


def _refuse_empty(path: Path, found: Problems) -> None:
    """Objects, none of which is an event, are no trace; an empty list is one."""
    if found[problems.NO_PHASE]:
        raise TraceFormatError(
            f"{path}: a list of {found[problems.NO_PHASE]:,} objects, none of which is a trace event (no 'ph'); "
            "pass a trace that torch.profiler exported"
        )


def _printable(value: object, depth: int = 0) -> object:
    """The same value with text that can be printed, whatever bytes stood in the file; None for what is too deep."""
    if isinstance(value, str):
        return whole(value)
    if depth == _DEEPEST and isinstance(value, (list, dict)):
        return None
    if isinstance(value, list):
        return [_printable(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {whole(str(key)): _printable(each, depth + 1) for key, each in value.items()}
    return value


@contextmanager
def _no_collector() -> Iterator[None]:
    """Without cycle collection, which would walk over thousands of events that hold no cycles, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
