"""Bytes of expert dispatch and combine by formula, for each way to exchange tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

SCALE_BLOCK = 128
"""Elements that share one fp32 scale in fp8 dispatch."""
LOW_LATENCY_HEADER = 16
"""Bytes before each token of DeepEP's low-latency dispatch."""
FEW_TOKENS = 128
"""Tokens a rank and step up to which DeepEP's low-latency kernels are meant."""


@dataclass(frozen=True, slots=True)
class ExpertRouting:
    """One mixture-of-experts layer in one step.

    Attributes:
        tokens: of one rank.
        hidden: elements of a token.
        topk: experts a token.
        experts: of the layer.
        ranks: that share the experts.
        nodes: that hold the ranks.
        fp8: whether dispatch sends fp8 with scales; combine always sends bf16.
    """

    tokens: int
    hidden: int
    topk: int
    experts: int
    ranks: int
    nodes: int = 1
    fp8: bool = True


def token_bytes(hidden: int, *, fp8: bool) -> int:
    """Bytes of one token: fp8 with a scale every 128 elements, or bf16."""
    return hidden + 4 * hidden // SCALE_BLOCK if fp8 else 2 * hidden


def dispatch_bytes(layer: ExpertRouting) -> float:
    """Bytes that one rank sends to others, a copy for each expert: T·k·h·(R-1)/R."""
    sent = layer.tokens * layer.topk * token_bytes(layer.hidden, fp8=layer.fp8)
    return sent * (layer.ranks - 1) / layer.ranks


def combine_bytes(layer: ExpertRouting) -> float:
    """Bytes that one rank gets back: the same copies in bf16."""
    return layer.tokens * layer.topk * token_bytes(layer.hidden, fp8=False) * (layer.ranks - 1) / layer.ranks


def remote_nodes(experts: int, topk: int, nodes: int) -> float:
    """Other nodes that a token goes to, experts chosen at random: (N-1)·(1 - C(E-E/N, k)/C(E, k))."""
    missed = math.comb(experts - experts // nodes, topk) / math.comb(experts, topk)
    return (nodes - 1) * (1 - missed)


def network_bytes(layer: ExpertRouting) -> float:
    """Bytes that one rank's dispatch sends between nodes, one copy a node."""
    copies = remote_nodes(layer.experts, layer.topk, layer.nodes)
    return layer.tokens * copies * token_bytes(layer.hidden, fp8=layer.fp8)


def low_latency_bytes(layer: ExpertRouting) -> int:
    """Bytes of one rank's dispatch in DeepEP's low-latency form, local copies included: a message an expert."""
    return layer.tokens * layer.topk * (LOW_LATENCY_HEADER + token_bytes(layer.hidden, fp8=layer.fp8))


def gather_bytes(layer: ExpertRouting) -> float:
    """Bytes that one rank receives where all tokens are gathered to all ranks, in bf16; the way back is as much."""
    return (layer.ranks - 1) * layer.tokens * token_bytes(layer.hidden, fp8=False)


def backend(layer: ExpertRouting) -> str:
    """The exchange that the sizes speak for, by vLLM's name for --all2all-backend."""
    if layer.nodes == 1 and gather_bytes(layer) <= dispatch_bytes(layer):
        return "allgather_reducescatter"
    return "deepep_low_latency" if layer.tokens <= FEW_TOKENS else "deepep_high_throughput"
