"""Expert parallelism: each rank serves its own sequences, and the experts of every layer are spread over the ranks.

A layer's feed-forward: router, all-to-all of counts, dispatch (all-to-all of tokens, uneven), the experts that are
here on the tokens that came, combine (all-to-all back). Attention is data-parallel.
"""

# mypy: disallow-subclassing-any=False, warn-return-any=False

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.profiler import record_function

from collectors.workloads.context import Peers
from collectors.workloads.kv import LocalKV
from collectors.workloads.model import SwiGLU, Transformer
from collectors.workloads.settings import JobSettings, ModelSize
from collectors.workloads.workload import BatchWorkload, Facts, RankPlace

# Spread of Gumbel noise. Were the router's scores such noise, adding log p to them would choose each expert with
# probability p; they are near normal, so that the popularity that `skew` asks for is met roughly: run.json has counts.
SCORE_SPREAD = math.pi / math.sqrt(6)


class MixtureOfExperts(nn.Module):
    """Router and experts of one layer; those experts alone that this rank holds.

    Attributes:
        routed: int64 [experts], tokens that this rank sent to each expert since it was last zeroed.
    """

    def __init__(self, size: ModelSize, peers: Peers, skew: float) -> None:
        super().__init__()
        self.size, self.peers = size, peers
        self.here = size.experts // peers.size
        first = peers.rank * self.here
        self.router = nn.Linear(size.hidden, size.experts, bias=False)
        self.experts = nn.ModuleDict({str(first + index): SwiGLU(size.hidden, size.ffn) for index in range(self.here)})
        # Zipf: the k-th expert is asked for in proportion to k ^ -skew. Not a parameter: it is not drawn.
        popularity = -skew * torch.arange(1, size.experts + 1, dtype=torch.float32).log()
        self.register_buffer("popularity", popularity, persistent=False)
        self.register_buffer("routed", torch.zeros(size.experts, dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, tokens, hidden] → the same."""
        tokens = x.flatten(0, 1)
        scores = self.router(tokens).float() * SCORE_SPREAD + self.popularity
        weights, chosen = scores.softmax(-1).topk(self.size.top_k)
        expert, order = chosen.flatten().sort(stable=True)
        counts = torch.bincount(expert, minlength=self.size.experts)
        self.routed += counts
        sent = tokens[order // self.size.top_k]
        answers = self._all(sent, counts) if self.peers.size == 1 else self._exchanged(sent, counts)
        unsorted = torch.empty_like(answers)
        unsorted[order] = answers
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        return (unsorted.unflatten(0, chosen.shape) * weights.unsqueeze(-1)).sum(1).view_as(x)

    def _all(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """The experts here over `tokens` that are sorted by expert, `counts` to each."""
        with record_function("moe.experts"):
            parts = tokens.split(counts.tolist())
            return torch.cat([expert(routed) for expert, routed in zip(self.experts.values(), parts, strict=True)])

    def _exchanged(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """The same over all ranks' experts: tokens go there and come back."""
        size, group = self.peers.size, self.peers.group
        arriving = torch.empty_like(counts)
        with record_function("moe.counts"):
            dist.all_to_all_single(arriving, counts, group=group)
            out_split = counts.view(size, -1).sum(1).tolist()
            in_split = arriving.view(size, -1).sum(1).tolist()
        here = tokens.new_empty((sum(in_split), tokens.shape[1]))
        with record_function("moe.dispatch"):
            dist.all_to_all_single(here, tokens, in_split, out_split, group=group)
        # They come sorted by source, then by expert; the experts want them sorted by expert.
        expert = torch.arange(self.here, device=tokens.device).repeat(size).repeat_interleave(arriving)
        order = expert.argsort(stable=True)
        answers = torch.empty_like(here)
        answers[order] = self._all(here[order], arriving.view(size, -1).sum(0))
        back = torch.empty_like(tokens)
        with record_function("moe.combine"):
            dist.all_to_all_single(back, answers, out_split, in_split, group=group)
        return back


class ExpertParallel(BatchWorkload):
    """Some sequences, and some experts of every layer."""

    AXES = ("ep", "dp")

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        self.share_rows()
        layer = partial(MixtureOfExperts, settings.size, place.peers("ep"), float(settings.extra["skew"]))
        self.model = Transformer(settings.size, feed_forward=layer)
        self.placed(self.model)
        self.kv = LocalKV.empty(self.room())

    def prefill(self, prompt: Tensor) -> Tensor:
        """This rank's prompts."""
        self.kv.length = 0
        return self.model.logits(self.model(prompt, self.kv))

    def decode(self, tokens: Tensor) -> Tensor:
        """One token a row."""
        return self.model.logits(self.model(tokens[:, None], self.kv))

    def forget(self) -> None:
        """Count routed tokens from zero."""
        for block in self.model.blocks.values():
            block.ffn.routed.zero_()

    def facts(self) -> Facts:
        """Tokens that this rank sent to each expert, over all layers."""
        routed = torch.stack([block.ffn.routed for block in self.model.blocks.values()])
        return {"expert_tokens": routed.sum(0).tolist()}

    @staticmethod
    def summary(facts: Sequence[Facts]) -> Facts:
        """The same over all ranks."""
        return {"expert_tokens": torch.tensor([rank_facts["expert_tokens"] for rank_facts in facts]).sum(0).tolist()}


workload = ExpertParallel
