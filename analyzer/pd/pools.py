"""The ranks that prefill and those that decode, what they do, and which of the two pools is full."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.stats.arrays import Mask
from analyzer.steps.steps import Phase, RankSteps, steps

FULL_SHARE = 0.85
"""Busy share of a pool above which its queue grows fast; the usual planning limit of a single queue."""
REMAINDER_TOKENS = 128
"""Prompt tokens of a request that a decode rank may compute without it being a second prefill: its last block."""
ROLES = ("prefill", "decode")
_WORKING = frozenset({Phase.PREFILL.value, Phase.DECODE.value, Phase.MIXED.value})


@dataclass(frozen=True, slots=True)
class Pool:
    """Ranks of one role.

    Attributes:
        role: prefill or decode.
        ranks: of its run.
        window_ns: first to last working step of the pools, times the ranks.
        busy_ns: of it, inside a working step.
    """

    role: str
    ranks: tuple[int, ...]
    window_ns: int
    busy_ns: int

    @property
    def busy_share(self) -> float | None:
        """Busy share, 0 to 1; None without a window."""
        return self.busy_ns / self.window_ns if self.window_ns else None


def role_of(run: Run, rank: int) -> str:
    """`prefill`, `decode`, `colocated`, or "" where nothing says."""
    stage = next((trace.origin.stage for trace in run.traces if trace.rank == rank), "")
    return run.workload.roles.get(rank, "") or run.workload.role or stage


def ranks_of(run: Run, role: str) -> tuple[int, ...]:
    """Ranks of a role."""
    return tuple(rank for rank in run.ranks if role_of(run, rank) == role)


def steps_of(run: Run, ranks: tuple[int, ...]) -> tuple[RankSteps, ...]:
    """Steps of some ranks.

    Raises:
        MissingEvidenceError: a rank has none that an engine named.
    """
    chosen = tuple(rank_steps for rank_steps in steps(run) if rank_steps.rank in ranks)
    if any(not working(rank_steps).any() for rank_steps in chosen):
        raise MissingEvidenceError(
            "steps are not named as prefill or decode",
            "record a server with its step annotations (shardscope collect vllm or sglang)",
        )
    return chosen


def working(rank_steps: RankSteps) -> Mask:
    """bool[n]: prefill, decode or mixed steps."""
    rows: Mask = rank_steps.phase.where(lambda word: word in _WORKING)
    return rows


def prefilling(rank_steps: RankSteps, beyond: int = 0) -> Mask:
    """bool[n]: steps that compute more than so many prompt tokens a request.

    Steps that state no number count by their phase.
    """
    tokens = rank_steps.prefill_tokens
    stated: Mask = (tokens != ABSENT) & (tokens > beyond * np.maximum(rank_steps.prefill_requests, 1))
    named: Mask = (tokens == ABSENT) & rank_steps.phase.where(lambda word: word == Phase.PREFILL.value)
    rows: Mask = stated | named
    return rows


def spans(rank_steps: RankSteps, rows: Mask) -> Intervals:
    """Instants of some steps."""
    return Intervals.from_arrays(rank_steps.start_ns[rows], rank_steps.end_ns[rows])


def pools(sides: tuple[tuple[Run, str, tuple[int, ...]], ...], *, one_clock: bool) -> tuple[Pool, ...]:
    """How busy the ranks of each side are: between the first and the last working step of all sides, on one clock.

    Args:
        sides: run, role and ranks of each.
        one_clock: whether times of the sides can be compared; otherwise each side has a window of its own.
    """
    working_steps = [
        (role, ranks, [(rank_steps, working(rank_steps)) for rank_steps in steps_of(run, ranks)])
        for run, role, ranks in sides
    ]
    ends = [
        (
            min(int(rank_steps.start_ns[is_working].min()) for rank_steps, is_working in rows),
            max(int(rank_steps.end_ns[is_working].max()) for rank_steps, is_working in rows),
        )
        for _, _, rows in working_steps
    ]
    whole = max(end for _, end in ends) - min(start for start, _ in ends)
    return tuple(
        Pool(
            role,
            ranks,
            (whole if one_clock else end - start) * len(rows),
            sum(spans(rank_steps, is_working).total_ns for rank_steps, is_working in rows),
        )
        for (role, ranks, rows), (start, end) in zip(working_steps, ends, strict=True)
    )


def binding(pools: tuple[Pool, ...]) -> str:
    """The role whose pool is full: `prefill`, `decode`, `both`, `neither`, or `unknown` where a share is unknown."""
    shares = [pool.busy_share for pool in pools]
    if None in shares or len({pool.role for pool in pools}) < len(ROLES):
        return "unknown"
    full = [pool.role for pool in pools if (pool.busy_share or 0.0) >= FULL_SHARE]
    return "both" if len(full) > 1 else full[0] if full else "neither"


def computed_tokens(run: Run, ranks: tuple[int, ...], beyond: int = 0) -> int | None:
    """Prompt tokens in steps of these ranks that compute more than so many a request; None where no step states any."""
    parts = [rank_steps for rank_steps in steps(run) if rank_steps.rank in ranks]
    if not any((rank_steps.prefill_tokens != ABSENT).any() for rank_steps in parts):
        return None
    return sum(
        int(np.maximum(rank_steps.prefill_tokens[prefilling(rank_steps, beyond)], 0).sum()) for rank_steps in parts
    )


def again_tokens(run: Run, ranks: tuple[int, ...]) -> int | None:
    """Prompt tokens that decode ranks compute although others prefill: by counters, else by steps; None if unknown."""
    handover = run.workload.handover
    if handover.computed_tokens is None:
        return computed_tokens(run, ranks, REMAINDER_TOKENS)
    transfers = handover.counted.transfers if handover.counted else 1
    return handover.computed_tokens if handover.computed_tokens > REMAINDER_TOKENS * transfers else 0


def decode_steps(run: Run, ranks: tuple[int, ...]) -> int:
    """Decode and mixed steps of the rank that has most."""
    phases = (Phase.DECODE.value, Phase.MIXED.value)
    return max(
        chain(
            (0,),
            (
                int(np.count_nonzero(rank_steps.phase.where(lambda word: word in phases)))
                for rank_steps in steps_of(run, ranks)
            ),
        )
    )
