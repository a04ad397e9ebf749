"""Rank groups of each axis, as engines number their ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Groups = dict[str, tuple[tuple[int, ...], ...]]


def vllm_groups(world: int, sizes: Mapping[str, int]) -> Groups:
    """Groups of each axis of more than one rank in vLLM's order: dp, pp, prefill cp, tp, the last fastest.

    Decode cp takes neighbours of a tp group; experts are split over all ranks of a pipeline stage. {} where the sizes
    do not make up the world. Source: vllm/distributed/parallel_state.py, `initialize_model_parallel`.
    """
    dp, pp, cp, tp = (sizes.get(axis, 1) for axis in ("dp", "pp", "cp", "tp"))
    if dp * pp * cp * tp != world:
        return {}
    ranks = np.arange(world).reshape(dp, pp, cp, tp)
    by_axis = {
        axis: _rows(np.moveaxis(ranks, dimension, -1)) for dimension, axis in enumerate(("dp", "pp", "cp", "tp"))
    }
    if sizes.get("ep") == dp * cp * tp:
        by_axis["ep"] = _rows(np.moveaxis(ranks, 1, 0).reshape(pp, -1))
    if tp % sizes.get("dcp", 1) == 0:
        by_axis["dcp"] = _rows(ranks.reshape(-1, sizes.get("dcp", 1)))
    return _of_several(by_axis, sizes)


def sglang_groups(world: int, sizes: Mapping[str, int], *, attention_dp: bool) -> Groups:
    """Groups of each axis of more than one rank in SGLang's order: pp, tp, the last fastest.

    With attention dp the tp group itself splits into dp, prefill cp and attention tp; without it, replicas come first.
    Experts are split over a tp group with a stride. {} where the sizes do not make up the world.
    Source: sglang/srt/distributed/parallel_state.py and srt/layers/dp_attention.py.
    """
    dp, pp, cp, tp, ep = (sizes.get(axis, 1) for axis in ("dp", "pp", "cp", "tp", "ep"))
    inner = dp * cp if attention_dp else cp
    if (1 if attention_dp else dp) * pp * tp != world or tp % inner or tp % ep:
        return {}
    ranks = np.arange(world).reshape(-1, pp, tp)
    by_axis = {"tp": _rows(ranks), "pp": _rows(np.moveaxis(ranks, 1, -1))}
    if attention_dp:
        split = ranks.reshape(-1, dp, cp, tp // inner)
        by_axis |= {"dp": _rows(np.moveaxis(split, 1, -1)), "cp": _rows(np.moveaxis(split, 2, -1))}
    else:
        by_axis |= {"dp": _rows(np.moveaxis(ranks, 0, -1)), "cp": _rows(ranks.reshape(-1, cp, tp // cp).swapaxes(1, 2))}
    by_axis["ep"] = _rows(ranks.reshape(-1, ep, tp // ep).swapaxes(1, 2))
    return _of_several(by_axis, sizes)


def _rows(ranks: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """Groups along the last dimension, in order of their first rank."""
    return tuple(sorted(tuple(int(rank) for rank in group) for group in ranks.reshape(-1, ranks.shape[-1])))


def _of_several(by_axis: Groups, sizes: Mapping[str, int]) -> Groups:
    return {axis: groups for axis, groups in by_axis.items() if sizes.get(axis, 1) > 1}
