"""Prefill/decode disaggregation: some ranks prefill, send the keys and values, the others decode.

Every rank holds the whole model. A sequence is prefilled by one rank and decoded by another; each layer's keys and
values of the sequences that two ranks have in common are one message, sent as soon as the layer is done (`layer`) or
after the last layer (`end`). While the decode ranks decode a batch, the prefill ranks compute the next.
"""

# mypy: warn-return-any=False

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.profiler import record_function

from collectors.workloads.kv import LocalKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import Facts, RankPlace, RankWorkload, Sampler, StepClock, greedy


@dataclass(frozen=True, slots=True)
class Lane:
    """A prefill and a decode rank with sequences in common.

    Attributes:
        source: prefill rank.
        target: decode rank.
        first: first of their sequences in the batch.
        stop: past the last.
    """

    source: int
    target: int
    first: int
    stop: int


def lanes(batch: int, prefill: int, decode: int) -> list[Lane]:
    """All pairs that share sequences, when each role deals out `batch` in equal runs."""
    shared = []
    for source in range(prefill):
        for target in range(decode):
            first = max(source * batch // prefill, target * batch // decode)
            stop = min((source + 1) * batch // prefill, (target + 1) * batch // decode)
            if first < stop:
                shared.append(Lane(source, prefill + target, first, stop))
    return shared


class HandedOnKV(LocalKV):
    """A local cache that says when a layer is full."""

    hand_on: Callable[[int], None] | None = None

    def attend(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """As in any local cache; then the layer may leave, before the rest of it is computed."""
        out = super().attend(slot, q, k, v)
        if self.hand_on is not None:
            self.hand_on(slot)
        return out


class Role(RankWorkload):
    """What both roles have: the model, a cache, lanes to the other role, notes of what went when."""

    NAME = ""

    def __init__(self, settings: JobSettings, place: RankPlace, index: int, ranks: int) -> None:
        """Rank `index` of the `ranks` of its role."""
        super().__init__(settings, place)
        each = settings.batch // ranks
        self.rows = (index * each, (index + 1) * each)
        every = lanes(settings.batch, *settings.split)
        self.lanes = [lane for lane in every if place.rank in (lane.source, lane.target)]
        self.model = Transformer(settings.size)
        self.placed(self.model)
        self.kv = HandedOnKV(self.room().make(), self.room().make())
        self.group = place.group("pd")
        self.notes: list[dict[str, int]] = []

    def own(self, lane: Lane) -> slice:
        """The lane's sequences among this rank's."""
        return slice(lane.first - self.rows[0], lane.stop - self.rows[0])

    def layout(self) -> dict[str, int]:
        """No axis splits the model; the roles split the phases."""
        return {}

    def forget(self) -> None:
        """Note transfers from here on."""
        self.notes.clear()

    def facts(self) -> Facts:
        """Where and what this rank is, and what it sent or received when."""
        return {"rank": self.place.rank, "node": socket.gethostname(), "role": self.NAME, "notes": self.notes}

    @staticmethod
    def summary(facts: Sequence[Facts]) -> Facts:
        """Roles of the ranks, and each transfer with both its ends."""
        return {
            "roles": {str(rank_facts["rank"]): rank_facts["role"] for rank_facts in facts},
            "transfers": _transfers(facts),
        }


class Prefill(Role):
    """A rank that computes prompts and sends what it keeps of them."""

    NAME = "prefill"

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place, place.rank, settings.split[0])
        self.by_layer = settings.extra["transfer"] == "layer"
        self.in_flight: list[tuple[dist.Work, Tensor]] = []

    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """A prefill step, and the hand-over."""
        prompt = self.prompt(number)
        layers = self.settings.size.layers
        if self.by_layer:
            self.kv.hand_on = lambda layer: self._send(number, layer)
        with clock.step("prefill", len(prompt), prompt.numel()):
            self.kv.length = 0
            tokens = sample(self.model.logits(self.model(prompt, self.kv)))
        with record_function("pd.kv_send"):
            if not self.by_layer:
                for layer in range(layers):
                    self._send(number, layer)
            for lane in self.lanes:
                self._post(tokens[self.own(lane)].contiguous(), lane, layers)
            for work, _ in self.in_flight:
                work.wait()
            self.in_flight.clear()

    def _send(self, number: int, layer: int) -> None:
        """Hand the keys and values of a layer to every rank that decodes some of these sequences."""
        stop = self.settings.context
        for lane in self.lanes:
            rows = self.own(lane)
            packed = torch.stack((self.kv.keys[layer, rows, :, :stop], self.kv.values[layer, rows, :, :stop]))
            self.notes.append(_note(number, layer, lane) | {"sent_ns": time.time_ns()})
            self._post(packed, lane, layer)

    def _post(self, tensor: Tensor, lane: Lane, tag: int) -> None:
        self.in_flight.append((dist.isend(tensor, lane.target, group=self.group, tag=tag), tensor))


class Decode(Role):
    """A rank that is sent keys, values and first tokens, and goes on from there."""

    NAME = "decode"

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place, place.rank - settings.split[0], settings.split[1])

    def round(self, number: int, clock: StepClock, sample: Sampler = greedy) -> None:
        """The hand-over, and decode steps."""
        with record_function("pd.kv_recv"):
            self._receive_layers(number, clock)
            tokens = self._receive_tokens()
        if self.settings.extra.get("recompute"):
            self._compute_again(number, clock)
        self.kv.length = self.settings.context
        for _ in range(self.settings.steps):
            with clock.step("decode", len(tokens), len(tokens)):
                tokens = sample(self.model.logits(self.model(tokens[:, None], self.kv)))

    def _compute_again(self, number: int, clock: StepClock) -> None:
        """Prefill what was just received, as a decode instance does whose look-up of transferred blocks fails."""
        prompt = self.prompt(number)
        with clock.step("prefill", len(prompt), prompt.numel()):
            self.kv.length = 0
            self.model.logits(self.model(prompt, self.kv))

    def _receive_layers(self, number: int, clock: StepClock) -> None:
        size, place, stop = self.settings.size, self.place, self.settings.context
        awaited = []
        for layer in range(size.layers):
            for lane in self.lanes:
                shape = (2, lane.stop - lane.first, size.kv_heads, stop, size.head_dim)
                packed = torch.empty(shape, dtype=place.dtype, device=place.device)
                posted_ns = time.time_ns()
                work = dist.irecv(packed, lane.source, group=self.group, tag=layer)
                note = _note(number, layer, lane) | {"bytes": packed.nbytes, "posted_ns": posted_ns}
                awaited.append((layer, self.own(lane), packed, work, note))
        for layer, rows, packed, work, note in awaited:
            work.wait()
            clock.settle()
            self.notes.append(note | {"received_ns": time.time_ns()})
            self.kv.keys[layer, rows, :, :stop] = packed[0]
            self.kv.values[layer, rows, :, :stop] = packed[1]

    def _receive_tokens(self) -> Tensor:
        tokens = torch.empty(self.rows[1] - self.rows[0], dtype=torch.long, device=self.place.device)
        for lane in self.lanes:
            dist.recv(tokens[self.own(lane)], lane.source, group=self.group, tag=self.settings.size.layers)
        return tokens


def _note(number: int, layer: int, lane: Lane) -> dict[str, int]:
    return {"round": number, "layer": layer, "from": lane.source, "to": lane.target}


def _transfers(facts: Sequence[Facts]) -> list[dict[str, int | None]]:
    """Sent and received notes put together.

    `time_ns` runs from when a message was both sent and awaited to when it had arrived; None between two nodes,
    whose clocks differ by more than that.
    """
    nodes = {rank_facts["rank"]: rank_facts["node"] for rank_facts in facts}
    notes: list[dict[str, int]] = [note for rank_facts in facts for note in rank_facts["notes"]]  # type: ignore[attr-defined]
    ends: dict[tuple[int, ...], dict[str, int]] = {}
    for note in notes:
        ends.setdefault((note["round"], note["layer"], note["from"], note["to"]), {}).update(note)
    transfers: list[dict[str, int | None]] = []
    for _, end in sorted(ends.items()):
        time_ns = end["received_ns"] - max(end["sent_ns"], end["posted_ns"])
        one_clock = nodes[end["from"]] == nodes[end["to"]]
        transfers.append({**end, "time_ns": time_ns if one_clock else None})
    return transfers


def workload(settings: JobSettings, place: RankPlace) -> Role:
    """This rank's role: the first ranks prefill."""
    return Prefill(settings, place) if place.rank < settings.split[0] else Decode(settings, place)
