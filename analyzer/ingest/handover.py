"""`run.json` on the hand-over of keys and values: messages noted at both ends, and what an engine's counters say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from analyzer.model.handover import Counted, Handover, Message

_NS = 1_000_000_000
_CARRIERS = {
    "vllm:nixl_": "NIXL",
    "vllm:mooncake_": "Mooncake",
    "mooncake": "Mooncake",
    "lmcache:": "LMCache",
    "sglang:kv_transfer_": "SGLang",
}
"""First letters of the metrics of each. Source: the metrics pages of vLLM, LMCache and SGLang."""
_CONNECTORS = {
    "nixl": "NIXL",
    "mooncake": "Mooncake",
    "lmcache": "LMCache",
    "p2pnccl": "P2P-NCCL",
}
"""Parts of the names of vLLM's connectors (`NixlConnector`, `P2pNcclConnector`, …) and of SGLang's backends."""
_POST_TIMES = ("vllm:nixl_post_time_seconds_sum",)
_DESCRIPTORS = ("vllm:nixl_num_descriptors_sum", "vllm:mooncake_num_descriptors_sum")
_BY_SOURCE = "vllm:prompt_tokens_by_source_total"


class _Counted(msgspec.Struct):
    transfers: int = 0
    bytes: int = 0
    time_ns: int = 0
    at_ns: int = 0


class _Message(msgspec.Struct, rename={"source": "from", "target": "to", "turn": "round"}):
    turn: int
    source: int
    target: int
    bytes: int
    sent_ns: int
    posted_ns: int
    received_ns: int


def handover(
    totals: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    change: Mapping[str, float],
    settings: Mapping[str, Any],
) -> Handover:
    """What a run's record says of its hand-over.

    Args:
        totals: `kv_transfers`, empty where the counters told of none.
        entries: `transfers`: messages of the built-in workload, or growth of counters between looks at a server.
        change: growth of each series of the metrics over the load.
        settings: `settings`.

    Raises:
        msgspec.ValidationError: an entry of another type.
    """
    messages = [msgspec.convert(entry, _Message) for entry in entries if "sent_ns" in entry]
    windows = [msgspec.convert(entry, _Counted) for entry in entries if "at_ns" in entry]
    whole = msgspec.convert(totals, _Counted) if totals else None
    return Handover(
        _carriers(change, settings, by_message=bool(messages)),
        tuple(
            Message(
                message.turn,
                message.source,
                message.target,
                message.bytes,
                message.sent_ns,
                message.posted_ns,
                message.received_ns,
            )
            for message in messages
        ),
        _whole(whole, change) if whole else None,
        tuple(Counted(window.transfers, window.bytes, window.time_ns, at_ns=window.at_ns) for window in windows),
        _tokens(change, "local_compute"),
        _tokens(change, "external_kv_transfer"),
    )


def _whole(totals: _Counted, change: Mapping[str, float]) -> Counted:
    post_s, descriptors = _total(change, _POST_TIMES), _total(change, _DESCRIPTORS)
    return Counted(
        totals.transfers,
        totals.bytes,
        totals.time_ns,
        None if post_s is None else round(post_s * _NS),
        None if descriptors is None else round(descriptors),
    )


def _total(change: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    values = [value for series, value in change.items() if series.partition("{")[0] in names]
    return sum(values) if values else None


def _tokens(change: Mapping[str, float], source: str) -> int | None:
    """Prompt tokens of a source; a series that did not grow is left out of the record, and is then 0."""
    series = {name: value for name, value in change.items() if name.partition("{")[0] == _BY_SOURCE}
    if not series:
        return None
    return round(sum(value for name, value in series.items() if f'source="{source}"' in name))


def _carriers(change: Mapping[str, float], settings: Mapping[str, Any], *, by_message: bool) -> tuple[str, ...]:
    carriers = [name for start, name in _CARRIERS.items() if any(series.startswith(start) for series in change)]
    stated = " ".join(str(settings.get(key, "")) for key in ("kv_connector", "disaggregation_transfer_backend")).lower()
    carriers += [name for word, name in _CONNECTORS.items() if word in stated]
    if by_message and settings.get("backend"):
        carriers.append(str(settings["backend"]))
    return tuple(dict.fromkeys(carriers))
