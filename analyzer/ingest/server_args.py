"""SGLang's `server_args.json`: a dump of `/server_info`, written beside the traces by its profiler command.

Source: sglang/profiler.py; field names from sglang/srt/server_args.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from analyzer.errors import TraceFormatError
from analyzer.ingest.layout.rank_order import sglang_groups
from analyzer.model.layout import Layout, Source

ServerArgs = Mapping[str, object]

_SIZES = {
    "tp": ("tp_size", "tensor_parallel_size"),
    "pp": ("pp_size", "pipeline_parallel_size"),
    "dp": ("dp_size", "data_parallel_size", "attention_data_parallel_size"),
    "ep": ("ep_size", "expert_parallel_size"),
    "cp": ("attn_cp_size", "attention_context_parallel_size"),
    "dcp": ("dcp_size", "decode_context_parallel_size"),
}
"""Names that versions gave to the size of each axis, newest last."""

_ROLES = {"prefill": "prefill", "decode": "decode"}


def read_server_args(path: Path) -> ServerArgs:
    """The dump as it is.

    Raises:
        TraceFormatError: the file is no JSON object.
    """
    try:
        held = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as fault:
        raise TraceFormatError(f"{path}: not JSON ({fault}); remove it, or dump /server_info again") from fault
    if not isinstance(held, dict):
        raise TraceFormatError(f"{path}: a {type(held).__name__} where an object was expected; dump /server_info again")
    return held


def server_layout(args: ServerArgs) -> Layout:
    """Sizes and groups that the server was started with.

    An axis whose size the dump does not hold is absent. With attention dp the dp ranks are ranks of the tp group.
    """
    sizes: dict[str, int] = {}
    evidence: dict[str, str] = {}
    for axis, names in _SIZES.items():
        stated = [(name, args[name]) for name in names if isinstance(args.get(name), int)]
        if stated:
            name, size = stated[-1]
            sizes[axis] = int(str(size))
            evidence[axis] = f"server_args.json has {name} {size}"
    if not sizes:
        return Layout()
    attention_dp = args.get("enable_dp_attention") is True
    if attention_dp and "dp" in evidence:
        evidence["dp"] += ", inside the tp group (enable_dp_attention)"
    world = None
    if {"tp", "pp"} <= sizes.keys():
        world = sizes["tp"] * sizes["pp"] * (1 if attention_dp else sizes.get("dp", 1))
    groups = sglang_groups(world, sizes, attention_dp=attention_dp) if world is not None else {}
    return Layout(world, sizes, groups, Source.DECLARED, evidence)


def server_role(args: ServerArgs) -> str:
    """`prefill` or `decode` of a disaggregated instance, `colocated` of one that is not, "" where not stated."""
    mode = args.get("disaggregation_mode")
    if not isinstance(mode, str):
        return ""
    return _ROLES.get(mode, "colocated")
