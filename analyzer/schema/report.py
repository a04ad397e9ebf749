"""The hand-over: everything a renderer, a comparison or a gate may know of a run. JSON schema 1, both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from analyzer.errors import TraceFormatError
from analyzer.schema.bounds import ScalingFacts
from analyzer.schema.breakdown import BreakdownTables
from analyzer.schema.ladder import LadderRow, RankRung
from analyzer.schema.link import LinkRow
from analyzer.schema.waiting import WaitingTable
from analyzer.schema.workload import WorkloadFacts

SCHEMA = 1

Verdict = Literal["ok", "attention", "problem", "unknown"]


@dataclass(frozen=True, slots=True)
class Tool:
    """Who wrote the report."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """How the ranks' clocks were compared; error None where they were not."""

    method: str
    error_ns: int | None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was read.

    Attributes:
        label: path as given.
        ranks: ranks whose traces are here.
        world_size: ranks of the job, None where unknown.
        layout: axis → degree, plus `source` (declared, metadata, inferred, unknown).
        layout_evidence: axis → the sentence that says how it came to be known.
        engine: vllm, sglang, lightllm, megatron, ddp, torch, … or unknown: an open list.
        role: prefill, decode, colocated or "".
        devices: distinct device names.
        nodes: number of nodes, None where unknown.
        clock: how clocks were compared.
        warnings: what a reader of the figures must know, gravest first.
        wait_method: how waiting was told from transfer, or why it was not.
        versions: of engine and libraries, where recorded.
        settings: batch, lengths and the like, where recorded.
        model: dimensions as in a Hugging Face config, where recorded.
        reference: step times without the profiler and its inflation, where a collector timed both.
        memory: what the engine counted during the load: preemptions, kv_use, queried_tokens, cached_tokens.
        workload: what sort of run it is, with evidence; null in reports of earlier versions.
    """

    label: str
    ranks: list[int]
    world_size: int | None
    layout: dict[str, int | str]
    layout_evidence: dict[str, str]
    engine: str
    role: str
    devices: list[str]
    nodes: int | None
    clock: ClockFacts
    warnings: list[str]
    wait_method: str
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int | float | str] = field(default_factory=dict)
    model: dict[str, int | float | str] = field(default_factory=dict)
    reference: dict[str, int | float] = field(default_factory=dict)
    memory: dict[str, int | float] = field(default_factory=dict)
    workload: WorkloadFacts | None = None


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """All calls of one kind on one group.

    Attributes:
        group: ranks, empty where unknown.
        dimension: tp, ep, … or unknown.
        kind: all_reduce, …
        count: calls of the rank that has most.
        bytes: median message, None where not recorded.
        median_ns: median duration of a call on a rank, waiting included.
        transfer_ns: total without waiting, mean over ranks; None where waiting cannot be told.
        wait_ns: total waiting, mean over ranks; None where it cannot be told.
        exposed_ns: total exclusive time, mean over ranks.
        busbw_GBps: bus bandwidth of the median transfer, None where bytes or transfer are unknown.
        expected_busbw_GBps: of the same message on this rung, None where unknown.
        level: rung of the ladder crossed, or unknown.
        verdict: transfer, skew, mixed, inconclusive or unknown: what the time of these calls is, with `reason`.
        link: what it crosses, and what a call should take.
        fused: whether a kernel of these calls computes as well; None where a report does not state it.
    """

    group: list[int]
    dimension: str
    kind: str
    count: int
    bytes: int | None
    median_ns: int
    transfer_ns: int | None
    wait_ns: int | None
    busbw_GBps: float | None = None  # noqa: N815 (the unit as nccl-tests spells it)
    expected_busbw_GBps: float | None = None  # noqa: N815
    level: str = "unknown"
    verdict: str = "unknown"
    reason: str = ""
    link: LinkRow | None = None
    fused: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one of the six questions."""

    id: int
    name: str
    verdict: Verdict
    answer: str
    missing: list[str]


@dataclass(frozen=True, slots=True)
class FindingEvidence:
    """Where to look. Spans are nanoseconds after the run's first activity."""

    ranks: list[int]
    spans: list[list[int]]
    names: list[str]


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding; `cost_ns` is what could be recovered at most in the window, `cost_ns_per_step` the same per step."""

    rule: str
    name: str
    severity: Literal["info", "warning", "error"]
    question: int
    locality: str | None
    message: str
    cost_ns: int | None
    cost_ns_per_step: int | None
    cost_share: float | None
    basis: Literal["measured", "derived", "model"]
    evidence: FindingEvidence
    advice: list[str]
    url: str
    drawing: str = ""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What became of one rule: found, clean, or unknown with what is missing and the cure."""

    rule: str
    name: str
    question: int
    outcome: Literal["found", "clean", "unknown"]
    missing: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One diagnosis."""

    schema: int
    tool: Tool
    run: RunFacts
    breakdown: BreakdownTables
    collectives: list[CollectiveRow]
    ladder: list[LadderRow]
    questions: list[Answer]
    findings: list[FindingRow]
    rules: list[RuleOutcome]
    verdict: str = ""
    waiting: WaitingTable = field(default_factory=WaitingTable)
    rungs: list[RankRung] = field(default_factory=list)
    scaling: ScalingFacts = field(default_factory=ScalingFacts)
    extra: dict[str, Any] = field(default_factory=dict)


def to_json(report: Report) -> str:
    """Indented JSON of schema 1; keys in the order of the types."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def from_json(text: str | bytes, source: str) -> Report:
    """The report that `to_json` wrote.

    Raises:
        TraceFormatError: no report, or of another schema; names the place in it.
    """
    try:
        report = msgspec.json.decode(text, type=Report)
    except msgspec.DecodeError as error:
        raise TraceFormatError(
            f"{source}: not a shardscope report ({error}); "
            "write one with `shardscope diagnose RUN --format json -o FILE`"
        ) from error
    if report.schema != SCHEMA:
        raise TraceFormatError(f"{source}: report of schema {report.schema}, this version reads schema {SCHEMA}")
    return report


def json_schema() -> dict[str, object]:
    """JSON Schema of schema 1, made from the types above."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Report)}
