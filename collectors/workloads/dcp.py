"""Decode context parallelism: keys and values of every sequence are split by position while decoding.

Prefill is computed whole on every rank, which keeps the positions that are its own: a rank's cache holds 1 / degree of
the tokens. Decode: partial attention on every rank, merged (see `_context.py`). Weights are not split.
"""

from __future__ import annotations

from torch import Tensor

from collectors.workloads.context import DecodeSplitKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import BatchWorkload, RankPlace


class DecodeContextParallel(BatchWorkload):
    """Some positions of every sequence's cache."""

    AXES = ("dcp",)

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        self.model = Transformer(settings.size)
        self.placed(self.model)
        self.peers = place.peers("dcp")
        self.kv = self._empty()

    def _empty(self) -> DecodeSplitKV:
        tokens = (self.settings.context + self.settings.steps) // self.peers.size + 1
        return DecodeSplitKV(self.room(tokens=tokens), self.peers, self.settings.context)

    def prefill(self, prompt: Tensor) -> Tensor:
        """The whole prompt on every rank."""
        self.kv.clear()
        return self.model.logits(self.model(prompt, self.kv))

    def decode(self, tokens: Tensor) -> Tensor:
        """One token a row, on every rank."""
        return self.model.logits(self.model(tokens[:, None], self.kv))


workload = DecodeContextParallel
