"""SGLang's merged traces: all ranks in one file, each process id prefixed with its rank's label, `[TP00-DP01] 4711`.

Correlation ids repeat over the ranks of such a file, so it is taken apart before anything is joined.

Source: sglang/srt/utils/profile_merger.py.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from analyzer.ingest.kineto.raw import Descriptions, RawTrace, SparseIntegers, SparseLabels
from analyzer.stats.arrays import Integers, Mask

_LABELLED = re.compile(r"^\[((?:(?:TP|DP|PP|EP)\d+-?)+)\] (\S+)$")
_PART = re.compile(r"(TP|DP|PP|EP)(\d+)")
_ORDER = ("pp", "dp", "tp", "ep")
"""Axes of a rank's number, slowest first."""

Placed = tuple[dict[str, int], RawTrace]


def parts(raw: RawTrace) -> tuple[Placed, ...]:
    """Coordinates and events of each rank in order of rank; none where the file is of one rank."""
    labelled = {number: _LABELLED.match(raw.word(number) or "") for number in np.unique(raw.process).tolist()}
    matches = {number: match for number, match in labelled.items() if match is not None}
    labels = sorted({match[1] for match in matches.values()}, key=_sort_key)
    return tuple(
        (
            dict(_coordinates(label)),
            _of_processes(raw, {number: match[2] for number, match in matches.items() if match[1] == label}),
        )
        for label in labels
    )


def _coordinates(label: str) -> list[tuple[str, int]]:
    return [(axis.lower(), int(number)) for axis, number in _PART.findall(label)]


def _sort_key(label: str) -> tuple[int, ...]:
    coordinates = dict(_coordinates(label))
    return tuple(coordinates.get(axis, 0) for axis in _ORDER)


def _of_processes(raw: RawTrace, unlabelled: dict[int, str]) -> RawTrace:
    """The events of some processes, their ids without the label."""
    numbers = {number: int(text) if text.lstrip("-").isdecimal() else number for number, text in unlabelled.items()}
    rows = np.isin(raw.process, list(numbers))
    described = np.isin(raw.descriptions.process, list(numbers))
    return replace(
        raw,
        phase=raw.phase.take(rows),
        category=raw.category.take(rows),
        name=raw.name.take(rows),
        start_ns=raw.start_ns[rows],
        duration_ns=raw.duration_ns[rows],
        process=_renamed(raw.process[rows], numbers),
        thread=raw.thread[rows],
        integers={
            key: SparseIntegers(*_kept(column.rows, column.values, rows)) for key, column in raw.integers.items()
        },
        texts={key: _texts(column, rows) for key, column in raw.texts.items()},
        descriptions=Descriptions(
            _renamed(raw.descriptions.process[described], numbers),
            raw.descriptions.thread[described],
            raw.descriptions.key.take(described),
            raw.descriptions.text.take(described),
        ),
        metadata={**raw.metadata, "distributedInfo": _shared(raw.metadata.get("distributedInfo"))},
    )


def _shared(job: object) -> dict[str, object]:
    """What holds for all ranks; rank and groups are those of whichever file came first."""
    return (
        {key: value for key, value in job.items() if key in ("backend", "world_size", "nccl_version")}
        if isinstance(job, dict)
        else {}
    )


def _renamed(process: Integers, numbers: dict[int, int]) -> Integers:
    values, places = np.unique(process, return_inverse=True)
    return np.array([numbers[value] for value in values.tolist()], np.int64)[places.reshape(-1)]


def _kept(value_rows: Integers, values: Integers, rows: Mask) -> tuple[Integers, Integers]:
    keep = rows[value_rows]
    return (np.cumsum(rows) - 1)[value_rows[keep]].astype(np.int64), values[keep]


def _texts(column: SparseLabels, rows: Mask) -> SparseLabels:
    keep = rows[column.rows]
    return SparseLabels((np.cumsum(rows) - 1)[column.rows[keep]].astype(np.int64), column.values.take(keep))
