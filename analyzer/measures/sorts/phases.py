"""Phase and role of each rank."""

from __future__ import annotations

from pathlib import PurePath

from analyzer.measures.sorts.sign import Sign, claims, joined
from analyzer.measures.sorts.works import trains
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.schema.workload import UNKNOWN, Fact, GroupUse, RankFacts
from analyzer.steps.steps import Phase, steps

PHASES = (
    Sign(
        r"internode_ll|_decode_kernel|BatchDecode|flash_fwd_splitkv|paged_attention_v\d|decode_attention|grouped_decode",
        "kernel",
        "decode",
        "likely",
        "kernels for one token a request",
        (
            "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*)",
            "flashinfer::BatchDecodeWithPagedKVCacheKernel",
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)",
        ),
    ),
    Sign(
        r"BatchPrefill|context_attention_fwd|_prefill_kernel|deep_ep::intranode::dispatch",
        "kernel",
        "prefill",
        "likely",
        "kernels for whole prompts",
        ("flashinfer::BatchPrefillWithPagedKVCacheKernel", "_context_attention_fwd_kernel"),
    ),
)
"""Kernels that engines use in one phase only."""

_WORDS = {
    Phase.PREFILL: "prefill",
    Phase.DECODE: "decode",
    Phase.MIXED: "mixed",
    Phase.DRAFT: "decode",
    Phase.VERIFY: "decode",
}
_DISAGGREGATED = ("prefill", "decode")


def rank_facts(run: Run, work: Fact, uses: list[GroupUse]) -> list[RankFacts]:
    """Phase and role of each rank, in order of ranks."""
    stages = _stages(run, uses)
    handed = any(use.use == "hand-over" for use in uses)
    facts = []
    for trace in run.traces:
        phase, role = _phase(run, trace, work), _role(run, trace)
        if not role and handed and phase in _DISAGGREGATED:
            role = phase
        if not role and trace.rank in stages:
            role = f"stage {stages[trace.rank]}"
        facts.append(RankFacts(trace.rank, role if role in _DISAGGREGATED else phase, role))
    return facts


def _phase(run: Run, trace: Trace, work: Fact) -> str:
    stated = run.workload.declared.get("phase", "")
    if stated:
        return stated
    if work.value == "graph capture":
        return "capture"
    if work.value == "training" or (work.value == "cut-out of a step" and trains(run)):
        return "training"
    if trace.origin.stage:
        return trace.origin.stage
    rank = next(rank for rank in steps(run) if rank.rank == trace.rank)
    seen = {_WORDS[Phase(word)] for word in set(rank.phase.tolist()) if Phase(word) in _WORDS}
    if seen:
        return seen.pop() if len(seen) == 1 else "mixed"
    if work.value not in ("serving", "cut-out of a step"):
        return UNKNOWN
    kernels = {sign.says for sign, _ in claims(PHASES, joined((trace,)))}
    return kernels.pop() if len(kernels) == 1 else UNKNOWN


def _role(run: Run, trace: Trace) -> str:
    """Of a disaggregated deployment, as run.json, the server's arguments or the folder's name state it."""
    if trace.rank in run.workload.roles:
        return run.workload.roles[trace.rank]
    if run.workload.role and (not trace.origin.stage or run.workload.declared.get("role")):
        return run.workload.role
    folders = {folder.name.lower() for folder in PurePath(trace.origin.path).parents}
    return trace.origin.stage if trace.origin.stage in folders else ""


def _stages(run: Run, uses: list[GroupUse]) -> dict[int, int]:
    """Stage of each rank: its position in its group of the pipeline, else among the ranks that hand on activations."""
    rows = run.layout.groups.get("pp", ())
    if not rows and "pp" not in run.layout.sizes:
        rows = tuple(tuple(use.ranks) for use in uses if use.use == "pipeline-parallel")
    return {rank: stage for row in rows if len(row) > 1 for stage, rank in enumerate(row)}
