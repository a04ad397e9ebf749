"""Is disaggregation worth its transfer: gain of separate phases against transfer and lost locality, term by term."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.model.handover import Counted
from analyzer.model.run import Run
from analyzer.pd.ledger import HandOver, Pair
from analyzer.pd.pools import decode_steps, ranks_of, steps_of
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Mask
from analyzer.steps.steps import Phase, RankSteps

DESCRIPTOR_NS = 3_400
"""Posting one descriptor. Source: two NIXL logs, 129 ms / 40,064 = 3.2 us and 6.7 ms / 1,785 = 3.8 us."""
BOUND_SHARE = 0.5
"""Of the transfer's time, spent on posting: above it smaller descriptors' cost, not the link, sets the time."""
LINK_SHARE = 0.4
"""Of the line rate: a transfer above it is bound by the link. Source: RDMA transfers from 146 MB up reach 48 % and more
on 8 x 200G, those of 38 MB and less, where starting takes most of the time, at most 31 %."""
TIE_SHARE = 0.05
"""Difference below which two times are a tie: what repeats of a serving benchmark differ by."""

PAYS, LOSES, TIE, UNKNOWN = "pays", "does not pay", "tie", "unknown"


@dataclass(frozen=True, slots=True)
class VerdictTerm:
    """One side's part of the verdict, mean of a hand-over.

    Attributes:
        name: of the term.
        side: gain or cost.
        value_ns: None where unknown.
        basis: measured, derived or model.
        how: where the figure comes from, or what is missing and the command that would tell.
    """

    name: str
    side: str
    value_ns: int | None
    basis: Basis
    how: str


@dataclass(frozen=True, slots=True)
class Bound:
    """What limits the transfers.

    Attributes:
        by: descriptors, bandwidth, neither or unknown.
        basis: of the figures that tell.
        why: with figures, or what would tell.
        post_share: of the time, spent on posting; None where not told.
        bytes_per_s: while something moved; None without a time.
    """

    by: str
    basis: Basis
    why: str
    post_share: float | None
    bytes_per_s: float | None


def transfer_bound(counted: Counted, link_bytes_per_s: float | None = None) -> Bound:
    """Descriptors or bandwidth.

    Args:
        counted: bytes, time, and posting time or descriptors where known.
        link_bytes_per_s: line rate; None where unknown.
    """
    if not counted.time_ns:
        return Bound(UNKNOWN, Basis.DERIVED, "no transfer was timed", None, None)
    rate = counted.size_bytes * 1e9 / counted.time_ns
    basis, post_ns = Basis.MEASURED, counted.post_ns
    if post_ns is None and counted.descriptors is not None:
        basis, post_ns = Basis.MODEL, counted.descriptors * DESCRIPTOR_NS
    share = None if post_ns is None else min(post_ns / counted.time_ns, 1.0)
    if share is not None and share >= BOUND_SHARE:
        return Bound("descriptors", basis, f"posting takes {share:.0%} of the transfer time", share, rate)
    if link_bytes_per_s is None:
        posting = "the posting time is unknown" if share is None else f"posting takes only {share:.0%}"
        return Bound(UNKNOWN, basis, f"{posting}, and the line rate: give --link-gbps", share, rate)
    reached = rate / link_bytes_per_s
    by = "bandwidth" if reached >= LINK_SHARE else "neither"
    return Bound(by, Basis.DERIVED, f"reaches {reached:.0%} of the line rate", share, rate)


def cheaper(with_ns: float, without_ns: float) -> str:
    """`pays` where the time with moved state is shorter than without, `does not pay`, or `tie`."""
    if abs(with_ns - without_ns) <= TIE_SHARE * max(with_ns, without_ns):
        return TIE
    return PAYS if with_ns < without_ns else LOSES


def growing_pool(growth: float, gain: float) -> str:
    """Whether a pool that grew bound the whole: `it`, `both` pools in part, or the `other`.

    Args:
        growth: ranks after over ranks before, above 1.
        gain: output after over output before.
    """
    share = (gain - 1) / (growth - 1)
    return "it" if share >= BOUND_SHARE else "both" if share > TIE_SHARE else "other"


def costs(handed: tuple[HandOver, ...]) -> tuple[VerdictTerm, ...]:
    """What a hand-over adds to a request, mean: state transfer, and lost locality."""
    names = {
        "transfer": "KV transfer that nothing hides",
        "queue": "waiting until the decode rank takes it",
        "handshake": "handing over beside the transfer",
        "unexplained": "from prefill to decode, unexplained",
        "recompute": "prompt computed again (locality loss)",
    }
    basis = Basis.MEASURED if all(hand_over.basis is Basis.MEASURED for hand_over in handed) else Basis.DERIVED
    return tuple(
        VerdictTerm(
            name, "cost", sum(hand_over.terms[term] for hand_over in handed) // len(handed), basis, "hand-over ledger"
        )
        for term, name in names.items()
    )


def gains(pair: Pair, together: Run | None, handed: int) -> tuple[VerdictTerm, ...]:
    """What separate phases save a request, mean of a hand-over, against a run that does both on the same ranks.

    Interference is the time in which requests that decode wait for the prefill of others: whole prefill steps, and by
    how much mixed steps outlast the median decode step, per step that decodes.
    """
    names = ("prefill interference removed", "better layout for prefill", "better layout for decode")
    if together is None:
        how = "unknown: profile the same load on ranks that do both and pass it as --colocated RUN"
        return tuple(VerdictTerm(name, "gain", None, Basis.DERIVED, how) for name in names)
    parts = steps_of(together, ranks_of(together, "colocated") or together.ranks)
    each = decode_steps(pair.decode, pair.targets) // max(handed // max(len(pair.targets), 1), 1)
    delay_ns = _interference(parts)
    unknown = "unknown: no decode step states its requests; record a server with its step annotations"
    return (
        _gain(names[0], delay_ns, each, unknown),
        _layout_gain(names[1], (together, pair.prefill), (parts, steps_of(pair.prefill, pair.sources)), 0),
        _layout_gain(names[2], (together, pair.decode), (parts, steps_of(pair.decode, pair.targets)), each),
    )


def _gain(name: str, value_ns: int | None, each: int, unknown: str) -> VerdictTerm:
    if value_ns is None:
        return VerdictTerm(name, "gain", None, Basis.DERIVED, unknown)
    return VerdictTerm(name, "gain", value_ns * each, Basis.DERIVED, f"per decode step, times {each} of a hand-over")


def _layout_gain(
    name: str, runs: tuple[Run, Run], sides: tuple[tuple[RankSteps, ...], tuple[RankSteps, ...]], each: int
) -> VerdictTerm:
    """By how much steps of a phase got shorter; `each` is 0 for prefill, which a hand-over has once.

    Ranks that are split alike do the same work in a step, so that a difference would be noise: it counts as 0. Steps
    of unlike numbers of tokens are not compared.
    """
    phase = Phase.DECODE if each else Phase.PREFILL
    if _axes(runs[0]) == _axes(runs[1]):
        return VerdictTerm(name, "gain", 0, Basis.DERIVED, "the ranks of both runs are split alike")
    old, new = (_median(parts, phase) for parts in sides)
    if old is None or new is None or cheaper(old[1], new[1]) != TIE:
        how = f"unknown: no {phase.value} steps of equal tokens in both runs; record both with the same batch"
        return VerdictTerm(name, "gain", None, Basis.DERIVED, how)
    return _gain(name, old[0] - new[0], max(each, 1), "")


def _axes(run: Run) -> dict[str, int]:
    """Degrees above 1 that split a step; replicas and the ranks of the job do not."""
    return {axis: size for axis, size in run.layout.sizes.items() if size > 1 and axis != "dp"}


def verdict(terms: tuple[VerdictTerm, ...]) -> str:
    """`pays`, `does not pay`, `tie`, or `unknown` where a term is."""
    if any(term.value_ns is None for term in terms):
        return UNKNOWN
    gain, cost = (sum(term.value_ns or 0 for term in terms if term.side == side) for side in ("gain", "cost"))
    return cheaper(cost, gain)


def _interference(parts: tuple[RankSteps, ...]) -> int | None:
    """Ns a step that decodes, mean over the ranks that have any."""
    delays = [value for value in map(_delay, parts) if value is not None]
    return sum(delays) // len(delays) if delays else None


def _delay(rank_steps: RankSteps) -> int | None:
    pure, mixed = (_rows(rank_steps, phase) for phase in (Phase.DECODE, Phase.MIXED))
    decoding = pure | mixed
    if not pure.any():
        return None
    if (rank_steps.requests[decoding] == ABSENT).any():
        return None
    excess = np.maximum(rank_steps.span_ns[mixed] - int(np.median(rank_steps.span_ns[pure])), 0)
    return (_held_up_ns(rank_steps, decoding) + int(excess.sum())) // int(np.count_nonzero(decoding))


def _held_up_ns(rank_steps: RankSteps, decoding: Mask) -> int:
    """Prefill steps during which requests wait to decode: more decode in the next step than were prefilled since."""
    rows, prefills = np.flatnonzero(decoding), np.flatnonzero(_rows(rank_steps, Phase.PREFILL))
    following = np.searchsorted(rows, prefills)
    inside = (following > 0) & (following < rows.size)
    prefills, following = prefills[inside], following[inside]
    fresh = np.bincount(following, np.maximum(rank_steps.requests[prefills], 0), rows.size)
    held_up = rank_steps.requests[rows[following]] > fresh[following]
    return int(rank_steps.span_ns[prefills[held_up]].sum())


def _median(parts: tuple[RankSteps, ...], phase: Phase) -> tuple[int, int] | None:
    """Time and tokens of the median step of a phase; None where there is none, or tokens are not stated."""
    times = np.concatenate([rank_steps.span_ns[_rows(rank_steps, phase)] for rank_steps in parts])
    tokens = np.concatenate([rank_steps.tokens[_rows(rank_steps, phase)] for rank_steps in parts])
    if not times.size or (tokens == ABSENT).any():
        return None
    return int(np.median(times)), int(np.median(tokens))


def _rows(rank_steps: RankSteps, phase: Phase) -> Mask:
    rows: Mask = rank_steps.phase.where(lambda word: word == phase.value)
    return rows
