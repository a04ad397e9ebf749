"""A prefill and a decode run held together: ledger, transfer, pools, verdict. What `shardscope pd` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.model.handover import Counted, Handover
from analyzer.model.run import Run
from analyzer.pd.ledger import HandOver, Pair, is_one_clock, ledger
from analyzer.pd.pools import ROLES, Pool, again_tokens, binding, computed_tokens, pools, ranks_of, role_of
from analyzer.pd.verdict import UNKNOWN, Bound, VerdictTerm, costs, gains, transfer_bound, verdict
from analyzer.schema.finding import Basis
from analyzer.units import count, duration

SCHEMA = 1
_LOAD = ("batch", "context", "steps", "requests", "concurrency", "input_tokens", "output_tokens", "shared_prefix")
"""Settings that make a load; where they differ the two runs did not serve the same."""
T = TypeVar("T")
_NO_POOLS: tuple[Pool, ...] = ()
_NO_TERMS: tuple[VerdictTerm, ...] = ()


class HandOverRow(msgspec.Struct, frozen=True):
    """A hand-over of the ledger; `terms` add up to `total_ns`."""

    name: str
    total_ns: int
    terms: dict[str, int]
    hidden_transfer_ns: int
    size_bytes: int
    bytes_per_s: float | None
    basis: str


class Transfer(msgspec.Struct, frozen=True):
    """All transfers together: `state` is found, none or unknown."""

    state: str
    carriers: tuple[str, ...]
    transfers: int | None
    size_bytes: int | None
    bytes_per_s: float | None
    descriptors: int | None
    post_share: float | None
    bound_by: str
    basis: str
    why: str


class DoublePrefill(msgspec.Struct, frozen=True):
    """Prompt tokens that each side computed; `state` is found, none or unknown."""

    state: str
    prefill_tokens: int | None
    decode_tokens: int | None
    basis: str


class Busy(msgspec.Struct, frozen=True):
    """A pool of ranks and the share of its time that it works."""

    role: str
    ranks: tuple[int, ...]
    busy_share: float | None


class Term(msgspec.Struct, frozen=True):
    """A term of the verdict, mean of a hand-over; None is unknown."""

    name: str
    side: str
    value_ns: int | None
    basis: str
    how: str


class Pd(msgspec.Struct, frozen=True):
    """What `shardscope pd` found. Times in ns."""

    schema: int
    prefill: str
    decode: str
    colocated: str | None
    ledger: tuple[HandOverRow, ...]
    transfer: Transfer
    double_prefill: DoublePrefill
    pools: tuple[Busy, ...]
    binding: str
    terms: tuple[Term, ...]
    verdict: str
    answer: str
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def pd(
    prefill: Run,
    decode: Run,
    colocated: Run | None = None,
    link_bytes_per_s: float | None = None,
    logged: Handover | None = None,
) -> Pd:
    """Join the runs.

    Args:
        prefill: run with prefill ranks.
        decode: run with decode ranks; may be the same directory, where its run.json gives each rank its role.
        colocated: the same load on ranks that do both.
        link_bytes_per_s: line rate between the roles, where known.
        logged: what an engine's log says of its transfers, used where no counter does.

    Raises:
        UsageError: runs without the roles they are given as, or of different models.
    """
    pair = _pair(prefill, decode)
    _same_model(prefill, decode, colocated)
    together = None if _unlike(prefill, colocated) else colocated
    missing: list[str] = []
    none: tuple[HandOver, ...] = ()
    handed = _or(lambda: ledger(pair), none, missing)
    held = _or(lambda: _pools(pair), _NO_POOLS, missing)
    moved = _moved(pair, handed) or (logged.counted if logged else None)
    again = _double_prefill(pair)
    terms = _or(lambda: _terms(pair, together, handed), _NO_TERMS, missing)
    unknown = [term for term in terms if term.value_ns is None]
    missing += [f"{_names(unknown, how)}: {how}" for how in dict.fromkeys(term.how for term in unknown)]
    outcome = verdict(terms) if terms else UNKNOWN
    return Pd(
        SCHEMA,
        prefill.label,
        decode.label,
        colocated.label if colocated else None,
        tuple(map(_row, handed)),
        _transfer(pair, moved, link_bytes_per_s, logged),
        again,
        tuple(Busy(pool.role, pool.ranks, pool.busy_share) for pool in held),
        binding(held),
        tuple(Term(term.name, term.side, term.value_ns, term.basis.value, term.how) for term in terms),
        outcome,
        _answer(outcome, terms),
        tuple(dict.fromkeys(missing)),
        _notes(pair, colocated),
    )


def _pair(prefill: Run, decode: Run) -> Pair:
    """Ranks of each role.

    Raises:
        UsageError: a run has none of its role.
    """
    twice = prefill.label == decode.label
    sources, targets = ranks_of(prefill, ROLES[0]), ranks_of(decode, ROLES[1])
    if not sources and not targets and ranks_of(prefill, ROLES[1]) and ranks_of(decode, ROLES[0]):
        raise UsageError(f"{prefill.label} is the decode run and {decode.label} the prefill run; swap the two options")
    for run, ranks, role in ((prefill, sources, ROLES[0]), (decode, targets, ROLES[1])):
        if ranks:
            continue
        held = sorted({role_of(run, rank) for rank in run.ranks} - {""})
        known = f"has {' and '.join(held)} ranks only" if held else "states no role"
        known = f"is given twice and {known}" if twice else known
        raise UsageError(f'{run.label} {known}; --{role} needs {role} ranks: "role" or "roles" in its run.json')
    return Pair(prefill, decode, sources, targets)


def _same_model(*runs: Run | None) -> None:
    stated = [run for run in runs if run is not None and run.workload.model]
    for run in stated[1:]:
        first = stated[0].workload.model
        shared = first.keys() & run.workload.model.keys()
        other = sorted(key for key in shared if first[key] != run.workload.model[key])
        if other:
            raise UsageError(
                f"{stated[0].label} and {run.label} ran different models ({other[0]} {first[other[0]]} and "
                f"{run.workload.model[other[0]]}); record both with one model"
            )


def _or(find: Callable[[], T], otherwise: T, missing: list[str]) -> T:
    try:
        return find()
    except MissingEvidenceError as fault:
        missing.append(str(fault))
        return otherwise


def _pools(pair: Pair) -> tuple[Pool, ...]:
    sides = ((pair.prefill, ROLES[0], pair.sources), (pair.decode, ROLES[1], pair.targets))
    return pools(sides, one_clock=is_one_clock(pair))


def _terms(pair: Pair, colocated: Run | None, handed: tuple[HandOver, ...]) -> tuple[VerdictTerm, ...]:
    return (*gains(pair, colocated, len(handed)), *costs(handed)) if handed else ()


def _names(terms: list[VerdictTerm], how: str) -> str:
    return ", ".join(term.name for term in terms if term.how == how)


def _row(hand_over: HandOver) -> HandOverRow:
    rate = hand_over.size_bytes * 1e9 / hand_over.transfer_ns if hand_over.transfer_ns else None
    return HandOverRow(
        hand_over.name,
        hand_over.total_ns,
        dict(hand_over.terms),
        hand_over.hidden_ns,
        hand_over.size_bytes,
        rate,
        hand_over.basis.value,
    )


def _moved(pair: Pair, handed: tuple[HandOver, ...]) -> Counted | None:
    """All that moved: by the engine's counters, else by the messages noted."""
    for run in (pair.decode, pair.prefill):
        if run.workload.handover.counted:
            return run.workload.handover.counted
    messages = pair.decode.workload.handover.messages or pair.prefill.workload.handover.messages
    if not messages:
        return None
    if handed:
        return Counted(
            len(messages),
            sum(hand_over.size_bytes for hand_over in handed),
            sum(hand_over.transfer_ns for hand_over in handed),
        )
    return Counted(len(messages), sum(message.size_bytes for message in messages), 0)


def _transfer(pair: Pair, moved: Counted | None, link_bytes_per_s: float | None, logged: Handover | None) -> Transfer:
    handovers = (pair.decode.workload.handover, pair.prefill.workload.handover)
    every = (*handovers, logged) if logged else handovers
    carriers = tuple(dict.fromkeys(name for handover in every for name in handover.carriers))
    if moved is not None:
        bound: Bound = transfer_bound(moved, link_bytes_per_s)
        return Transfer(
            "found",
            carriers,
            moved.transfers,
            moved.size_bytes,
            bound.bytes_per_s,
            moved.descriptors,
            bound.post_share,
            bound.by,
            bound.basis.value,
            bound.why,
        )
    if handovers[0].fetched_tokens == 0:
        why = "the decode side's counters were read: no prompt token came from another engine"
        return Transfer("none", carriers, 0, 0, None, None, None, UNKNOWN, Basis.MEASURED.value, why)
    why = "no counters of transfers were read; record with shardscope collect vllm or sglang, or pass --log FILE"
    return Transfer(UNKNOWN, carriers, None, None, None, None, None, UNKNOWN, Basis.DERIVED.value, why)


def _double_prefill(pair: Pair) -> DoublePrefill:
    first = pair.prefill.workload.handover.computed_tokens
    again = again_tokens(pair.decode, pair.targets)
    if first is None:
        first = computed_tokens(pair.prefill, pair.sources)
    if again is None:
        return DoublePrefill(UNKNOWN, first, None, Basis.MEASURED.value)
    return DoublePrefill("found" if again else "none", first, again, Basis.MEASURED.value)


def _answer(outcome: str, terms: tuple[VerdictTerm, ...]) -> str:
    if not terms:
        return "unknown: no hand-over could be laid out"
    cost = sum(term.value_ns or 0 for term in terms if term.side == "cost")
    if outcome == UNKNOWN:
        return f"unknown: a hand-over costs {duration(cost)}, what it gains is not recorded"
    gain = sum(term.value_ns or 0 for term in terms if term.side == "gain")
    return f"{outcome}: a hand-over gains {duration(gain)} and costs {duration(cost)}"


def _unlike(run: Run, colocated: Run | None) -> list[str]:
    if colocated is None:
        return []
    first, other = run.workload.settings, colocated.workload.settings
    return [key for key in _LOAD if key in first and first[key] != other.get(key)]


def _notes(pair: Pair, colocated: Run | None) -> tuple[str, ...]:
    notes = []
    nodes = {**pair.prefill.topology.node_of, **pair.decode.topology.node_of}
    if pair.prefill is not pair.decode and not nodes:
        notes.append("no run says on which node it ran; their clocks are taken as one")
    ranks = len(pair.sources) + len(pair.targets)
    if unlike := _unlike(pair.prefill, colocated):
        notes.append(f"the co-located run had another load ({', '.join(unlike)} differ) and is left out")
    if colocated is not None and len(colocated.traces) != ranks:
        notes.append(
            f"{count(ranks, 'rank')} against {len(colocated.traces)} co-located: compare the output per rank too"
        )
    return tuple(notes)
