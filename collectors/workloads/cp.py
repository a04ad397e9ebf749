"""Context parallelism: the prompt is split by position, and keys and values stay where they were computed.

Prefill: keys and values of each layer go round a ring of ranks, or are gathered at once. The rank that has the last
position broadcasts its output. Decode: partial attention on every rank, merged (see `_context.py`).
"""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from collectors.workloads.context import PrefillSplitKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import BatchWorkload, RankPlace


class ContextParallel(BatchWorkload):
    """Some positions of every sequence."""

    AXES = ("cp",)

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        self.model = Transformer(settings.size)
        self.placed(self.model)
        self.peers = place.peers("cp")
        self.kv = self._empty()

    def _empty(self) -> PrefillSplitKV:
        settings, size = self.settings, self.peers.size
        room = self.room(tokens=settings.context // size + settings.steps // size + 1)
        return PrefillSplitKV(room, self.peers, settings.context, ring=settings.extra["attention"] == "ring")

    def prefill(self, prompt: Tensor) -> Tensor:
        """This rank's positions of the prompt; then the last one's output from the rank that has it."""
        self.kv.clear()
        last = self.model(prompt[:, self.kv.prompt_positions()], self.kv)[:, -1:].contiguous()
        if self.peers.size > 1:
            # Zigzag gives rank 0 the first and the last chunk.
            dist.broadcast(last, src=0, group=self.peers.group)
        return self.model.logits(last)

    def decode(self, tokens: Tensor) -> Tensor:
        """One token a row, on every rank."""
        return self.model.logits(self.model(tokens[:, None], self.kv))


workload = ContextParallel
