"""Dimensions of a model from its Hugging Face config, where that lies on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Dimensions of a model that measures ask for, by their names in a Hugging Face config.
MODEL_FIELDS = (
    "architectures",
    "first_k_dense_replace",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "kv_lora_rank",
    "model_type",
    "moe_intermediate_size",
    "n_routed_experts",
    "n_shared_experts",
    "num_attention_heads",
    "num_experts",
    "num_experts_per_tok",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_local_experts",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "sliding_window",
    "torch_dtype",
    "v_head_dim",
    "vocab_size",
)


def dimensions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Dimensions of a model from its Hugging Face config; those of the text part where it has several parts."""
    text = config.get("text_config")
    if isinstance(text, dict) and "hidden_size" in text:
        config = {**config, **text}
    kept = {name: config[name] for name in MODEL_FIELDS if config.get(name) is not None}
    if isinstance(architectures := kept.get("architectures"), list):
        kept["architectures"] = ",".join(map(str, architectures))
    return kept


def config_of(model: str) -> dict[str, Any]:
    """The config of a model that lies on this machine, as a folder or in the Hugging Face cache; empty elsewhere."""
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface")) / "hub")
    cached = (hub.expanduser() / f"models--{model.replace('/', '--')}/snapshots").glob("*/config.json")
    for path in (Path(model) / "config.json", *cached):
        if path.is_file():
            config = json.loads(path.read_text())
            return config if isinstance(config, dict) else {}
    return {}
