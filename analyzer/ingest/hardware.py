"""`hardware.toml`: figures of a site's own machines, written by hand or by `shardscope hardware`.

schema = 1

[link.network]
gigabytes_per_s = 180.0
hop_us = 3.5

[[measured]]
operation = "all_reduce"
ranks = 8
nodes = 1
device = "NVIDIA H100 80GB HBM3"
source = "all_reduce_perf on node-1"
message_bytes = [1024, 2048]
time_us = [15.9, 16.1]
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import msgspec

from analyzer.errors import RunNotFoundError, TraceFormatError
from analyzer.model.hardware import LINKS, Hardware, LinkFigures, MeasuredCurve

NAME = "hardware.toml"
SCHEMA = 1
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")


class _Link(msgspec.Struct, forbid_unknown_fields=True):
    gigabytes_per_s: float | None = None
    hop_us: float | None = None


class _Measured(msgspec.Struct, forbid_unknown_fields=True):
    operation: str
    ranks: int
    message_bytes: list[int]
    time_us: list[float]
    nodes: int = 1
    device: str = ""
    source: str = NAME


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: int = SCHEMA
    link: dict[str, _Link] = {}
    measured: list[_Measured] = []


def read_hardware(path: Path) -> Hardware:
    """What the file states.

    Raises:
        RunNotFoundError: the file cannot be read.
        TraceFormatError: no TOML, a key or link that does not exist, sizes that do not ascend or have no time.
    """
    try:
        held = msgspec.toml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise RunNotFoundError(f"{path}: {error.strerror}; give the file that holds the site's figures") from error
    except msgspec.DecodeError as fault:
        raise TraceFormatError(
            f"{path}: {fault}; make one with `shardscope hardware NCCL_TESTS_OUTPUT -o {NAME}`"
        ) from fault
    if held.schema != SCHEMA:
        raise TraceFormatError(f"{path}: schema {held.schema}, this version reads schema {SCHEMA}")
    if strange := sorted(held.link.keys() - set(LINKS)):
        raise TraceFormatError(f"{path}: no such link: {', '.join(strange)}; the links are {', '.join(LINKS)}")
    figures = [figure for link in held.link.values() for figure in (link.gigabytes_per_s, link.hop_us)]
    if any(figure is not None and figure <= 0 for figure in figures):
        raise TraceFormatError(f"{path}: a figure of a link is not above 0; leave out what is not known")
    links = {name: LinkFigures(link.gigabytes_per_s, link.hop_us) for name, link in held.link.items()}
    return Hardware(links, tuple(_series(entry, path) for entry in held.measured))


def _series(entry: _Measured, path: Path) -> MeasuredCurve:
    sizes, times = entry.message_bytes, entry.time_us
    if entry.operation not in OPERATIONS:
        raise TraceFormatError(f"{path}: no such operation: {entry.operation}; they are {', '.join(OPERATIONS)}")
    ascends = all(before < after for before, after in pairwise([0, *sizes]))
    if len(sizes) != len(times) or not sizes or not ascends or any(time <= 0 for time in times):
        raise TraceFormatError(
            f"{path}: {entry.operation} on {entry.ranks} ranks needs ascending message_bytes with a time_us each"
        )
    return MeasuredCurve(
        entry.operation, entry.ranks, entry.nodes, entry.device, entry.source, tuple(sizes), tuple(times)
    )


def to_toml(series: list[MeasuredCurve]) -> str:
    """The text of a file that states these."""
    parts = [f"schema = {SCHEMA}\n"]
    for entry in series:
        lines = [
            "[[measured]]",
            *(
                f"{name} = {json.dumps(getattr(entry, name))}"
                for name in ("operation", "ranks", "nodes", "device", "source")
            ),
            f"message_bytes = {list(entry.message_bytes)}",
            f"time_us = {list(entry.time_us)}",
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
