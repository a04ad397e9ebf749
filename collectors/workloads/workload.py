"""What every built-in workload has: a place in the job, a clock that names and times its steps, rounds of steps."""

# mypy: warn-return-any=False

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.profiler import record_function

from collectors.workloads.context import Peers
from collectors.workloads.kv import Room
from collectors.workloads.model import initialise
from collectors.workloads.settings import JobSettings

Sampler = Callable[[Tensor], Tensor]
Facts = dict[str, object]

# vLLM's name of the call that a data-parallel replica without requests makes, so that its peers need not wait.
DUMMY_STEP = "execute_dummy_batch"


def step_name(phase: str, requests: int, tokens: int) -> str:
    """A step's name as in vLLM since 0.23: requests and tokens of prefill (context), then of decode (generation)."""
    if phase == "prefill":
        return f"execute_context_{requests}({tokens})_generation_0(0)"
    return f"execute_context_0(0)_generation_{requests}({tokens})"


def greedy(logits: Tensor) -> Tensor:
    """The likeliest token of each row: [rows, vocab] → [rows]."""
    return logits.argmax(-1)


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where this process stands in the job.

    Attributes:
        rank: global rank.
        world: ranks of the job.
        device: that this rank computes on.
        dtype: of weights and activations.
    """

    rank: int
    world: int
    device: torch.device
    dtype: torch.dtype

    def group(self, axis: str) -> dist.ProcessGroup:
        """A process group of all ranks, described by the axis, so that the trace's metadata tells what it is for."""
        return dist.new_group(list(range(self.world)), group_desc=axis)

    def peers(self, axis: str) -> Peers:
        """The same group with this rank's number in it."""
        return Peers(self.group(axis), self.rank, self.world)


@dataclass(slots=True)
class StepClock:
    """Names the steps for the trace and keeps how long each took.

    Attributes:
        device: whose queue a step waits for, as an engine does to read the sampled tokens.
        taken_ns: durations of the steps of each phase, in order.
    """

    device: torch.device
    taken_ns: dict[str, list[int]] = field(default_factory=dict)

    @contextmanager
    def step(self, phase: str, requests: int, tokens: int) -> Iterator[None]:
        """One engine step; `phase` is `prefill` or `decode`."""
        start_ns = time.perf_counter_ns()
        with record_function(step_name(phase, requests, tokens)):
            yield
            self.settle()
        self.taken_ns.setdefault(phase, []).append(time.perf_counter_ns() - start_ns)

    def settle(self) -> None:
        """Wait until the device has done what it was given."""
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()


class RankWorkload(ABC):
    """One rank's share of a workload.

    A round is a prefill step and `settings.steps` decode steps on a fresh batch.

    Attributes:
        AXES: parallel axes that the degree splits.
        rows: (first, past the last) of the sequences of the batch that this rank serves.
    """

    AXES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        self.settings = settings
        self.place = place
        self.rows = (0, settings.batch)

    @abstractmethod
    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """Serve one batch; `number` chooses the prompts."""

    def prompt(self, number: int) -> Tensor:
        """This rank's prompts of a round, [rows, context]; the same batch on all ranks, whatever the degree."""
        settings = self.settings
        generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + number)
        batch = torch.randint(settings.size.vocab, (settings.batch, settings.context), generator=generator)
        return batch[slice(*self.rows)].to(self.place.device)

    def share_rows(self) -> None:
        """Give this rank its equal part of the batch."""
        each = self.settings.batch // self.place.world
        self.rows = (self.place.rank * each, (self.place.rank + 1) * each)

    def room(self, layers: int | None = None, kv_heads: int | None = None, tokens: int | None = None) -> Room:
        """Size of this rank's cache: the whole model and every token, except what is given."""
        settings = self.settings
        return Room(
            layers=settings.size.layers if layers is None else layers,
            rows=self.rows[1] - self.rows[0],
            kv_heads=settings.size.kv_heads if kv_heads is None else kv_heads,
            tokens=settings.context + settings.steps if tokens is None else tokens,
            head_dim=settings.size.head_dim,
            dtype=self.place.dtype,
            device=self.place.device,
        )

    def placed(self, model: nn.Module) -> nn.Module:
        """`model` with its weights, on this rank's device."""
        return initialise(model, self.settings.seed, self.place.dtype, self.place.device)

    def layout(self) -> dict[str, int]:
        """Degree of each axis that is in use."""
        return dict.fromkeys(self.AXES, self.place.world)

    def groups(self) -> dict[str, list[list[int]]]:
        """Rank groups of the axes whose collectives are in the trace."""
        return {self.AXES[0]: [list(range(self.place.world))]} if self.AXES else {}

    def forget(self) -> None:  # noqa: B027 (most workloads keep none)
        """Drop the facts of the rounds so far: what follows is profiled."""

    def facts(self) -> Facts:
        """What this rank saw of the profiled rounds and the trace does not say."""
        return {}

    @staticmethod
    def summary(_facts: Sequence[Facts]) -> Facts:
        """Entries of `run.json` from the facts of all ranks."""
        return {}


class BatchWorkload(RankWorkload):
    """A workload whose ranks all do the same: prefill the batch, then decode it step by step."""

    @abstractmethod
    def prefill(self, prompt: Tensor) -> Tensor:
        """Logits of the token after the prompt: [rows, context] → [rows, vocab]. Starts a new cache."""

    @abstractmethod
    def decode(self, tokens: Tensor) -> Tensor:
        """Logits of the token after these: [rows] → [rows, vocab]."""

    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """Serve one batch; `number` chooses the prompts."""
        prompt = self.prompt(number)
        with clock.step("prefill", len(prompt), prompt.numel()):
            tokens = sample(self.prefill(prompt))
        for _ in range(self.settings.steps):
            with clock.step("decode", len(prompt), len(prompt)):
                tokens = sample(self.decode(tokens))
