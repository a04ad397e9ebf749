"""Tensor parallelism by PyTorch's own API, as `collect tp` runs it on each rank.

Heads, feed-forward columns and the vocabulary are split. All-reduces: one after the embedding, two a layer (attention
output, feed-forward output); one all-gather of the logits.
"""

from __future__ import annotations

from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from collectors.workloads.kv import LocalKV
from collectors.workloads.model import Transformer
from collectors.workloads.settings import JobSettings
from collectors.workloads.workload import BatchWorkload, RankPlace


class TensorParallel(BatchWorkload):
    """A share of every layer's heads and columns."""

    AXES = ("tp",)

    def __init__(self, settings: JobSettings, place: RankPlace) -> None:
        super().__init__(settings, place)
        self.model = Transformer(settings.size)
        self.placed(self.model)
        if place.world > 1:
            mesh = DeviceMesh.from_group(place.group("tp"), place.device.type, mesh_dim_names=("tp",))
            parallelize_module(self.model, mesh, _plan())
        self.kv = LocalKV.empty(self.room(kv_heads=settings.size.kv_heads // place.world))

    def prefill(self, prompt: Tensor) -> Tensor:
        """The whole prompt on every rank, a part of its heads."""
        self.kv.length = 0
        return self.model.logits(self.model(prompt, self.kv))

    def decode(self, tokens: Tensor) -> Tensor:
        """One token a row."""
        return self.model.logits(self.model(tokens[:, None], self.kv))


def _plan() -> dict[str, ColwiseParallel | RowwiseParallel]:
    split, joined = ColwiseParallel(), RowwiseParallel()
    attention = dict.fromkeys(("wq", "wk", "wv"), split) | {"wo": joined}
    ffn = {"gate": split, "up": split, "down": joined}
    return (
        {"embed": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())}
        | {f"blocks.*.attention.{name}": style for name, style in attention.items()}
        | {f"blocks.*.ffn.{name}": style for name, style in ffn.items()}
    )


workload = TensorParallel
