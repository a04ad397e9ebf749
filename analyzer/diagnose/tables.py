"""Measures of a run as the rows of its report."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.diagnose.bounds import bound_rows
from analyzer.diagnose.link import link_row
from analyzer.errors import MissingEvidenceError
from analyzer.matching.clock import clock
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.breakdown import Breakdown, breakdown
from analyzer.measures.experts.load import expert_loads
from analyzer.measures.links import links
from analyzer.measures.records.plausible import doubt_of, notes
from analyzer.measures.records.stuck import stuck
from analyzer.measures.reuse import counted_reuse
from analyzer.measures.skew import group_waiting
from analyzer.measures.stages import stages
from analyzer.measures.traffic import traffic
from analyzer.measures.waits import waits
from analyzer.measures.workload import workload
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt, Note
from analyzer.schema.bounds import ExpertRow, ScalingFacts, StageRow
from analyzer.schema.breakdown import BreakdownTables, Hidden, RankBreakdown, StepKind, SyncCauses
from analyzer.schema.finding import Basis
from analyzer.schema.report import ClockFacts, CollectiveRow, RunFacts
from analyzer.steps.steps import step_summary
from analyzer.units import ranks, share

UNCLASSIFIED_WARNING = 0.05
"""Share of the window in unknown names beyond which every term is in doubt (architecture: make it loud)."""

INFLATED = 1.1
"""Steps with the profiler over steps without, beyond which shares are worth a warning; run-to-run noise stays below."""


def run_facts(run: Run) -> RunFacts:
    """What was read, with the warnings that go before any figure."""
    origins = [trace.origin for trace in run.traces]
    nodes = set(run.topology.node_of.values())
    sort = workload(run)
    return RunFacts(
        label=run.label,
        ranks=list(run.ranks),
        world_size=run.layout.world_size,
        layout={**run.layout.sizes, "source": run.layout.source.value},
        layout_evidence=dict(run.layout.evidence),
        engine=sort.engine.value,
        role=run.workload.role,
        devices=sorted({origin.device_name or origin.device for origin in origins}),
        nodes=len(nodes) or None,
        clock=_clock_facts(run),
        warnings=list(warnings(run)),
        wait_method=_wait_method(run),
        versions={**{k: v for origin in origins for k, v in origin.versions.items()}, **run.workload.versions},
        settings=dict(run.workload.settings),
        model=dict(run.workload.model),
        reference=dict(run.workload.reference),
        memory=_memory(run),
        workload=sort,
    )


def _memory(run: Run) -> dict[str, int | float]:
    """What was summed up, and what the engine's counters tell."""
    counted = counted_reuse(run)
    if counted is None:
        return dict(run.workload.memory)
    counters = {
        "preemptions": counted.preemptions,
        "queried_tokens": counted.queried_tokens,
        "cached_tokens": counted.cached_tokens,
    }
    return {**run.workload.memory, **{name: value for name, value in counters.items() if value is not None}}


def _clock_facts(run: Run) -> ClockFacts:
    try:
        common_clock = clock(run)
    except MissingEvidenceError:
        return ClockFacts("not compared", None)
    return ClockFacts(common_clock.method, common_clock.error_ns)


def _wait_method(run: Run) -> str:
    try:
        return waits(run).method
    except MissingEvidenceError as lack:
        return f"waiting is not told from transfer: {lack}"


def warnings(run: Run) -> Iterator[str]:
    """What makes figures unreliable, then unclassified time, an inflating profiler, stuck calls, and the rest."""
    worded = [(bool(note.doubts), _worded(note.text, note.count, where)) for note, where in _notes(run)]
    yield from (text for is_doubt, text in worded if is_doubt)
    parts = breakdown(run)
    busy_ns = sum(rank_times.device_busy_ns for rank_times in parts)
    unknown_ns = sum(rank_times.unclassified_ns for rank_times in parts)
    if busy_ns and unknown_ns / busy_ns > UNCLASSIFIED_WARNING:
        yield (
            f"{share(unknown_ns / busy_ns)} of busy time is in kernels that no pattern knows, counted as compute: "
            "every term is in doubt by that much"
        )
    reference = run.workload.reference
    inflation = reference.get("inflation", 1.0)
    if inflation >= INFLATED and reference.get("inflation_low", inflation) > 1:
        spread = ""
        if "inflation_low" in reference and "inflation_high" in reference:
            spread = f" (quartiles {reference['inflation_low']:.2f}x to {reference['inflation_high']:.2f}x)"
        yield f"the profiler slowed the steps {inflation:.2f}x{spread}: the same steps were timed without it"
    yield from (note.text for note in stuck(run))
    yield from (text for is_doubt, text in worded if not is_doubt)


def _notes(run: Run) -> Iterator[tuple[Note, tuple[int, ...]]]:
    """The notes; the ranks are named where there are several."""
    for note, where in notes(run):
        yield note, where if len(run.traces) > 1 else ()


def _worded(text: str, times: int, where: tuple[int, ...]) -> str:
    """A note with how often and on which ranks."""
    on_ranks = f" (rank{'s' if len(where) > 1 else ''} {ranks(where)})" if where else ""
    return f"{text}{f' ×{times:,}' if times > 1 else ''}{on_ranks}"


def breakdown_tables(run: Run) -> BreakdownTables:
    """Per rank and per kind of step."""
    is_idle_known = doubt_of(run, frozenset((Doubt.IDLE,))) is None
    rows = [_rank_row(rank_times, is_idle_known=is_idle_known) for rank_times in breakdown(run)]
    return BreakdownTables(rows, step_rows(run))


def _rank_row(rank_times: Breakdown, *, is_idle_known: bool) -> RankBreakdown:
    subclasses = {
        word: time_ns for (_, word), time_ns in sorted(rank_times.subclass_ns.items(), key=lambda item: -item[1])
    }
    return RankBreakdown(
        rank=rank_times.rank,
        window_ns=rank_times.window.total_ns,
        compute_ns=rank_times.compute.total_ns,
        communication_ns=rank_times.communication.total_ns,
        movement_ns=rank_times.movement.total_ns,
        sync_ns=rank_times.sync.total_ns,
        hidden=Hidden(rank_times.hidden_communication_ns, rank_times.hidden_movement_ns),
        sync_causes=_sync_causes(rank_times, is_idle_known=is_idle_known),
        subclasses=subclasses,
        unclassified_ns=rank_times.unclassified_ns,
        device_busy_ns=rank_times.device_busy_ns,
        fused_ns=rank_times.fused_ns,
        overlapped_ns=rank_times.overlapped_ns,
    )


def _sync_causes(rank_times: Breakdown, *, is_idle_known: bool) -> SyncCauses:
    """Why the device did nothing; where lost records read as idle time, only waiting for peers is told."""
    causes = rank_times.causes
    waited_ns = causes[Cause.PEER_WAIT].total_ns
    if not is_idle_known:
        return SyncCauses(
            peer_wait_ns=waited_ns,
            host_sync_ns=0,
            host_launch_ns=0,
            stream_wait_ns=0,
            queue_ns=0,
            unknown_ns=rank_times.sync.total_ns - waited_ns,
        )
    return SyncCauses(
        peer_wait_ns=waited_ns,
        host_sync_ns=causes[Cause.HOST_SYNC].total_ns,
        host_launch_ns=causes[Cause.HOST_LAUNCH].total_ns,
        stream_wait_ns=causes[Cause.STREAM_WAIT].total_ns,
        queue_ns=causes[Cause.QUEUE].total_ns,
        unknown_ns=causes[Cause.UNKNOWN].total_ns,
        unrecorded_ns=causes[Cause.UNRECORDED].total_ns,
    )


def step_rows(run: Run) -> list[StepKind]:
    """Steps by kind."""
    terms = [{kind.label: rank_times.term(kind) for kind in Kind} for rank_times in breakdown(run)]
    return [
        StepKind(
            kind=row.kind,
            source=row.source,
            count=row.count,
            median_ns=row.median_ns,
            p90_ns=row.p90_ns,
            period_ns=row.period_ns,
            terms=row.terms,
            left_out=row.left_out,
            tokens=row.median_tokens,
            requests=row.median_requests,
        )
        for row in step_summary(run, terms)
    ]


def collective_rows(run: Run) -> list[CollectiveRow]:
    """Collectives by kind and group, most exposed first."""
    rows = []
    for row, link in zip(traffic(run), links(run), strict=True):
        waiting = group_waiting(run, row)
        members = row.group or (waiting.ranks if waiting else ())
        rows.append(
            CollectiveRow(
                group=list(members),
                dimension=run.layout.axis_of(members, row.kind) or "unknown",
                kind=row.kind,
                count=row.count,
                bytes=row.message_bytes,
                median_ns=row.median_ns,
                transfer_ns=waiting.transfer_ns if waiting else None,
                wait_ns=waiting.wait_ns if waiting else None,
                verdict=waiting.verdict.value if waiting else "unknown",
                reason=waiting.reason if waiting else "",
                busbw_GBps=_gigabytes(link.busbw_bytes_per_s),
                expected_busbw_GBps=_gigabytes(link.expected_busbw_bytes_per_s),
                level=link.rung,
                link=link_row(link),
                fused=row.fused,
            )
        )
    return rows


def _gigabytes(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / 1e9


def scaling_facts(run: Run) -> ScalingFacts:
    """Pipeline stages, the load of experts, upper bounds."""
    return ScalingFacts(
        [
            StageRow(
                ranks=list(row.ranks),
                kind=row.kind,
                stages_ns=[round(time_ns) for time_ns in row.account.stages_ns],
                cycle_ns=round(row.account.cycle_ns),
                balance=row.account.balance,
                speedup=row.account.speedup,
                bubble_share=row.bubble_share,
                imbalance_share=row.imbalance_share,
                sentence=row.sentence,
                basis=Basis.MEASURED.value,
            )
            for row in stages(run)
        ],
        [
            ExpertRow(
                ranks=list(row.ranks),
                source=row.source,
                imbalance=row.load.imbalance,
                cause=row.load.cause.value,
                lost_ns=row.lost_ns,
                exchange_ns=row.exchange_ns,
                sentence=row.sentence,
                advice=list(fitting(run, row.load.advice, row.ranks)),
                basis=row.basis.value,
            )
            for row in expert_loads(run)
        ],
        bound_rows(run),
    )
