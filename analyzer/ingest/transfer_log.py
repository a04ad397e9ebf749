"""Transfers of keys and values as engines log them: vLLM's NIXL and Mooncake connectors, LMCache, SGLang."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import TraceFormatError
from analyzer.model.handover import Counted, Handover

_MS, _MIB, _GIB = 1_000_000, 1 << 20, 1 << 30
_VLLM = "KV Transfer metrics:"
_FIELD = re.compile(r"([A-Z][\w ]*(?: \(ms\))?)=([\d.]+)")
_LMCACHE = re.compile(r"Retrieved \d+ out of .*? tokens.* size: ([\d.]+) gb, cost ([\d.]+) ms")
_SGLANG = re.compile(r"transfer_speed=([\d.]+) ?GB/s, transfer_total=([\d.]+) ?MB")
"""Forms as in vllm/distributed/kv_transfer/kv_connector/v1, lmcache/v1/cache_engine.py and SGLang's time statistics.

MB are 2^20 bytes and GB 2^30 in all of them.
"""


@dataclass(frozen=True, slots=True)
class _Line:
    """What one line tells: a connector, and totals of its transfers."""

    carrier: str
    counted: Counted


def read_transfer_log(path: Path) -> Handover:
    """Totals over all lines of an engine's log that tell of transfers.

    vLLM rounds a mean time to 1 us and a mean size to 1 kB, which limits the totals; SGLang's time is its size over its
    speed.

    Raises:
        TraceFormatError: no file, or no such line in it.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as fault:
        raise TraceFormatError(f"{path}: cannot be read ({fault.strerror}); name an engine's log") from fault
    lines = [parsed for line in text.splitlines() for parsed in _parsed(line)]
    if not lines:
        raise TraceFormatError(
            f"{path}: no line tells of transfers; expected vLLM's {_VLLM!r}, LMCache's 'Retrieved … tokens' or "
            "SGLang's 'transfer_speed='"
        )
    counts = [line.counted for line in lines]
    posts = [counted.post_ns for counted in counts if counted.post_ns is not None]
    pieces = [counted.descriptors for counted in counts if counted.descriptors is not None]
    whole = Counted(
        sum(counted.transfers for counted in counts),
        sum(counted.size_bytes for counted in counts),
        sum(counted.time_ns for counted in counts),
        sum(posts) if len(posts) == len(counts) else None,
        sum(pieces) if len(pieces) == len(counts) else None,
    )
    return Handover(tuple(dict.fromkeys(line.carrier for line in lines)), counted=whole)


def _parsed(line: str) -> Iterator[_Line]:
    _, vllm, rest = line.partition(_VLLM)
    if vllm:
        yield from _vllm(dict(_FIELD.findall(rest)))
    elif match := _LMCACHE.search(line):
        yield _Line("LMCache", Counted(1, round(float(match[1]) * _GIB), round(float(match[2]) * _MS)))
    elif (match := _SGLANG.search(line)) and float(match[1]):
        n_bytes = float(match[2]) * _MIB
        yield _Line("SGLang", Counted(1, round(n_bytes), round(n_bytes / (float(match[1]) * _GIB) * 1e9)))


def _vllm(fields: dict[str, str]) -> Iterator[_Line]:
    count = int(float(fields.get("Num successful transfers", "0")))
    if not count or "Avg xfer time (ms)" not in fields or "Avg MB per transfer" not in fields:
        return
    post, pieces = fields.get("Avg post time (ms)"), fields.get("Avg number of descriptors")
    yield _Line(
        "NIXL" if post is not None else "Mooncake",
        Counted(
            count,
            round(float(fields["Avg MB per transfer"]) * _MIB * count),
            round(float(fields["Avg xfer time (ms)"]) * _MS * count),
            None if post is None else round(float(post) * _MS * count),
            None if pieces is None else round(float(pieces) * count),
        ),
    )
