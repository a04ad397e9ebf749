"""Keys and values split by position over ranks: partial attention, and its merging by log-sum-exp.

Attention over a set of keys is (out, lse): the softmax-weighted values, and the log of the sum that the weights were
divided by. Two disjoint sets merge exactly:
lse = log(e^lse_a + e^lse_b), out = out_a e^(lse_a - lse) + out_b e^(lse_b - lse).
"""

# mypy: warn-return-any=False

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (its name in every torch program)
from torch import Tensor
from torch.profiler import record_function

from collectors.workloads.kv import Room

# A score this low has weight 0 beside any real one, and unlike -inf leaves no NaN where a query sees no key of a rank.
UNSEEN = -1e30

# torch 2.13 calls it all_gather_single and warns of the name that all before have.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


@dataclass(frozen=True, slots=True)
class Partial:
    """What queries take from some of the keys.

    Attributes:
        out: float32 [rows, heads, tokens, head_dim].
        lse: float32 [rows, heads, tokens, 1].
    """

    out: Tensor
    lse: Tensor

    def merged(self, other: Partial) -> Partial:
        """What they take from both sets."""
        lse = torch.logaddexp(self.lse, other.lse)
        return Partial(self.out * (self.lse - lse).exp() + other.out * (other.lse - lse).exp(), lse)


def partial_attention(q: Tensor, keys: Tensor, values: Tensor, seen: Tensor | None) -> Partial:
    """Attention over these keys alone, in float32.

    Args:
        q: [rows, heads, tokens, head_dim].
        keys: [rows, kv_heads, kept, head_dim].
        values: like `keys`.
        seen: bool [tokens, kept], which key each query may see; None where all.
    """
    kv_heads = keys.shape[1]
    grouped = q.unflatten(1, (kv_heads, -1)).float()
    scores = grouped @ keys.unsqueeze(2).float().transpose(-1, -2) * q.shape[-1] ** -0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, UNSEEN)
    lse = scores.logsumexp(-1, keepdim=True)
    out = (scores - lse).exp() @ values.unsqueeze(2).float()
    return Partial(out.flatten(1, 2), lse.flatten(1, 2))


@dataclass(frozen=True, slots=True)
class Peers:
    """The ranks that share one sequence.

    Attributes:
        group: their process group.
        rank: of this process in it.
        size: number of ranks in it.
    """

    group: dist.ProcessGroup
    rank: int
    size: int

    def gathered(self, mine: Tensor) -> Tensor:
        """`mine` of every rank, [ranks, …]."""
        if self.size == 1:
            return mine[None]
        everyone = mine.new_empty((self.size * mine.shape[0], *mine.shape[1:]))
        _all_gather(everyone, mine.contiguous(), group=self.group)
        return everyone.unflatten(0, (self.size, -1))

    def zigzag(self, rank: int, context: int) -> Tensor:
        """Prompt positions of a rank: chunks `rank` and 2·size - 1 - `rank` of 2·size, so that causal work is even."""
        chunks = torch.arange(context).chunk(2 * self.size)
        return torch.cat((chunks[rank], chunks[-1 - rank]))

    def interleaved(self, context: int) -> Tensor:
        """Positions p of this rank with p mod size = rank."""
        return torch.arange(self.rank, context, self.size)


class SplitKV(ABC):
    """Keys and values of some positions; the base of context parallelism in prefill and in decode.

    Decoding is the same for both: the token's key goes to rank position mod size, every rank attends over what it
    keeps, one all-gather of the lse and one all-reduce of the scaled output merge the parts.
    """

    def __init__(self, room: Room, peers: Peers, context: int) -> None:
        self.peers = peers
        self.context = context
        self.device = room.device
        self.keys = room.make()
        self.values = room.make()
        self.kept = 0
        self.length = 0
        self.given = 0

    def clear(self) -> None:
        """Forget every token."""
        self.kept = self.length = 0

    def next_positions(self, tokens: int) -> Tensor:
        """The prompt's positions on this rank, or after the prompt the next one."""
        self.given = tokens
        if self.length == 0:
            return self.prompt_positions()
        return torch.arange(self.length, self.length + tokens, device=self.device)

    @abstractmethod
    def prompt_positions(self) -> Tensor:
        """Positions of the prompt that this rank computes."""

    @abstractmethod
    def prefill(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of the prompt; what this rank keeps of it is kept."""

    def attend(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Prompt or one decoded token, as the length says."""
        if self.length == 0:
            return self.prefill(slot, q, k, v)
        return self.decode(slot, q, k, v)

    def keep(self, slot: int, k: Tensor, v: Tensor) -> None:
        """Put keys and values behind those of this layer."""
        stop = self.kept + k.shape[2]
        self.keys[slot, :, :, self.kept : stop] = k
        self.values[slot, :, :, self.kept : stop] = v

    @property
    def owns_next(self) -> bool:
        """Whether the token being decoded is kept here."""
        return self.length % self.peers.size == self.peers.rank

    def decode(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """One token's attention over the parts of all ranks."""
        stop = self.kept
        if self.owns_next:
            self.keep(slot, k, v)
            stop += 1
        partial = partial_attention(q, self.keys[slot, :, :, :stop], self.values[slot, :, :, :stop], None)
        if self.peers.size == 1:
            return partial.out.to(q.dtype)
        with record_function("context.merge"):
            whole = self.peers.gathered(partial.lse).logsumexp(0)
            out = partial.out * (partial.lse - whole).exp()
            dist.all_reduce(out, group=self.peers.group)
        return out.to(q.dtype)

    def advance(self) -> None:
        """Count the tokens just given as seen, and those kept here as kept."""
        if self.length == 0:
            self.kept, self.length = self.kept_of_prompt(), self.context
            return
        self.kept += int(self.owns_next)
        self.length += 1

    @abstractmethod
    def kept_of_prompt(self) -> int:
        """Prompt tokens that this rank keeps."""


class PrefillSplitKV(SplitKV):
    """The prompt itself is split: each rank computes its positions, keys and values travel."""

    def __init__(self, room: Room, peers: Peers, context: int, *, ring: bool) -> None:
        super().__init__(room, peers, context)
        self.ring = ring
        self.positions = [peers.zigzag(rank, context).to(room.device) for rank in range(peers.size)]
        # Which key of each rank a query here may see: bool [tokens, kept].
        mine = self.positions[peers.rank][:, None]
        self.seen = [mine >= positions[None, :] for positions in self.positions]

    def prompt_positions(self) -> Tensor:
        """Zigzag chunks."""
        return self.positions[self.peers.rank]

    def kept_of_prompt(self) -> int:
        """All that this rank computes."""
        return self.positions[self.peers.rank].numel()

    def prefill(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention over the keys of all ranks, brought here hop by hop or all at once."""
        self.keep(slot, k, v)
        mine = torch.stack((k, v))
        out = self._around_the_ring(q, mine) if self.ring else self._gathered(q, mine)
        return out.to(q.dtype)

    def _around_the_ring(self, q: Tensor, held: Tensor) -> Tensor:
        size, rank = self.peers.size, self.peers.rank
        whole: Partial | None = None
        for hop in range(size):
            arriving, posted = torch.empty_like(held), []
            if hop < size - 1:
                with record_function("ring.post"):
                    posted = self._pass_on(held, arriving)
            with record_function("ring.attend"):
                partial = partial_attention(q, held[0], held[1], self.seen[(rank - hop) % size])
                whole = partial if whole is None else whole.merged(partial)
            with record_function("ring.wait"):
                for work in posted:
                    work.wait()
            held = arriving
        if whole is None:
            raise RuntimeError("a ring has at least one rank")
        return whole.out

    def _pass_on(self, held: Tensor, arriving: Tensor) -> list[dist.Work]:
        size, rank, group = self.peers.size, self.peers.rank, self.peers.group
        onward = dist.get_global_rank(group, (rank + 1) % size)
        behind = dist.get_global_rank(group, (rank - 1) % size)
        swap = [dist.P2POp(dist.isend, held, onward, group), dist.P2POp(dist.irecv, arriving, behind, group)]
        works: list[dist.Work] = dist.batch_isend_irecv(swap)
        return works

    def _gathered(self, q: Tensor, mine: Tensor) -> Tensor:
        # [ranks, 2, rows, kv_heads, kept, head_dim] → keys of all ranks side by side.
        keys, values = self.peers.gathered(mine).movedim(0, 3).flatten(3, 4).unbind(0)
        return partial_attention(q, keys, values, torch.cat(self.seen, dim=1)).out


class DecodeSplitKV(SplitKV):
    """The prompt is computed whole on every rank, which then keeps the positions that are its own."""

    def __init__(self, room: Room, peers: Peers, context: int) -> None:
        super().__init__(room, peers, context)
        self.mine = peers.interleaved(context).to(room.device)

    def prompt_positions(self) -> Tensor:
        """All of them."""
        return torch.arange(self.context, device=self.device)

    def kept_of_prompt(self) -> int:
        """Positions of this rank, interleaved."""
        return self.mine.numel()

    def prefill(self, slot: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention of the whole prompt."""
        self.keep(slot, k[:, :, self.mine], v[:, :, self.mine])
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
