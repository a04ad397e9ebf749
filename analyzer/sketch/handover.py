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
    return {key: int(value) for key, _, value in (word.partition("=") for word in text.split())}


def handover(facts: dict[str, str], column_ns: int) -> Handover:
    """What the lines `kv` and `counted` say.

    Raises:
        ValueError: a message that the notation does not have.
    """
    matches = [_KV.match(word) for word in facts.get("kv", "").split()]
    if None in matches:
        raise ValueError(f"not in the notation: kv {facts['kv']!r}")
    rows = [tuple(map(int, match.groups())) for match in matches if match]
    messages = tuple(
        Message(0, source, target, n_bytes, *(column * column_ns for column in times))
        for source, target, n_bytes, *times in rows
    )
    if "counted" not in facts:
        return Handover(messages=messages)
    counts = numbers(facts["counted"])
    counted = Counted(
        counts["transfers"], counts["bytes"], counts["time_ns"], counts.get("post_ns"), counts.get("descriptors")
    )
    return Handover(
        messages=messages,
        counted=counted if counted.transfers else None,
        computed_tokens=counts.get("computed"),
        fetched_tokens=counts.get("fetched"),
    )
