"""A small decoder-only transformer that really computes: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Weights depend on the seed and on the parameter's name alone, so that a rank that holds a part of the model holds the
very numbers that the whole model has there. Where keys and values are kept is not the model's business: see `_kv.py`.
"""

# mypy: disallow-subclassing-any=False, warn-return-any=False

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 (its name in every torch program)
from torch import Tensor, nn

from collectors.workloads.kv import KeyValues
from collectors.workloads.settings import ModelSize

ROPE_BASE = 10_000.0  # of the rotary angles, as in Llama
NORM_EPSILON = 1e-6

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Rotation = tuple[Tensor, Tensor]


def rotation(positions: Tensor, head_dim: int, dtype: torch.dtype) -> Rotation:
    """Cosine and sine of the rotary angles, each [tokens, head_dim / 2].

    Args:
        positions: [tokens], integers.
        head_dim: elements of a head.
        dtype: of the result; the angles are computed in float32.
    """
    half = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32)
    angles = positions.to(torch.float32)[:, None] * ROPE_BASE ** (-half / head_dim)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, turn: Rotation) -> Tensor:
    """`x`, [rows, heads, tokens, head_dim], turned by its position; pairs are (first half, second half)."""
    cos, sin = turn
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class Attention(nn.Module):
    """Grouped-query attention; the number of heads is read from the projections, which may be a rank's share."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.head_dim = size.head_dim
        self.wq = nn.Linear(size.hidden, size.heads * size.head_dim, bias=False)
        self.wk = nn.Linear(size.hidden, size.kv_heads * size.head_dim, bias=False)
        self.wv = nn.Linear(size.hidden, size.kv_heads * size.head_dim, bias=False)
        self.wo = nn.Linear(size.heads * size.head_dim, size.hidden, bias=False)

    def forward(self, x: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        """[rows, tokens, hidden] → the same."""
        q, k, v = (w(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        mixed = attend(rotate(q, turn), rotate(k, turn), v)
        return self.wo(mixed.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    """The dense feed-forward block, and one expert."""

    def __init__(self, hidden: int, ffn: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, ffn, bias=False)
        self.up = nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[…, hidden] → the same."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Attention, then feed-forward, each behind a norm and beside the residual stream."""

    def __init__(self, size: ModelSize, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(size.hidden, eps=NORM_EPSILON)
        self.attention = Attention(size)
        self.ffn_norm = nn.RMSNorm(size.hidden, eps=NORM_EPSILON)
        self.ffn = feed_forward

    def forward(self, x: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        """[rows, tokens, hidden] → the same."""
        x = x + self.attention(self.attention_norm(x), turn, attend)
        return x + self.ffn(self.ffn_norm(x))


class Transformer(nn.Module):
    """The model, or the consecutive layers of one pipeline stage.

    Attributes:
        layers: global indices of the layers that are here.
        embed: token embedding; only where layer 0 is.
        norm: final norm; only where the last layer is, like `head`.
        head: projection to logits.
    """

    def __init__(
        self,
        size: ModelSize,
        layers: Sequence[int] | None = None,
        feed_forward: Callable[[], nn.Module] | None = None,
    ) -> None:
        """Build the layers named, all by default, with `feed_forward()` in each, a dense SwiGLU by default."""
        super().__init__()
        self.size = size
        self.layers = tuple(range(size.layers) if layers is None else layers)
        make = feed_forward or partial(SwiGLU, size.hidden, size.ffn)
        self.embed = nn.Embedding(size.vocab, size.hidden) if 0 in self.layers else None
        self.blocks = nn.ModuleDict({str(layer): Block(size, make()) for layer in self.layers})
        last = size.layers - 1 in self.layers
        self.norm = nn.RMSNorm(size.hidden, eps=NORM_EPSILON) if last else None
        self.head = nn.Linear(size.hidden, size.vocab, bias=False) if last else None

    def forward(self, x: Tensor, kv: KeyValues) -> Tensor:
        """The residual stream after these layers, [rows, tokens, hidden]; the keys and values are now in `kv`.

        Args:
            x: tokens [rows, tokens] where layer 0 is here, else the stream that the stage before gave.
            kv: where this rank keeps keys and values.
        """
        positions = kv.next_positions(x.shape[1])
        if self.embed is not None:
            x = self.embed(x)
        turn = rotation(positions, self.size.head_dim, x.dtype)
        for slot, block in enumerate(self.blocks.values()):
            x = block(x, turn, partial(kv.attend, slot))
        kv.advance()
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Logits of the last of the tokens given, [rows, vocab], from the stream after the last layer."""
        if self.norm is None or self.head is None:
            raise RuntimeError("the last layer is not on this rank, so it has no logits")
        return self.head(self.norm(x[:, -1]))


def initialise(model: nn.Module, seed: int, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """`model`, every parameter drawn anew: normal, of variance 1 / fan-in (1 for the embedding); norms are ones.

    Drawn on the CPU in float32 whatever the device, so that ranks and devices agree.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0)
                continue
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
            drawn = torch.randn(parameter.shape, generator=generator)
            scale = 1.0 if name.startswith("embed") else parameter.shape[1] ** -0.5
            parameter.copy_(drawn * scale)
    return model.to(device=device, dtype=dtype).eval().requires_grad_(requires_grad=False)
