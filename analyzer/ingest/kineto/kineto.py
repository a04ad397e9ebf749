"""One trace file to columns: the door of reading."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    problem_counts = Problems()
    with Stream(path) as stream:
        head = read_head(stream, problem_counts)
        other = foreign.vendor(head.opening + head.events)
        if other:
            raise TraceFormatError(f"{path}: {other}")
        documents = Documents(stream, head, detail, block_bytes)
        salvage = Salvage(documents, Decoder(head.events), problem_counts)
        builder = Builder(detail, problem_counts)
        with _no_collector():
            for document in documents:
                builder.add(salvage.events(document))
        if stream.problem:
            problem_counts[stream.problem] += 1
    if builder.seen + documents.left_out == 0:
        _refuse_empty(path, problem_counts)
        problem_counts[problems.NO_EVENTS] += 1
    return _trace(path, builder, head.metadata | salvage.metadata, problem_counts)


def _trace(path: Path, builder: Builder, metadata: dict[str, object], problem_counts: Problems) -> RawTrace:
    metadata = {whole(key): _printable(value) for key, value in metadata.items()}
    columns = builder.dense(_base_ns(metadata, builder.latest_ns, problem_counts))
    integers, texts = builder.arguments()
    descriptions = builder.descriptions()
    return RawTrace(
        path, *columns, integers, texts, descriptions, builder.words, metadata, problems.notes(problem_counts)
    )


def _base_ns(metadata: dict[str, object], latest_ns: int, problem_counts: Problems) -> int:
    """Nanoseconds that the file's starts count from."""
    base = exact.integer(metadata.get("baseTimeNanoseconds", 0))
    if not 0 <= base < _LATEST_BASE_NS:
        problem_counts[problems.ODD_BASE] += 1
        return 0
    if base and latest_ns >= _ABSOLUTE_FROM_NS:
        problem_counts[problems.BASE_TWICE] += 1
        return 0
    return base


def _refuse_empty(path: Path, problem_counts: Problems) -> None:
    """Objects, none of which is an event, are no trace; an empty list is one."""
    if problem_counts[problems.NO_PHASE]:
        raise TraceFormatError(
            f"{path}: a list of {problem_counts[problems.NO_PHASE]:,} objects, none of which is a trace event "
            "(no 'ph'); pass a trace that torch.profiler exported"
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
