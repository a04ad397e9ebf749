"""What forbids an extrapolation from one run: each limit is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.units import share, size

LARGEST_UNKNOWN = 0.30
"""Share of the step in classes that nothing scales."""
LARGEST_GROWTH = 4.0
"""Growth of the degree, or its inverse: 8x missed by 24 % in the median, and the causes of turns are not in it."""
HOST_BOUND = 0.40
"""Share of the step in which the device waits for the host."""
MEMORY_RESERVE = 1.10
"""Weights and KV cache need this many times their size."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What limits a split, None where unknown.

    Attributes:
        query_heads: of the model.
        kv_heads: of the model; beyond this degree the cache is replicated.
        experts: of the model, where the split divides them.
        node_ranks: ranks of the group that fit into one node.
        weights_bytes: of the whole model.
        kv_bytes: KV cache that one rank needs at the load measured.
        capacity_bytes: memory of one device.
        added_calls: collectives of one step that the split adds to a run at degree 1: two a layer.
        added_bytes: message of each: tokens × hidden size × bytes an element.
        on_host: whether the ranks compute on the cores of a host instead of devices of their own.
    """

    query_heads: int | None = None
    kv_heads: int | None = None
    experts: int | None = None
    node_ranks: int | None = None
    weights_bytes: float | None = None
    kv_bytes: float | None = None
    capacity_bytes: float | None = None
    added_calls: float | None = None
    added_bytes: int | None = None
    on_host: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one run says nothing of another degree.

    Attributes:
        degree: the one asked for.
        reasons: sentences, at least one.
    """

    degree: int
    reasons: tuple[str, ...]


def refusals(
    facts: Facts, degrees: tuple[int, int], times_ns: tuple[float, float, float], *, has_new_reference: bool
) -> tuple[str, ...]:
    """The limits that the question meets.

    Args:
        facts: of model and machine.
        degrees: measured, asked for.
        times_ns: unknown, waiting for the host, whole step.
        has_new_reference: whether the speed of the rung beyond the node is known.
    """
    return (
        *_times(times_ns),
        *_reach(facts, degrees, has_new_reference=has_new_reference),
        *divisions(facts, degrees[1]),
        *_memory(facts, degrees),
    )


def _times(times_ns: tuple[float, float, float]) -> Iterator[str]:
    unknown_ns, host_ns, step_ns = times_ns
    if unknown_ns > LARGEST_UNKNOWN * step_ns:
        yield f"{share(unknown_ns / step_ns)} of the step is in classes that nothing scales; at most 30 % may be"
    if host_ns > HOST_BOUND * step_ns:
        yield f"the device waits for the host {share(host_ns / step_ns)} of the step; use CUDA graphs and record again"


def _reach(facts: Facts, degrees: tuple[int, int], *, has_new_reference: bool) -> Iterator[str]:
    now, then = degrees
    if max(now / then, then / now) > LARGEST_GROWTH:
        yield f"degree {then} is more than four times away from {now}; measure one in between"
    if facts.node_ranks is not None and now <= facts.node_ranks < then and not has_new_reference:
        yield (
            f"degree {then} leaves the node of {facts.node_ranks} ranks, and the network's figures are absent; "
            "give a table of nccl-tests over two nodes"
        )


def divisions(facts: Facts, degree: int) -> Iterator[str]:
    """Heads and experts that do not divide, a sentence each."""
    for count, what in ((facts.query_heads, "query heads"), (facts.experts, "experts")):
        if count is not None and count % degree:
            yield f"{count} {what} do not divide by {degree}"
    heads = facts.kv_heads
    if heads is not None and max(heads, degree) % min(heads, degree):
        yield f"{heads} KV heads neither divide by {degree} nor into it"


def _memory(facts: Facts, degrees: tuple[int, int]) -> Iterator[str]:
    if facts.weights_bytes is None or facts.capacity_bytes is None:
        return
    now, then = degrees
    heads = facts.kv_heads or max(now, then)
    kv_bytes = (facts.kv_bytes or 0.0) * min(now, heads) / min(then, heads)
    needed = (facts.weights_bytes / then + kv_bytes) * MEMORY_RESERVE
    if needed > facts.capacity_bytes:
        yield f"degree {then} needs {size(needed)} a device, which has {size(facts.capacity_bytes)}"
