"""What each group of ranks that communicates is used for."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.measures.sorts.engines import SERVING
from analyzer.measures.sorts.sign import Names, Sign, first, names_of_run
from analyzer.measures.traffic import Traffic, traffic
from analyzer.model.layout import Source
from analyzer.model.run import Run
from analyzer.schema.workload import UNKNOWN, Fact, GroupUse

EXCHANGES = ("all_to_all", "send_recv", "send", "recv")
PAIRS = ("send_recv", "send", "recv")
EXPERTS = ("dispatch", "combine")
REDUCTIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "collective")

USE_OF_AXIS = {
    "tp": "tensor-parallel",
    "pp": "pipeline-parallel",
    "dp": "data-parallel",
    "ep": "expert-parallel",
    "cp": "context-parallel",
    "dcp": "context-parallel",
}


@dataclass(frozen=True, slots=True)
class UseSign:
    """A name that tells what collectives of some kinds are for.

    Attributes:
        sign: the name and the use it says.
        kinds: of collectives that it speaks of.
    """

    sign: Sign
    kinds: tuple[str, ...]


USES = (
    UseSign(
        Sign(
            r"kv_(?:send|recv|pack|transfer)|(?i:nixl|mooncake)",
            "host",
            "hand-over",
            "likely",
            "keys and values change hands",
            ("pd.kv_send", "mooncake.transfer"),
        ),
        PAIRS,
    ),
    UseSign(
        Sign(
            r"^ring\.|(?i:ring_?attn|ring_?attention)",
            "host",
            "context-parallel",
            "likely",
            "attention over a ring",
            ("ring.attend", "RingAttentionFunc"),
        ),
        PAIRS,
    ),
    UseSign(
        Sign(
            r"^All2All_Pooled_Req|^## all2all_data:|KJTListSplitsAwaitable|fbgemm::split_embedding",
            "host",
            "embedding-parallel",
            "certain",
            "tables of embeddings are split",
            ("All2All_Pooled_Req",),
        ),
        EXCHANGES,
    ),
    UseSign(
        Sign(
            r"^moe\.|(?i:moe_|_moe|grouped_gemm|grouped_mm|expert)",
            "host",
            "expert-parallel",
            "likely",
            "experts run beside it",
            ("moe.dispatch", "vllm::moe_forward"),
        ),
        EXCHANGES,
    ),
    UseSign(
        Sign(
            r"(?i:moe|grouped_gemm|topk_gating)",
            "kernel",
            "expert-parallel",
            "likely",
            "experts run beside it",
            ("fused_moe_kernel", "prepare_grouped_gemm_data"),
        ),
        EXCHANGES,
    ),
    UseSign(
        Sign(
            r"^(?:Nested)?Redistribute$|^_ReduceFromModelParallelRegion|^_CopyToModelParallelRegion",
            "host",
            "tensor-parallel",
            "likely",
            "tensors are redistributed inside the layers",
            ("Redistribute", "_ReduceFromModelParallelRegionBackward"),
        ),
        REDUCTIONS,
    ),
)
"""Signs of uses, asked in this order."""

_SHARDED = frozenset(("fsdp", "deepspeed", "ddp", "torchrec", "mindspore"))
"""Engines whose reductions are those of gradients and parameters of replicas."""


def group_uses(run: Run, work: Fact, engine: Fact) -> list[GroupUse]:
    """Use of each group, a row for each of its uses."""
    names = names_of_run(run)
    uses: dict[tuple[tuple[int, ...], str], GroupUse] = {}
    for row in traffic(run):
        if row.kind in ("barrier", "marker"):
            continue
        use, evidence = _use(run, row, names, (work, engine))
        uses.setdefault((row.group, use), GroupUse(list(row.group), use, evidence))
    recorded = {use for ranks, use in uses if ranks}
    known = {ranks for ranks, use in uses if use != UNKNOWN}
    return [
        row
        for (ranks, use), row in uses.items()
        if (ranks or use not in recorded) and (use != UNKNOWN or ranks not in known)
    ]


def _use(run: Run, row: Traffic, names: Names, facts: tuple[Fact, Fact]) -> tuple[str, str]:
    """As the layout states it, as a sign says, as the sort of work has it, as the layout was inferred."""
    axis = run.layout.axis_of(row.group, row.kind) if row.group else None
    is_stated = run.layout.source in (Source.DECLARED, Source.METADATA)
    if axis and is_stated:
        return USE_OF_AXIS[axis], run.layout.evidence.get(axis, axis)
    if row.kind in EXPERTS:
        return "expert-parallel", "tokens are dispatched to experts"
    for entry in USES:
        if row.kind in entry.kinds and (entry.sign.says != "tensor-parallel" or facts[1].value not in _SHARDED):
            name = first(entry.sign, names)
            if name is not None:
                return entry.sign.says, f"{name[:60]!r}: {entry.sign.source}"
    return _by_work(run, row, facts, axis)


def _by_work(run: Run, row: Traffic, facts: tuple[Fact, Fact], axis: str | None) -> tuple[str, str]:
    work, engine = facts
    if axis:
        return USE_OF_AXIS[axis], run.layout.evidence.get(axis, axis)
    if work.value == "training" and row.kind in REDUCTIONS:
        return "data-parallel", f"{row.kind} of training, and nothing that splits its layers"
    if work.value == "training" and row.kind in PAIRS:
        return "pipeline-parallel", "neighbours pass on activations and gradients"
    if engine.value in SERVING and row.kind in REDUCTIONS and run.layout.sizes.get("tp", 0) > 1:
        return "tensor-parallel", f"{row.kind} of {engine.value}"
    return UNKNOWN, f"nothing says what its {row.kind} is for"
