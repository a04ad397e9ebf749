"""Which of the traces that were found form one run, and which rank each is.

A directory may hold repeated profiles, prefill and decode windows of the same ranks, and replicas that all call
themselves rank 0 of 1. Traces that were recorded at the same time belong together; those of other times are other runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from analyzer.model.trace import Note, Trace
from analyzer.units import count

UNRANKED = -1
"""Rank of a trace that states none."""

Chosen = tuple[tuple[Trace, ...], tuple[Note, ...]]


def one_run(traces: list[Trace]) -> Chosen:
    """Traces of one session, ranks unique and ascending, and what was left out or renumbered."""
    notes: list[Note] = []
    kept = _one_stage(traces, notes)
    if _claims_twice(kept) or any(trace.rank == UNRANKED for trace in kept):
        kept = _one_session(kept, notes)
    kept = _unranked_numbered(kept, notes)
    if _claims_twice(kept):
        kept = _replicas_numbered(kept, notes)
    return tuple(sorted(kept, key=lambda trace: trace.rank)), tuple(notes)


def _claims_twice(traces: list[Trace]) -> bool:
    return len({trace.rank for trace in traces}) < len(traces)


def _one_stage(traces: list[Trace], notes: list[Note]) -> list[Trace]:
    """Files of a profile by stage hold the same ranks at other times: keep decode."""
    stages = {trace.origin.stage for trace in traces}
    if not {"prefill", "decode"} <= stages or not _claims_twice(traces):
        return traces
    kept = [trace for trace in traces if trace.origin.stage != "prefill"]
    left = len(traces) - len(kept)
    notes.append(Note(f"{count(left, 'prefill trace')} of the same ranks left out: diagnose them by their own glob"))
    return kept


def _one_session(traces: list[Trace], notes: list[Note]) -> list[Trace]:
    """Traces whose windows overlap form a session; the one with most traces stays, of equal ones the latest."""
    sessions: list[list[Trace]] = []
    reach_ns = 0
    for trace in sorted(traces, key=_starts_at):
        if not sessions or _starts_at(trace) > reach_ns:
            sessions.append([])
        sessions[-1].append(trace)
        reach_ns = max(reach_ns, int(trace.window.end_ns.max(initial=_starts_at(trace))))
    if len(sessions) == 1:
        return traces
    kept = max(reversed(sessions), key=len)
    left = len(traces) - len(kept)
    notes.append(
        Note(
            f"{count(len(sessions), 'profile')} of the same ranks: read {kept[0].origin.path}"
            f"{' and those beside it in time' if len(kept) > 1 else ''}, left out {count(left, 'trace')}; "
            "name one directory or glob to choose another"
        )
    )
    return kept


def _starts_at(trace: Trace) -> int:
    return int(trace.window.start_ns[0]) if len(trace.window) else 0


def _unranked_numbered(traces: list[Trace], notes: list[Note]) -> list[Trace]:
    """Traces that state no rank get the next free ones, in order of path."""
    unranked = [trace for trace in traces if trace.rank == UNRANKED]
    taken = {trace.rank for trace in traces}
    free = (rank for rank in range(len(traces) + max(taken, default=0) + 1) if rank not in taken)
    if unranked and len(traces) > 1:
        notes.append(Note(f"{count(len(unranked), 'trace')} without a rank: numbered in order of file name"))
    return [replace(trace, rank=next(free)) if trace.rank == UNRANKED else trace for trace in traces]


def _replicas_numbered(traces: list[Trace], notes: list[Note]) -> list[Trace]:
    """Ranks for traces recorded at the same time that claim one rank: replicas, numbered by replica and rank.

    In a world of several ranks, two claims of one rank are a contradiction: the note says so.
    """
    claims = Counter(trace.rank for trace in traces)
    world = max(claims) + 1
    seen: Counter[int] = Counter()
    numbered = []
    for trace in sorted(traces, key=lambda trace: (trace.origin.host, trace.origin.path)):
        numbered.append(replace(trace, rank=seen[trace.rank] * world + trace.rank))
        seen[trace.rank] += 1
    claimed, times = claims.most_common(1)[0]
    if all((trace.origin.world_size or 1) == 1 for trace in traces):
        what = f"{count(times, 'trace')} of one time call themselves rank {claimed} of 1: taken for replicas"
    else:
        what = f"{count(times, 'trace')} of one time claim rank {claimed}: taken for ranks of different instances"
    notes.append(Note(f"{what} and numbered in order of host and file name"))
    return numbered
