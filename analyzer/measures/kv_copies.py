"""How many ranks hold the same keys and values, from the model's dimensions and the layout; bytes a token of each copy.

Formulas: keys and values of grouped-query attention take 2·L·Hk·D·b bytes a token, and tensor parallelism over more
ranks than there are KV heads (Hk) repeats heads. The latent of multi-head latent attention takes L·(c + r)·b bytes and
has no heads to split: every tensor-parallel rank holds all of it. Decode context parallelism splits by position and so
divides the copies. Sources: vllm/model_executor/models/llama.py, `num_kv_heads`; DeepSeek-V2, section 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.errors import MissingEvidenceError
from analyzer.model.run import Run
from analyzer.model.workload import Workload
from analyzer.once import once

USUAL_BYTES = 2
"""Of an element, where no data type is recorded: bfloat16 is what engines choose by default."""

_ELEMENT_BYTES = (("fp8", 1), ("float8", 1), ("int8", 1), ("float16", 2), ("bfloat16", 2), ("float32", 4))
_MODEL_CURE = '"model": {"num_hidden_layers": …, "num_key_value_heads": …, "head_dim": …} in run.json would tell'


@dataclass(frozen=True, slots=True)
class KvCopies:
    """KV of one token over the ranks that share a request.

    Attributes:
        copies: ranks that hold the same keys and values; 1 where nothing is repeated.
        token_bytes: of one copy of one token, all layers.
        kv_heads: of the model; 0 where it keeps a latent.
        ranks: that share the attention of a request.
        assumed: whether the bytes of an element are `USUAL_BYTES` for want of a record.
    """

    copies: int
    token_bytes: int
    kv_heads: int
    ranks: int
    assumed: bool

    @property
    def repeated_bytes(self) -> int:
        """Bytes a token beyond the first copy, over all ranks."""
        return (self.copies - 1) * self.token_bytes


@once
def kv_copies(run: Run) -> KvCopies:
    """What the run declares.

    Raises:
        MissingEvidenceError: the degree of tensor parallelism or the model's dimensions are not known.
    """
    sharing = _attention_ranks(run)
    positions = run.layout.sizes.get("dcp", 1)
    if sharing == 1:
        return KvCopies(1, 0, 0, 1, assumed=False)
    model = run.workload.model
    layers = _dimension(model, "num_hidden_layers")
    element, assumed = _element_bytes(run.workload)
    latent = model.get("kv_lora_rank")
    if isinstance(latent, int) and latent:
        token = layers * (latent + _dimension(model, "qk_rope_head_dim")) * element
        return KvCopies(max(1, sharing // positions), token, 0, sharing, assumed)
    heads = _dimension(model, "num_key_value_heads")
    token = 2 * layers * heads * _head_elements(model) * element
    return KvCopies(max(1, sharing // (heads * positions)), token, heads, sharing, assumed)


def _attention_ranks(run: Run) -> int:
    """Ranks that split the attention of one request: the tp group, or its part where replicas share it."""
    sizes = run.layout.sizes
    if "tp" not in sizes:
        raise MissingEvidenceError(
            "the degree of tensor parallelism is not known", 'state it in run.json: {"layout": {"tp": 2, …}}'
        )
    inside = "enable_dp_attention" in run.layout.evidence.get("dp", "")
    if inside or run.workload.settings.get("enable_dp_attention"):
        return max(1, sizes["tp"] // sizes.get("dp", 1))
    return sizes["tp"]


def _head_elements(model: Mapping[str, int | float | str]) -> int:
    if "head_dim" in model:
        return _dimension(model, "head_dim")
    return _dimension(model, "hidden_size") // _dimension(model, "num_attention_heads")


def _dimension(model: Mapping[str, int | float | str], name: str) -> int:
    value = model.get(name)
    if not isinstance(value, int) or value < 1:
        raise MissingEvidenceError(f"the model's {name} is not known", _MODEL_CURE)
    return value


def _element_bytes(workload: Workload) -> tuple[int, bool]:
    """Bytes of an element of the KV cache, and whether they are assumed."""
    stated = (
        workload.settings.get("kv_cache_dtype"),
        workload.model.get("torch_dtype"),
        workload.settings.get("dtype"),
    )
    for word in stated:
        for name, size in _ELEMENT_BYTES:
            if isinstance(word, str) and name in word:
                return size, False
    return USUAL_BYTES, True
