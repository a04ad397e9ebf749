"""What sort of run it is: `run.workload` of the report. Each fact with what shows it and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

UNKNOWN = "unknown"

Sure = Literal["declared", "certain", "likely", "unknown"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of the run, or not.

    Attributes:
        value: the word, `unknown` where nothing tells.
        evidence: what shows it, in one clause.
        sure: declared (run.json says so), certain (nothing else writes this), likely, or unknown.
    """

    value: str = UNKNOWN
    evidence: str = ""
    sure: Sure = "unknown"


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What one rank does.

    Attributes:
        rank: whose facts they are.
        phase: prefill, decode, mixed (prefill and decode steps), training, capture, or unknown.
        role: prefill, decode or colocated of a disaggregated deployment, `stage 2` of a pipeline; "" where it has none.
    """

    rank: int
    phase: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class GroupUse:
    """What a group of ranks is used for.

    Attributes:
        ranks: of the group, [] for all.
        use: data-parallel, tensor-parallel, expert-parallel, pipeline-parallel, context-parallel, embedding-parallel,
            hand-over, or unknown.
        evidence: what shows it.
    """

    ranks: list[int]
    use: str
    evidence: str


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """What sort of run it is.

    Attributes:
        work: serving, inference, training, graph capture, microbenchmark, or a cut-out of a step.
        engine: vllm, sglang, lightllm, nano-vllm, tensorrt-llm, megatron, ddp, fsdp, torchrec, diffusion, mindspore,
            torch, …: an open list.
        maker: of the device: nvidia, amd, huawei, intel, meta, cambricon; `cpu` for a host without one.
        replay: graph, eager, mixed, capture, none (no launch in the recording), or unknown.
        ranks: phase and role of each.
        groups: use of each group that communicates.
        cores: processor cores of the host, None where not recorded; ranks that share it without a device compete.
    """

    work: Fact = field(default_factory=Fact)
    engine: Fact = field(default_factory=Fact)
    maker: Fact = field(default_factory=Fact)
    replay: Fact = field(default_factory=Fact)
    ranks: list[RankFacts] = field(default_factory=list)
    groups: list[GroupUse] = field(default_factory=list)
    cores: int | None = None

    @property
    def phases(self) -> set[str]:
        """Phases of all ranks; mixed stands for prefill and decode."""
        seen = {rank.phase for rank in self.ranks}
        return seen | {"prefill", "decode"} if "mixed" in seen else seen
