"""Where keys and values are kept, and how queries meet them: whole on this rank, or by position over several."""

# mypy: warn-return-any=False

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812 (its name in every torch program)
from torch import Tensor


class KeyValues(Protocol):
    """What the model asks of a KV cache."""

    def next_positions(self, tokens: int) -> Tensor:
        """Positions of the next `tokens` tokens that this rank is given, [tokens]."""

    def attend(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keep `k` and `v` of the `slot`-th layer here; what the queries take from all that they may see.

        Args:
            slot: index of the layer among those of this rank.
            q: [rows, heads, tokens, head_dim].
            k: [rows, kv_heads, tokens, head_dim].
            v: like `k`.

        Returns:
            Like `q`.
        """

    def advance(self) -> None:
        """Count the tokens just given as seen."""


@dataclass(frozen=True, slots=True)
class Room:
    """Size of a cache.

    Attributes:
        layers: layers of this rank.
        rows: sequences of this rank.
        kv_heads: key heads of this rank.
        tokens: most tokens a sequence that this rank will hold.
        head_dim: elements of a head.
        dtype: of keys and values.
        device: that holds them.
    """

    layers: int
    rows: int
    kv_heads: int
    tokens: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    def make(self) -> Tensor:
        """Zeroed storage, [layers, rows, kv_heads, tokens, head_dim]."""
        shape = (self.layers, self.rows, self.kv_heads, self.tokens, self.head_dim)
        return torch.zeros(shape, dtype=self.dtype, device=self.device)


class LocalKV:
    """Every token of this rank's sequences, on this rank.

    Attributes:
        keys: [layers, rows, kv_heads, capacity, head_dim].
        values: like `keys`.
        length: tokens that are seen.
    """

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys = keys
        self.values = values
        self.length = 0
        self.given = 0

    @classmethod
    def empty(cls, room: Room) -> LocalKV:
        """A cache of this size, nothing in it."""
        return cls(room.make(), room.make())

    def of_rows(self, start: int, stop: int) -> LocalKV:
        """The same storage for some of the sequences, with a length of its own."""
        return LocalKV(self.keys[:, start:stop], self.values[:, start:stop])

    def next_positions(self, tokens: int) -> Tensor:
        """The positions that follow those seen."""
        self.given = tokens
        return torch.arange(self.length, self.length + tokens, device=self.keys.device)

    def attend(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention over all that is kept; several tokens at once must be the first ones."""
        stop = self.length + self.given
        self.keys[slot, :, :, self.length : stop] = k
        self.values[slot, :, :, self.length : stop] = v
        return F.scaled_dot_product_attention(
            q,
            self.keys[slot, :, :, :stop],
            self.values[slot, :, :, :stop],
            is_causal=self.given > 1,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    def advance(self) -> None:
        """Count the tokens just given as seen."""
        self.length += self.given
