"""Pipeline parallelism: consecutive layers on each rank.

Prefill runs PyTorch's GPipe schedule over microbatches. Decode is a loop of its own, since each step needs the token
that the last stage sampled in the step before: as many microbatches as stages are in flight, activations go to the
next stage, sampled tokens back to the first, over a group of their own (on one NCCL communicator the two directions
could wait for each other).
"""

# mypy: disallow-subclassing-any=False, warn-return-any=False

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from collectors.workloads.kv import LocalKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import RankPlace, RankWorkload, Sampler, StepClock, greedy


class Stage(nn.Module):
    """The layers of a stage with the caches of its microbatches."""

    def __init__(self, model: Transformer, caches: list[LocalKV]) -> None:
        super().__init__()
        self.model = model
        self.caches = caches

    def forward(self, x: Tensor, microbatch: Tensor) -> Tensor:
        """Prefill of one microbatch: its residual stream, or on the last stage its logits.

        Args:
            x: prompts [rows, context] on the first stage, else the stream.
            microbatch: number of the microbatch, [1], on the CPU; the schedule deals them out like the rows.
        """
        cache = self.caches[int(microbatch[0])]
        cache.length = 0
        return self.step(x, cache)

    def step(self, x: Tensor, cache: LocalKV) -> Tensor:
        """The stream or the logits of one microbatch."""
        out = self.model(x, cache)
        return out if self.model.head is None else self.model.logits(out)


class PipelineParallel(RankWorkload):
    """One stage."""

    AXES = ("pp",)

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        rank, world = place.rank, place.world
        each = settings.size.layers // world
        self.first, self.last = rank == 0, rank == world - 1
        self.model = Transformer(settings.size, layers=range(rank * each, (rank + 1) * each))
        self.placed(self.model)
        whole = LocalKV.empty(self.room(layers=each))
        self.share = settings.batch // world
        self.caches = [
            whole.of_rows(microbatch * self.share, (microbatch + 1) * self.share) for microbatch in range(world)
        ]
        self.stage = Stage(self.model, self.caches)
        self.group, self.token_group = place.group("pp"), place.group("pp_tokens")
        stage = PipelineStage(self.stage, rank, world, place.device, group=self.group)
        self.schedule = ScheduleGPipe(stage, n_microbatches=world)
        self.in_flight: list[tuple[dist.Work, Tensor]] = []

    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """Prefill by the schedule, then decode steps of one pass over all microbatches each."""
        settings, world = self.settings, self.place.world
        prompt = self.prompt(number)
        with clock.step("prefill", settings.batch, prompt.numel()):
            given = (prompt,) if self.first else ()
            logits = self.schedule.step(*given, microbatch=torch.arange(world))
            tokens = list(sample(logits).chunk(world)) if self.last else [prompt[: self.share, 0]] * world
        for _ in range(settings.steps):
            with clock.step("decode", settings.batch, settings.batch):
                tokens = [self._decode(microbatch, tokens[microbatch], sample) for microbatch in range(world)]
                self._land()

    def _decode(self, microbatch: int, tokens: Tensor, sample: Sampler) -> Tensor:
        """One token for each row of a microbatch; what comes back is right on the last stage."""
        world, rank = self.place.world, self.place.rank
        if world > 1 and self.last:
            self._send(tokens, 0, self.token_group)
        if self.first:
            x = (self._received(torch.empty_like(tokens), world - 1, self.token_group) if world > 1 else tokens)[
                :, None
            ]
        else:
            stream = torch.empty(
                (self.share, 1, self.settings.size.hidden), dtype=self.place.dtype, device=tokens.device
            )
            x = self._received(stream, rank - 1, self.group)
        out = self.stage.step(x, self.caches[microbatch])
        if self.last:
            return sample(out)
        self._send(out, rank + 1, self.group)
        return tokens

    def _send(self, tensor: Tensor, to: int, group: dist.ProcessGroup) -> None:
        self.in_flight.append((dist.isend(tensor, to, group=group), tensor))

    def _received(self, tensor: Tensor, source: int, group: dist.ProcessGroup) -> Tensor:
        dist.recv(tensor, source, group=group)
        return tensor

    def _land(self) -> None:
        """Wait until what was sent has gone, and let its memory go."""
        for work, _ in self.in_flight:
            work.wait()
        self.in_flight.clear()


workload = PipelineParallel
