"""The six answers: what the run itself says, before any rule is asked. Each is a sentence, or unknown with the cure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analyzer.diagnose.crossing import crossing
from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.advice.shared import DETAILED_STEPS, METRICS, RECORD_SHAPES
from analyzer.measures.cost import between_ranks, cost, exposed
from analyzer.measures.moves import moves
from analyzer.measures.reuse import counted_reuse, routed
from analyzer.measures.traffic import Traffic, traffic
from analyzer.model.kind import Kind
from analyzer.model.layout import AXES
from analyzer.model.run import Run
from analyzer.rule import Question
from analyzer.steps.steps import reused_tokens
from analyzer.units import count, duration, ranks, share, size

SHOWN = 3
"""Kinds of collective or movement that an answer names; the tables hold all."""


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """What the run says.

    Attributes:
        text: the answer.
        missing: what is not in the run and what would tell, empty where the answer is whole.
        known: False where the question cannot be answered at all.
    """

    text: str
    missing: tuple[str, ...] = ()
    known: bool = True


def plain_answer(question: Question, run: Run) -> PlainAnswer:
    """The answer to one question from the run alone."""
    try:
        return _ANSWERS[question](run)
    except MissingEvidenceError as lack:
        return PlainAnswer(f"{lack.missing}; {lack.cure}", (lack.cure,), known=False)


def _split(run: Run) -> PlainAnswer:
    layout = run.layout
    used = [f"{axis}={layout.sizes[axis]}" for axis in AXES if layout.sizes.get(axis, 1) > 1]
    unknown = [axis for axis in AXES if axis not in layout.sizes]
    cure = 'state the layout in run.json beside the traces: {"layout": {"tp": 2, …}}'
    roles = {
        role: ranks([rank for rank, held_role in run.workload.roles.items() if held_role == role]) for role in _ROLES
    }
    by_phase = " and ".join(f"{role} on ranks {where}" for role, where in roles.items() if where)
    if by_phase and not used:
        return PlainAnswer(f"by phase: {by_phase} (declared)")
    if used:
        evidence = "; ".join(dict.fromkeys(layout.evidence[axis] for axis in AXES if layout.sizes.get(axis, 1) > 1))
        rest = f"; degree of {', '.join(unknown)} unknown" if unknown else ""
        used += [f"by phase: {by_phase}"] if by_phase else []
        return PlainAnswer(f"{' × '.join(used)} ({layout.source.value}: {evidence}){rest}", (cure,) if unknown else ())
    if layout.world_size == 1 or (not unknown and layout.sizes):
        return PlainAnswer("not split: every rank does all the work of its requests")
    world = "of unknown size" if layout.world_size is None else f"of {count(layout.world_size, 'rank')}"
    raise MissingEvidenceError(f"nothing in the traces names the axes of this job {world}", cure)


_ROLES = ("prefill", "decode")


def _locality(run: Run) -> PlainAnswer:
    moved = [move for move in moves(run) if move.busy_ns > 0]
    crossing = traffic(run)
    parts = []
    if crossing:
        total = cost(run, between_ranks).share
        kinds = ", ".join(dict.fromkeys(_STATE.get(row.kind, row.kind) for row in crossing))
        parts.append(f"between ranks: {kinds} ({share(total)} of the window)")
    for rung, where in (("host", "between host and device"), ("peer", "between devices"), ("hbm", "within the device")):
        rows = [move for move in moved if move.rung == rung]
        if rows:
            named = ", ".join(f"{row.subclass} ×{row.count}" for row in rows[:SHOWN])
            parts.append(
                f"{where}: {named} ({share(cost(run, exposed(Kind.MOVEMENT, *(row.subclass for row in rows))).share)})"
            )
    carriers = run.workload.handover.carriers
    if carriers:
        parts.append(f"from prefill to decode: KV by {', '.join(carriers)}; `shardscope pd` lays it out")
    if not parts:
        return PlainAnswer("none: no collective, copy or cache write in the window")
    return PlainAnswer("; ".join(parts))


_STATE = {
    "all_reduce": "partial sums (all-reduce)",
    "reduce_scatter": "partial sums (reduce-scatter)",
    "all_gather": "shards gathered (all-gather)",
    "dispatch": "tokens to experts (dispatch)",
    "combine": "expert results (combine)",
    "all_to_all": "tokens or heads exchanged (all-to-all)",
    "send_recv": "activations or KV sent (send/recv)",
    "send": "activations or KV sent (send)",
    "recv": "activations or KV received (recv)",
    "broadcast": "copies to all ranks (broadcast)",
}


def _communication(run: Run) -> PlainAnswer:
    rows = traffic(run)
    if not rows:
        if (run.layout.world_size or 0) > 1:
            return PlainAnswer(f"none recorded, though the job has {count(run.layout.world_size or 0, 'rank')}")
        return PlainAnswer("none")
    exposed = cost(run, between_ranks).share
    listed = "; ".join(_call(row) for row in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    lacking = any(row.message_bytes is None for row in rows)
    (record,) = fitting(run, (RECORD_SHAPES,))
    cure = f"message sizes: {record} (graph replays and custom kernels carry none)"
    return PlainAnswer(f"{listed}{more}; {share(exposed)} of the window exposed", (cure,) if lacking else ())


def _call(row: Traffic) -> str:
    message = "size unknown" if row.message_bytes is None else size(row.message_bytes)
    members = f" over ranks {ranks(row.group)}" if row.group else ""
    return f"{row.kind} ×{row.count:,}{members} ({message}, median {duration(row.median_ns)})"


def _topology(run: Run) -> PlainAnswer:
    return PlainAnswer(crossing(run))


def _reuse(run: Run) -> PlainAnswer:
    parts = [*_cached(run), *_kv_of_steps(run)]
    if not parts:
        raise MissingEvidenceError(
            "neither metrics of the engine nor its steps say what was found in the KV cache",
            "; ".join(fitting(run, (METRICS, DETAILED_STEPS))),
        )
    return PlainAnswer("; ".join(parts))


def _cached(run: Run) -> list[str]:
    """What the engine's counters say; nothing where none were scraped."""
    counted = counted_reuse(run)
    if counted is None:
        return []
    parts = []
    if counted.queried_tokens:
        cached = counted.cached_tokens or 0
        parts.append(
            f"the prefix cache holds {cached:,} of {counted.queried_tokens:,} prompt tokens "
            f"({share(cached / counted.queried_tokens)}), {counted.queried_tokens - cached:,} are not in it"
        )
    if counted.external_queried_tokens:
        cached = counted.external_cached_tokens or 0
        parts.append(f"the cache behind it {cached:,} of {counted.external_queried_tokens:,}")
    if counted.loaded_back_tokens:
        parts.append(f"{counted.loaded_back_tokens:,} tokens come back from host memory")
    if counted.evicted_tokens:
        parts.append(f"{counted.evicted_tokens:,} tokens are evicted")
    if counted.preemptions:
        parts.append(count(counted.preemptions, "preemption"))
    for policy, workers in routed(run).items():
        sent = count(sum(workers.values()), "request")
        parts.append(f"{sent} routed by {policy} over {count(len(workers), 'worker')}")
    return parts


def _kv_of_steps(run: Run) -> list[str]:
    """What the steps' annotations say; nothing where they do not."""
    seen = reused_tokens(run)
    if seen is None:
        return []
    reused, scheduled = seen
    return [f"prefill steps reuse {reused:,} KV tokens and compute {scheduled:,}"]


def _reversal(run: Run) -> PlainAnswer:
    compute = cost(run, lambda rank_times: rank_times.compute.total_ns).share
    added = cost(run, between_ranks).share
    if len(run.ranks) == 1 or not traffic(run):
        why = "one rank has no split to undo" if len(run.ranks) == 1 else "the ranks exchange nothing here"
        raise MissingEvidenceError(why, "`shardscope sweep` over runs at several degrees would tell")
    raise MissingEvidenceError(
        f"one run cannot show a turn (computing {share(compute)}, communicating and waiting for peers {share(added)} "
        "of the window)",
        "`shardscope sweep` over runs at several degrees would tell",
    )


_ANSWERS: dict[Question, Callable[[Run], PlainAnswer]] = {
    Question.SPLIT: _split,
    Question.LOCALITY: _locality,
    Question.COMMUNICATION: _communication,
    Question.TOPOLOGY: _topology,
    Question.REUSE: _reuse,
    Question.REVERSAL: _reversal,
}
