"""Data parallelism as an engine runs it: whole replicas, each with its own requests, kept in step.

Before each step the replicas tell one another in one small all-reduce how many requests they have; one without any
runs a dummy step, so that the others find it in the collectives of their layers (which a dense model has none of).
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.profiler import record_function

from collectors.workloads.kv import LocalKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import DUMMY_STEP, BatchWorkload, RankPlace, Sampler, StepClock, greedy


class DataParallel(BatchWorkload):
    """One replica."""

    AXES = ("dp",)

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        self.share_rows()
        self.model = Transformer(settings.size)
        self.placed(self.model)
        self.kv = LocalKV.empty(self.room())
        self.peers = place.peers("dp")
        last = place.rank == place.world - 1 and place.world > 1
        self.busy_steps = settings.steps - (int(settings.extra.get("idle_steps", 0)) if last else 0)

    def prefill(self, prompt: Tensor) -> Tensor:
        """This replica's prompts."""
        self.kv.length = 0
        return self.model.logits(self.model(prompt, self.kv))

    def decode(self, tokens: Tensor) -> Tensor:
        """One token a row."""
        return self.model.logits(self.model(tokens[:, None], self.kv))

    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """As usual, in step with the other replicas; the last one's requests may end early."""
        prompt = self.prompt(number)
        self.agree(len(prompt))
        with clock.step("prefill", len(prompt), prompt.numel()):
            tokens = sample(self.prefill(prompt))
        for step in range(self.settings.steps):
            busy = step < self.busy_steps
            self.agree(len(prompt) if busy else 0)
            if busy:
                with clock.step("decode", len(prompt), len(prompt)):
                    tokens = sample(self.decode(tokens))
            else:
                self._dummy_step(clock, tokens)

    def agree(self, requests: int) -> list[int]:
        """Requests of every replica in the step to come; none starts it before all have said."""
        counts = torch.zeros(self.peers.size, dtype=torch.int32, device=self.place.device)
        counts[self.peers.rank] = requests
        if self.peers.size > 1:
            dist.all_reduce(counts, group=self.peers.group)
        said: list[int] = counts.tolist()
        return said

    def _dummy_step(self, clock: StepClock, tokens: Tensor) -> None:
        with record_function(DUMMY_STEP):
            self.decode(tokens)
            clock.settle()
        self.kv.length -= 1


workload = DataParallel
