"""SGLang's merged traces: all ranks in one file, each process id prefixed with its rank's label, `[TP00-DP01] 4711`.

Correlation ids repeat over the ranks of such a file, so it is taken apart before anything is joined.

Source: sglang/srt/utils/profile_merger.py.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from analyzer.ingest.kineto.raw import Descriptions, RawTrace
from analyzer.stats.arrays import Integers

_LABELLED = re.compile(r"^\[((?:(?:TP|DP|PP|EP)\d+-?)+)\] (\S+)$")
_PART = re.compile(r"(TP|DP|PP|EP)(\d+)")
_ORDER = ("pp", "dp", "tp", "ep")
"""Axes of a rank's number, slowest first."""

Placed = tuple[dict[str, int], RawTrace]


def parts(raw: RawTrace) -> tuple[Placed, ...]:
    """Coordinates and events of each rank in order of rank; none where the file is of one rank."""
    labelled = {number: _LABELLED.match(raw.word(number) or "") for number in np.unique(raw.process).tolist()}
    found = {number: match for number, match in labelled.items() if match is not None}
    labels = sorted({match[1] for match in found.values()}, key=_place)
    return tuple(
        (
            dict(_coordinates(label)),
            _part(raw, {number: match[2] for number, match in found.items() if match[1] == label}),
        )
        for label in labels
    )


def _coordinates(label: str) -> list[tuple[str, int]]:
    return [(axis.lower(), int(number)) for axis, number in _PART.findall(label)]


def _place(label: str) -> tuple[int, ...]:
    at = dict(_coordinates(label))
    return tuple(at.get(axis, 0) for axis in _ORDER)


def _part(raw: RawTrace, own: dict[int, str]) -> RawTrace:
    """The events of some processes, their ids without the label."""
    numbers = {number: int(text) if text.lstrip("-").isdecimal() else number for number, text in own.items()}
    rows = np.isin(raw.process, list(numbers))
    described = np.isin(raw.descriptions.process, list(numbers))
    part = raw.take(rows)
    return replace(
        part,
        process=_renamed(part.process, numbers),
        descriptions=Descriptions(
            _renamed(raw.descriptions.process[described], numbers),
            raw.descriptions.thread[described],
            raw.descriptions.key.take(described),
            raw.descriptions.text.take(described),
        ),
        metadata={**raw.metadata, "distributedInfo": shared(raw.metadata.get("distributedInfo"))},
    )


def shared(job: object) -> dict[str, object]:
    """What holds for all ranks; rank and groups are those of whichever file came first."""
    return (
        {key: value for key, value in job.items() if key in ("backend", "world_size", "nccl_version")}
        if isinstance(job, dict)
        else {}
    )


def _renamed(process: Integers, numbers: dict[int, int]) -> Integers:
    values, places = np.unique(process, return_inverse=True)
    return np.array([numbers[value] for value in values.tolist()], np.int64)[places.reshape(-1)]
