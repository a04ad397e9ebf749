"""Load of experts and of the ranks that hold them: how uneven, why, and what placement would change."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from analyzer.errors import UsageError
from analyzer.schema.advice import Advice, Suggestion
from analyzer.stats.arrays import Floats, Integers
from analyzer.stats.tests import chi_squared_tail

NEGLIGIBLE = 1.05
"""Fullest rank over the mean, below which no placement is worth its cost."""
CHANCE = 1e-3
"""Probability that random routing looks as uneven, below which skew is named."""

REBALANCE = (
    Advice(
        "Rebalance with redundant experts: --enable-eplb.",
        engines=("vllm",),
        layout=("experts",),
        unless=("--enable-eplb",),
    ),
    Advice(
        "Rebalance with redundant experts: --enable-eplb.",
        engines=("sglang",),
        layout=("experts",),
        unless=("--enable-eplb",),
    ),
    "Rebalance with redundant experts.",
)


class ImbalanceCause(str, Enum):
    """Why ranks are loaded unevenly."""

    BALANCED = "balanced"
    NOISE = "noise"
    SKEW = "skew"


@dataclass(frozen=True, slots=True)
class RankLoad:
    """How evenly tokens fall on ranks.

    Attributes:
        imbalance: fullest rank over the mean, in one layer of one step, averaged over layers and steps.
        lasting: the same of all steps together: the part that a better placement can take away.
        random: what random routing alone would make of `imbalance`, by formula; an upper estimate.
        cause: noise falls with more tokens a step, skew does not.
    """

    imbalance: float
    lasting: float
    random: float
    cause: ImbalanceCause

    @property
    def advice(self) -> tuple[Suggestion, ...]:
        """What to do, in terms of the engines' settings."""
        if self.cause is ImbalanceCause.SKEW:
            return (
                REBALANCE,
                "Measure with real prompts: random tokens understate skew.",
            )
        if self.cause is ImbalanceCause.NOISE:
            return (
                "Put more tokens into a step: larger batches, or fewer expert-parallel ranks.",
                "Do not rebalance: no placement removes chance.",
            )
        return ()


def ranks_of(counts: Integers, ranks: int) -> Integers:
    """int64[…, ranks]: tokens of each rank, experts placed in order, equally many a rank.

    Args:
        counts: int64[…, experts].
        ranks: that share the experts.

    Raises:
        UsageError: the experts do not divide.
    """
    experts = counts.shape[-1]
    if experts % ranks:
        raise UsageError(f"{experts} experts do not divide by {ranks} ranks; state where redundant experts lie")
    return np.asarray(counts.reshape(*counts.shape[:-1], ranks, experts // ranks).sum(-1))


def imbalance(counts: Integers) -> float:
    """Fullest over mean, averaged over all but the last axis; rows without any token are left out.

    Args:
        counts: int64[…, ranks or experts].

    Raises:
        ValueError: no token at all.
    """
    rows = counts.reshape(-1, counts.shape[-1])
    rows = rows[rows.sum(-1) > 0]
    if not len(rows):
        raise ValueError("no tokens were counted")
    return float((rows.max(-1) / rows.mean(-1)).mean())


def random_imbalance(ranks: int, tokens: float) -> float:
    """Fullest over mean rank if each of `tokens` a rank is routed at random: 1 + sqrt(2 ln R / λ).

    Too high by a fifth of its excess: 64 ranks with 64 tokens each are 1.36 here and 1.30 in simulation.
    """
    return 1.0 if ranks == 1 else 1 + math.sqrt(2 * math.log(ranks) / tokens)


def load(counts: Integers) -> RankLoad:
    """How uneven the ranks are, and whether chance explains it.

    Random routing to distinct experts scatters the ranks' sums less than independent tokens would, so that a
    chi-square over layers errs on the side of noise. Tokens of one prompt resemble each other: one step alone can look
    skewed without lasting; give several.

    Args:
        counts: int64[steps, layers, ranks], tokens times experts a token.

    Raises:
        ValueError: no token at all.
    """
    sums = counts.sum(0)
    sums = sums[sums.sum(-1) > 0]
    now, lasting = imbalance(counts), imbalance(sums)
    mean = sums.mean(-1, keepdims=True)
    distance = float(((sums - mean) ** 2 / mean).sum())
    chance = chi_squared_tail(distance, sums.size - len(sums)) if counts.shape[-1] > 1 else 1.0
    if now < NEGLIGIBLE:
        cause = ImbalanceCause.BALANCED
    else:
        cause = ImbalanceCause.SKEW if chance < CHANCE and lasting >= NEGLIGIBLE else ImbalanceCause.NOISE
    tokens = float(counts[counts.sum(-1) > 0].mean())
    return RankLoad(now, lasting, random_imbalance(counts.shape[-1], tokens), cause)


def rebalanced(counts: Integers, ranks: int, redundant: int = 0) -> float:
    """Imbalance over ranks that the same tokens would have with experts placed by load and the hottest doubled.

    Each redundant copy goes to the expert with most tokens a copy; copies are then packed, largest first, onto the
    emptiest rank that has room. Averaged over layers.

    Args:
        counts: int64[layers, experts].
        ranks: that share the copies.
        redundant: copies beyond one an expert.

    Raises:
        UsageError: the copies do not divide.
    """
    copies = counts.shape[-1] + redundant
    if copies % ranks:
        raise UsageError(f"{copies} copies of experts do not divide by {ranks} ranks; change the redundant ones")
    layers = [_packed(_copies(row.astype(np.float64), redundant), ranks) for row in counts if row.sum()]
    return sum(layers) / len(layers)


def _copies(tokens: Floats, redundant: int) -> list[float]:
    """Tokens of each copy, largest first."""
    number = np.ones(tokens.size)
    for _ in range(redundant):
        number[np.argmax(tokens / number)] += 1
    return sorted(np.repeat(tokens / number, number.astype(np.int64)).tolist(), reverse=True)


def _packed(copies: list[float], ranks: int) -> float:
    """Fullest over mean rank, ranks holding equally many copies."""
    room = len(copies) // ranks
    heap = [(0.0, rank) for rank in range(ranks)]
    held = [0] * ranks
    full = []
    for tokens in copies:
        filled, rank = heapq.heappop(heap)
        held[rank] += 1
        if held[rank] < room:
            heapq.heappush(heap, (filled + tokens, rank))
        else:
            full.append(filled + tokens)
    return max(full) / (sum(full) / ranks)
