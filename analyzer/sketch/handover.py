"""Hand-over in a drawing.

`kv` lists messages of keys and values, each `FROM>TO:BYTES@SENT-POSTED-RECEIVED` with times in columns. `counted` is
what an engine counted: `transfers=1 bytes=… time_ns=… post_ns=… descriptors=… computed=… fetched=…`.
"""

from __future__ import annotations

import re

from analyzer.model.handover import Counted, Handover, Message

_KV = re.compile(r"(\d+)>(\d+):(\d+)@(\d+)-(\d+)-(\d+)$")


def numbers(text: str) -> dict[str, int]:
    """`a=1 b=2` as whole numbers by name."""
    return {key: int(value) for key, _, value in (part.partition("=") for part in text.split())}


def handover(facts: dict[str, str], column_ns: int) -> Handover:
    """What the lines `kv` and `counted` say.

    Raises:
        ValueError: a message that the notation does not have.
    """
    found = [_KV.match(word) for word in facts.get("kv", "").split()]
    if None in found:
        raise ValueError(f"not in the notation: kv {facts['kv']!r}")
    rows = [tuple(map(int, match.groups())) for match in found if match]
    messages = tuple(
        Message(0, source, target, n_bytes, *(at * column_ns for at in times))
        for source, target, n_bytes, *times in rows
    )
    if "counted" not in facts:
        return Handover(messages=messages)
    told = numbers(facts["counted"])
    counted = Counted(told["transfers"], told["bytes"], told["time_ns"], told.get("post_ns"), told.get("descriptors"))
    return Handover(
        messages=messages,
        counted=counted if counted.transfers else None,
        computed_tokens=told.get("computed"),
        fetched_tokens=told.get("fetched"),
    )
