"""A step of a run as classes of time, each with what is known of how it scales: what `whatif` starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.intervals import Intervals
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.causes import posting
from analyzer.measures.expected import Call, expected
from analyzer.measures.skew import late_rank
from analyzer.measures.traffic import SETUP, message_bytes
from analyzer.measures.waits import waits
from analyzer.model.events import ABSENT
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.rank_steps import RankSteps
from analyzer.steps.steps import middle_row, steps
from analyzer.whatif.limits import Facts
from analyzer.whatif.time_classes import CUSTOM, FP8_FLOOR_NS, FP8_SPREAD, ClassTime, Reference, ScalingBehavior, Step

NODE_RANKS = 8
"""Accelerators of a node where nobody says: HGX, DGX and most others."""
EXPERTS = "moe_gemm"
FP8_WORDS = ("fp8", "e4m3", "float8")
CUSTOM_WORDS = ("cross_device_reduce", "allreduce_fusion", "multimem", "quickreduce", "shot_all_reduce")
"""In names of all-reduce kernels that engines bring themselves: vLLM, SGLang, FlashInfer, torch's symmetric memory."""

_SORTS = {
    ScalingBehavior.GEMM: ("gemm", "activation", "rope", "quantize", "lora", "convolution"),
    ScalingBehavior.EXPERTS: (EXPERTS,),
    ScalingBehavior.ATTENTION: ("attention", "mla", "sparse_attention", "linear_attention"),
    ScalingBehavior.UNKNOWN: ("other", "generated", "program"),
}
"""Compute that a tensor-parallel split divides, and compute whose name hides what it is; the rest is replicated."""
_SHARDED = ("kv_write", "kv_gather", "kv_offload")
_MOVED_BY = {"dispatch": "all_to_all", "combine": "all_to_all", "collective": "all_reduce"}


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """One rank's steps of a kind, those chosen of them, and the activities that belong to these.

    Attributes:
        trace: of the rank.
        rank_split: its time by term.
        rank_steps: its steps.
        alike: rows of the steady steps of the kind.
        chosen: rows of all of these, or of the median one alone.
        rows: activities of the chosen ones.
    """

    trace: Trace
    rank_split: Breakdown
    rank_steps: RankSteps
    alike: Integers
    chosen: Integers
    rows: Integers


def step_of(run: Run, degree: int, kind: str = "decode", platform: str = "", *, median_only: bool = False) -> Step:
    """The mean steady step of one kind over ranks, from its start to the next one's.

    Args:
        run: all ranks of one tensor-parallel group, or of several that do the same.
        degree: of the split.
        kind: of step.
        platform: device name whose measured links to use, "" for the run's own.
        median_only: each rank's median step instead of all of its steady ones: what a row of steps shows.

    Raises:
        MissingEvidenceError: no such steps, or waiting cannot be told from transfer.
    """
    members = [
        _member(*each, kind, median_only=median_only)
        for each in zip(run.traces, breakdown(run), steps(run), strict=True)
    ]
    members = [member for member in members if member.chosen.size]
    if not members:
        raise MissingEvidenceError(f"the run has no {kind} steps", "record some, or choose another --step")
    if degree > 1:
        waits(run)  # raises where transfer and waiting are one figure
    count = sum(member.chosen.size for member in members)
    classes = [*_work(run, members, count), *_idle(members, count)]
    return Step(
        degree,
        tuple(class_time for class_time in classes if class_time.time_ns > 0),
        _reference(run, platform),
        _facts(run, members),
    )


def _member(trace: Trace, rank_split: Breakdown, rank_steps: RankSteps, kind: str, *, median_only: bool) -> _Member:
    is_kind = rank_steps.phase.where(lambda word: word == kind)
    chosen = np.flatnonzero(is_kind & rank_steps.is_steady)
    if not chosen.size:
        chosen = np.flatnonzero(is_kind)
    alike = chosen
    if chosen.size and median_only:
        chosen = chosen[[middle_row(rank_steps.span_ns[chosen])]]
    is_chosen = np.zeros(len(rank_steps) + 1, np.bool_)
    is_chosen[chosen] = True
    return _Member(trace, rank_split, rank_steps, alike, chosen, np.flatnonzero(is_chosen[rank_steps.step_of]))


def _work(run: Run, members: list[_Member], count: int) -> Iterator[ClassTime]:
    """Classes of activities, their exclusive time."""
    kinds = np.concatenate([member.trace.activities.kind[member.rows] for member in members])
    words, codes = _words(members)
    owned = np.concatenate([member.rank_split.owned_ns[member.rows] for member in members])
    length = np.concatenate([member.trace.activities.duration_ns[member.rows] for member in members])
    message = np.concatenate([message_bytes(member.trace)[member.rows] for member in members])
    is_fp8 = np.concatenate([_named(member, FP8_WORDS) for member in members])
    is_custom = np.concatenate([_named(member, CUSTOM_WORDS) for member in members])
    on_host = all(trace.origin.device == "cpu" for trace in run.traces)
    for code, word in enumerate(words):
        rows = codes == code
        kind = Kind(int(kinds[rows][0]))
        sort = _sort(kind, word)
        stated = message[rows & (message != ABSENT)]
        is_scaled = sort in (ScalingBehavior.GEMM, ScalingBehavior.EXPERTS, ScalingBehavior.ATTENTION)
        fp8 = is_scaled and owned[rows & is_fp8].sum() * 2 > owned[rows].sum()
        custom = word == "all_reduce" and owned[rows & is_custom].sum() * 2 > owned[rows].sum()
        shortest_ns = float(length[rows].min()) if on_host and is_scaled else None
        yield ClassTime(
            name=word,
            sort=sort,
            time_ns=float(owned[rows].sum()) / count,
            calls=float(rows.sum()) / count,
            floor_ns=FP8_FLOOR_NS if fp8 else shortest_ns,
            operation=CUSTOM if custom else _MOVED_BY.get(word, word),
            message_bytes=int(np.median(stated)) if stated.size and sort is ScalingBehavior.COLLECTIVE else None,
            sharded=word in _SHARDED,
            imbalance=_imbalance(members) if sort is ScalingBehavior.EXPERTS else 1.0,
            spread=FP8_SPREAD if fp8 else None,
        )
    late = late_rank(run) if len(members) > 1 and any(kinds == Kind.COMMUNICATION) else None
    wait_ns = sum(_within(member, member.rank_split.causes[Cause.PEER_WAIT]) for member in members)
    yield ClassTime("waiting for peers", ScalingBehavior.WAIT, wait_ns / count, persistent=late is not None)


def _idle(members: list[_Member], count: int) -> Iterator[ClassTime]:
    """Time in which the device does nothing, and what medians of activities leave of the span and the gap after it."""
    for cause, sort in (
        (Cause.HOST_LAUNCH, ScalingBehavior.HOST),
        (Cause.HOST_SYNC, ScalingBehavior.HOST),
        (Cause.STREAM_WAIT, ScalingBehavior.REPLICATED),
        (Cause.QUEUE, ScalingBehavior.REPLICATED),
        (Cause.UNRECORDED, ScalingBehavior.UNKNOWN),
        (Cause.UNKNOWN, ScalingBehavior.UNKNOWN),
    ):
        total_ns = sum(_within(member, member.rank_split.causes[cause]) for member in members)
        if cause is Cause.HOST_LAUNCH:
            posted_ns = sum(
                _within(member, member.rank_split.causes[cause] & posting(member.trace)) for member in members
            )
            yield ClassTime(SETUP[0], ScalingBehavior.SETUP, posted_ns / count)
            total_ns -= posted_ns
        yield ClassTime(f"idle: {cause.value}", sort, total_ns / count)
    gaps = np.concatenate(
        [(member.rank_steps.period_ns - member.rank_steps.span_ns)[_followed(member)] for member in members]
    )
    if gaps.size:
        yield ClassTime("between steps", ScalingBehavior.REPLICATED, float(max(np.median(gaps), 0.0)))


def _followed(member: _Member) -> Integers:
    followed: Integers = member.alike[member.rank_steps.period_ns[member.alike] != ABSENT]
    return followed


def _within(member: _Member, time: Intervals) -> int:
    """Nanoseconds of a set of instants inside the chosen steps."""
    return int(member.rank_steps.time_within(time)[member.chosen].sum())


def _sort(kind: Kind, word: str) -> ScalingBehavior:
    if kind is Kind.MOVEMENT:
        return ScalingBehavior.MOVEMENT
    if kind is Kind.COMMUNICATION:
        return ScalingBehavior.SETUP if word in SETUP else ScalingBehavior.COLLECTIVE
    return next((sort for sort, words in _SORTS.items() if word in words), ScalingBehavior.REPLICATED)


def _named(member: _Member, words: tuple[str, ...]) -> Mask:
    """bool[k]: activities with one of the words in their name."""
    activities = member.trace.activities
    return activities.name.where(lambda name: any(word in name.lower() for word in words))[member.rows]


def _words(members: list[_Member]) -> tuple[list[str], Integers]:
    """Distinct subclasses of the members' activities, and int64[k], which of them each is."""
    table: dict[str, int] = {}
    columns = []
    for member in members:
        subclass = member.trace.activities.subclass
        codes = np.array([table.setdefault(word, len(table)) for word in subclass.values] or [0], np.int64)
        columns.append(codes[subclass.codes[member.rows]])
    held = np.concatenate(columns)
    used = np.unique(held)
    words = list(table)
    return [words[code] for code in used.tolist()], np.searchsorted(used, held)


def _imbalance(members: list[_Member]) -> float:
    """Experts' time of the fullest rank over the mean."""
    times = []
    for member in members:
        is_experts = member.trace.activities.subclass.where(lambda word: word == EXPERTS)
        times.append(float(member.rank_split.owned_ns[member.rows][is_experts[member.rows]].sum()) / member.chosen.size)
    return max(times) / (sum(times) / len(times)) if sum(times) else 1.0


def _reference(run: Run, platform: str) -> Reference | None:
    """Times of collectives on the rung that the ranks share; None where nothing is known of their links."""
    device = platform or run.traces[0].origin.device_name
    nodes = run.topology.nodes(run.ranks)
    count = len(nodes) if nodes else 1
    if expected(Call("all_reduce", 1 << 20, 2, count), device, run.hardware) is None:
        return None

    def reference(operation: str, n_bytes: float, ranks: int) -> float:
        name = "all_reduce" if operation == CUSTOM else operation
        call = Call(name, n_bytes, ranks, count, is_custom=operation == CUSTOM and count == 1)
        expected_call = expected(call, device, run.hardware)
        return 0.0 if expected_call is None else expected_call.time_ns

    return reference


def _facts(run: Run, members: list[_Member]) -> Facts:
    model = run.workload.model

    def stated(*names: str) -> int | None:
        return next((int(value) for name in names if isinstance(value := model.get(name), (int, float))), None)

    layers, hidden = stated("num_hidden_layers"), stated("hidden_size")
    tokens = np.concatenate([member.rank_steps.tokens[member.chosen] for member in members])
    known = tokens[tokens != ABSENT]
    on_host = all(trace.origin.device == "cpu" for trace in run.traces)
    return Facts(
        query_heads=stated("num_attention_heads"),
        kv_heads=stated("num_key_value_heads"),
        node_ranks=None if on_host else NODE_RANKS,
        added_calls=2.0 * layers if layers else None,
        added_bytes=2 * hidden * int(np.median(known)) if hidden and known.size else None,
        on_host=on_host,
    )
