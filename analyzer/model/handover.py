"""What is known of keys and values handed from prefill to decode ranks, beside the traces."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """Keys and values sent by one rank to another, times in ns since the epoch.

    Attributes:
        turn: number of the batch or request that they belong to.
        source: prefill rank.
        target: decode rank.
        size_bytes: of the message.
        sent_ns: given to the transport.
        posted_ns: from when the receiver could take it.
        received_ns: all of it there.
    """

    turn: int
    source: int
    target: int
    size_bytes: int
    sent_ns: int
    posted_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class Counted:
    """By how much an engine's counters of transfers grew.

    Attributes:
        transfers: how many ended.
        size_bytes: moved.
        time_ns: sum over transfers, which may overlap.
        post_ns: the part of it that posting descriptors took; None where not told.
        descriptors: posted; None where not told.
        at_ns: when the counters were read, ns since the epoch; 0 for the whole load.
    """

    transfers: int
    size_bytes: int
    time_ns: int
    post_ns: int | None = None
    descriptors: int | None = None
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class Handover:
    """Everything that a run's record says of its hand-over.

    Attributes:
        carriers: what carried the keys and values: NIXL, Mooncake, LMCache, SGLang, P2P-NCCL or a torch backend.
        messages: one by one, where both ends were noted.
        counted: over the load; None where no counter told of a transfer.
        windows: the same between two looks at the counters, in order of time.
        computed_tokens: prompt tokens that this engine computed itself; None where not told.
        fetched_tokens: prompt tokens whose keys and values came from another engine; None where not told.
    """

    carriers: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    counted: Counted | None = None
    windows: tuple[Counted, ...] = ()
    computed_tokens: int | None = None
    fetched_tokens: int | None = None
