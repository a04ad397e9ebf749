"""One rank of the equality tests: every case's sharded logits against a whole model's, differences to a file.

    torchrun … collect_ranks.py OUT CASE…        CASE: "tp 2", "cp 2 attention=ring", "pd 2+1 transfer=end", "cache 1"

OUT/rank<r>.json: {case: [largest difference of any logit, steps compared]}; [null, 0] where this rank has no logits.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from collectors.workloads.ep import SCORE_SPREAD
from collectors.workloads.kv import LocalKV, Room
from collectors.workloads.model import SwiGLU, Transformer, initialise
from collectors.workloads.settings import JobSettings, ModelSize
from collectors.workloads.workload import RankPlace, StepClock

CPU = torch.device("cpu")
DENSE = ModelSize(layers=4, hidden=64, heads=8, kv_heads=4, ffn=96, vocab=128)
SPARSE = ModelSize(layers=4, hidden=64, heads=8, kv_heads=4, ffn=96, vocab=128, experts=8, top_k=2)
BATCH, CONTEXT, STEPS = 4, 32, 3
NUMBERS = {"skew": float, "idle_steps": int}


class WholeMoE(nn.Module):
    """A mixture of experts as one writes it down: each expert over the tokens that chose it."""

    def __init__(self, skew):
        super().__init__()
        self.skew = skew
        self.router = nn.Linear(SPARSE.hidden, SPARSE.experts, bias=False)
        self.experts = nn.ModuleDict({str(at): SwiGLU(SPARSE.hidden, SPARSE.ffn) for at in range(SPARSE.experts)})

    def forward(self, x):
        popularity = torch.tensor([(at + 1.0) ** -self.skew for at in range(SPARSE.experts)]).log()
        probability = (self.router(x) * SCORE_SPREAD + popularity).softmax(-1)
        weights, chosen = probability.topk(SPARSE.top_k)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for at, expert in enumerate(self.experts.values()):
            share = (weights * (chosen == at)).sum(-1, keepdim=True)
            out = out + share * expert(x)
        return out


class Recording:
    """A greedy sampler that keeps the logits."""

    def __init__(self):
        self.logits = []

    def __call__(self, logits):
        self.logits.append(logits.clone())
        return logits.argmax(-1)


def whole(settings):
    """Logits of prefill and of each decode step by one model that is not split."""
    layer = (lambda: WholeMoE(settings.extra["skew"])) if settings.size.experts else None
    model = initialise(Transformer(settings.size, feed_forward=layer), settings.seed, torch.float32, CPU)
    room = Room(settings.size.layers, BATCH, 4, CONTEXT + STEPS, 8, torch.float32, CPU)
    kv = LocalKV.empty(room)
    generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + 5)
    tokens = torch.randint(settings.size.vocab, (BATCH, CONTEXT), generator=generator)
    found = [model.logits(model(tokens, kv))]
    for _ in range(STEPS):
        found.append(model.logits(model(found[-1].argmax(-1)[:, None], kv)))
    return found


def cache_difference(settings):
    """Logits of decode steps, from the cache, against those of the longer sequence computed anew."""
    model = initialise(Transformer(settings.size), settings.seed, torch.float32, CPU)
    room = Room(settings.size.layers, BATCH, 4, CONTEXT + STEPS, 8, torch.float32, CPU)
    tokens = torch.randint(settings.size.vocab, (BATCH, CONTEXT + STEPS))
    cached = LocalKV.empty(room)
    model(tokens[:, :CONTEXT], cached)
    worst = 0.0
    for length in range(CONTEXT, CONTEXT + STEPS):
        decoded = model.logits(model(tokens[:, length : length + 1], cached))
        anew = model.logits(model(tokens[:, : length + 1], LocalKV.empty(room)))
        worst = max(worst, float((decoded - anew).abs().max()))
    return worst, STEPS


def sharded(settings, place):
    """The workload's own logits, in the same order as far as this rank has them, and the rows they are of."""
    workload = import_module(f"collectors.workloads.{settings.workload}").workload(settings, place)
    seen = Recording()
    workload.round(5, StepClock(CPU), seen)
    logits = seen.logits
    if settings.workload == "pp" and logits:
        decoded = [torch.cat(logits[at : at + place.world]) for at in range(1, len(logits), place.world)]
        logits = [logits[0], *decoded]
    if getattr(workload, "NAME", "") == "decode":
        logits = [None, *logits]
    return logits, slice(*workload.rows)


def largest_difference(settings, place):
    if settings.workload == "cache":
        return cache_difference(settings)
    got, rows = sharded(settings, place)
    pairs = [(mine, truth[rows]) for mine, truth in zip(got, whole(settings), strict=False) if mine is not None]
    return max((float((mine - truth).abs().max()) for mine, truth in pairs), default=None), len(pairs)


def settings_of(case):
    name, degree, *rest = case.split()
    extra = {key: NUMBERS.get(key, str)(value) for key, value in (part.split("=") for part in rest)}
    size = SPARSE if name == "ep" else DENSE
    return JobSettings(name, degree, size, BATCH, CONTEXT, STEPS, rounds=1, warmup=0, extra=extra)


def main():
    out, *cases = sys.argv[1:]
    dist.init_process_group("gloo")
    place = RankPlace(dist.get_rank(), dist.get_world_size(), CPU, torch.float32)
    with torch.no_grad():
        found = {case: largest_difference(settings_of(case), place) for case in cases}
    Path(out, f"rank{place.rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
