"""What eats the gain past the optimum: compute saved against time added, term by term, with the mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.stats.draws import expected_maximum
from analyzer.sweep.point import TERMS, Point
from analyzer.units import duration, share, size

UNEXPLAINED = "unexplained"
EXPLAINED_SHARE = 0.5
"""The terms that grew explain a loss when together they grew by at least this share of it; the largest ate the gain."""
ACCOUNTED = 0.05
"""Terms whose sum is off the value by more than this share of it leave something unaccounted."""
SMALL_MESSAGE_BYTES = 64 << 10
"""Up to this size a collective's time is latency on every fabric measured."""
BANDWIDTH_SLACK = 1.1
"""Growth of communication beyond the bandwidth term, from which another mechanism is named."""
POOR_SHARD = 0.8
"""Shard efficiency of compute below which fixed cost per kernel is named."""
NAMED_SHARE = 0.1
"""Terms that grew by this share of the loss are explained, beside the one that ate the gain."""
HOST_SHARE = 0.5
"""Share of the growth of waiting from which the host is named."""


@dataclass(frozen=True, slots=True)
class PastOptimum:
    """The balance between the optimum and a degree past it; all times under the objective's weight.

    Attributes:
        degree: past the optimum.
        against: the optimum.
        lost_ns: how much worse the degree is.
        compute_saved_ns: what the split took off compute, negative where compute grew; None where terms are unknown.
        added_ns: growth of communication, movement and sync, those that are known; negative where one shrank.
        eaten_by: the term that grew most, `compute`, or `unexplained`.
        mechanism: why it grew, as far as the points tell; what to do where they do not.
        mechanisms: the same of every term that grew by a tenth of the loss, the one that grew most first.
    """

    degree: int
    against: int
    lost_ns: float
    compute_saved_ns: float | None
    added_ns: dict[str, float]
    eaten_by: str
    mechanism: str
    mechanisms: dict[str, str] = field(default_factory=dict)


def past_optimum(
    optimum: Point, past: Point, weights: tuple[float, float] = (1.0, 1.0), kv_heads: int | None = None
) -> PastOptimum:
    """The balance between two degrees.

    Args:
        optimum: the best degree.
        past: a larger degree that is worse.
        weights: what the objective multiplies the values of the two by.
        kv_heads: key-value heads of the model; beyond that degree the cache is replicated.
    """
    lost_ns = _mean(past) * weights[1] - _mean(optimum) * weights[0]
    grown = {
        term: past.terms_ns[term] * weights[1] - optimum.terms_ns[term] * weights[0]
        for term in TERMS
        if term in past.terms_ns and term in optimum.terms_ns
    }
    added = {term: grown[term] for term in TERMS[1:] if term in grown}
    eaten_by = max(grown, key=lambda term: grown[term]) if grown else UNEXPLAINED
    if not grown or sum(max(time_ns, 0.0) for time_ns in grown.values()) < EXPLAINED_SHARE * lost_ns:
        return PastOptimum(past.degree, optimum.degree, lost_ns, _saved(grown), added, UNEXPLAINED, _unexplained(grown))
    named = [term for term in grown if grown[term] >= NAMED_SHARE * lost_ns or term == eaten_by]
    why = {term: _MECHANISMS[term](optimum, past, kv_heads) for term in sorted(named, key=lambda term: -grown[term])}
    return PastOptimum(past.degree, optimum.degree, lost_ns, _saved(grown), added, eaten_by, why[eaten_by], why)


def unaccounted(point: Point) -> float:
    """Share of a point's value that its four terms do not sum to; 0 where terms are missing or the sum holds."""
    if any(term not in point.terms_ns for term in TERMS):
        return 0.0
    rest = (_mean(point) - sum(point.terms_ns.values())) / _mean(point)
    return rest if abs(rest) > ACCOUNTED else 0.0


def _mean(point: Point) -> float:
    return sum(point.values_ns) / len(point.values_ns)


def _saved(grown: dict[str, float]) -> float | None:
    return -grown["compute"] if "compute" in grown else None


def _unexplained(grown: dict[str, float]) -> str:
    if not grown:
        return "no terms were measured at both degrees; rerun with a profile of each"
    return "no measured term grew by as much as was lost; rerun both degrees"


def _communication(optimum: Point, past: Point, kv_heads: int | None) -> str:  # noqa: ARG001 (one form for all terms)
    before, after = optimum.exchange, past.exchange
    if before.level and after.level and before.level != after.level:
        return f"slower rung: the group crosses {after.level}, at degree {optimum.degree} it stays on {before.level}"
    if after.message_bytes is not None and after.message_bytes <= SMALL_MESSAGE_BYTES:
        return f"latency: messages of {size(after.message_bytes)} cost a fixed time each, and more with every rank"
    if before.message_bytes and after.message_bytes and after.message_bytes < before.message_bytes:
        return f"smaller messages: {size(before.message_bytes)} became {size(after.message_bytes)}, the link fills less"
    if before.calls and after.calls and after.calls > before.calls * BANDWIDTH_SLACK:
        return f"more collectives: {before.calls:.0f} a step became {after.calls:.0f}"
    return _beyond_bandwidth(optimum, past)


def _beyond_bandwidth(optimum: Point, past: Point) -> str:
    """What totals of communication tell: the bandwidth term of a ring saturates as (n - 1)/n."""
    before_ns, after_ns = optimum.terms_ns["communication"], past.terms_ns["communication"]
    if optimum.degree == 1 or before_ns <= 0:
        return "the split added collectives that one rank does not need"
    grew = after_ns / before_ns
    bound = (1 - 1 / past.degree) / (1 - 1 / optimum.degree)
    if grew > bound * BANDWIDTH_SLACK:
        return (
            f"communication grew {grew:.2f}x, a ring's bandwidth term only {bound:.2f}x: latency of further ranks, "
            "or a slower rung; message sizes and placement would tell which"
        )
    return f"communication grew {grew:.2f}x, as a bandwidth term does, while compute stopped shrinking"


def _movement(optimum: Point, past: Point, kv_heads: int | None) -> str:
    if kv_heads is not None and past.degree > kv_heads:
        return f"replicated state: {kv_heads} KV heads over {past.degree} ranks are copied, not split"
    before_ns, after_ns = optimum.terms_ns["movement"], past.terms_ns["movement"]
    return f"copies grew from {duration(before_ns)} to {duration(after_ns)}: state that is moved, not split"


def _sync(optimum: Point, past: Point, kv_heads: int | None) -> str:  # noqa: ARG001 (one form for all terms)
    grown_ns = past.terms_ns["sync"] - optimum.terms_ns["sync"]
    if past.host_ns is not None and optimum.host_ns is not None:
        host_ns = past.host_ns - optimum.host_ns
        if host_ns > HOST_SHARE * grown_ns:
            return f"fixed host cost: the device waits {duration(past.host_ns)} of a step for launches"
    before, after = expected_maximum(optimum.degree), expected_maximum(past.degree)
    usual = f", {after / before:.2f}x for random delays" if before else ""
    return f"more stragglers: a step waits for the latest of {past.degree} ranks, not of {optimum.degree}{usual}"


def _compute(optimum: Point, past: Point, kv_heads: int | None) -> str:
    before_ns, after_ns = optimum.terms_ns["compute"], past.terms_ns["compute"]
    kept = before_ns * optimum.degree / (after_ns * past.degree)
    text = f"compute keeps {share(kept)} of an ideal split"
    if kv_heads is not None and past.degree > kv_heads:
        return f"replicated state: {kv_heads} KV heads over {past.degree} ranks; {text}"
    return f"fixed kernel cost: {text}" if kept < POOR_SHARD else text


_MECHANISMS = {"compute": _compute, "communication": _communication, "movement": _movement, "sync": _sync}
