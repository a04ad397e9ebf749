"""Axes that file names, process titles and kernels tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from analyzer.ingest.layout.claims import Claim, engine_of, is_complete
from analyzer.ingest.layout.process_groups import expert_group
from analyzer.model.events import ABSENT
from analyzer.model.layout import Source
from analyzer.model.trace import Trace

_TITLE = re.compile(r"(?:VLLM::Worker|sglang::scheduler)((?:_[A-Z_]+?\d+)+)$")
_TITLE_AXIS = re.compile(r"(?<!MOE)_(DP|PP|PCP|ATTN_CP|TP|DCP|EP)(\d+)")
_TITLE_AXES = {"DP": "dp", "PP": "pp", "PCP": "cp", "ATTN_CP": "cp", "TP": "tp", "DCP": "dcp", "EP": "ep"}

_CUSTOM_REDUCE = re.compile(
    r"cross_device_reduce_[12]stage(?:_\w+)?(?:<[^<>]*?,\s*(\d+)[,>]|I\w*?Li(\d+)E)"
    r"|allreduce_fusion_kernel_\w+<[^<>]*?,\s*(\d+),\s*(?:true|false)"
)
"""vLLM's and FlashInfer's kernels are built for a number of ranks; engines use both in the tp group alone."""

_INTRANODE = re.compile(r"intranode::(?:dispatch|combine)<(?:[A-Za-z_][\w:]*, )?(\d+),")
"""DeepEP's kernels inside a node are built for a number of ranks, the first number among their template arguments."""

REDUCES_PER_LAYER = (1.9, 2.6)
"""All-reduces per layer of a forward pass under tp: two, one more per pass after the embedding (2L+1 for L >= 2)."""

SENDS_PER_LAYER = 0.5
"""Sends and receives per layer of a forward pass, at most, between pipeline stages: two tensors in and two out, while a
stage has many layers. A ring of attention blocks sends in every layer."""

_EXPERT_RANGE = re.compile(r"\b(moe|experts?)\b", re.IGNORECASE)

_LAYER_MARKS = ("kv_write", "attention", "mla", "sparse_attention")
"""Subclasses of which the most frequent name occurs once a layer, best first."""


def placed(traces: tuple[Trace, ...], world: int | None) -> Iterator[Claim]:
    """Axes whose coordinates the file names state: as many as the highest says, if every rank is here."""
    vllm = engine_of(traces) == "vllm"
    for axis in ("tp", "pp", "dp", "ep", "dcp"):
        stated = {trace.rank: trace.origin.placement[axis] for trace in traces if axis in trace.origin.placement}
        # vLLM writes the place in a group that exists whether or not experts are split.
        if stated and not (axis == "ep" and vllm):
            size = max(stated.values()) + 1
            exact = len(stated) == len(traces) and is_complete(traces, world)
            sentence = f"file names state {axis} coordinates up to {size - 1}"
            yield Claim(axis, size, Source.METADATA, sentence, at_least=not exact)


def titled(traces: tuple[Trace, ...], world: int | None) -> Iterator[Claim]:
    """Axes that process titles number: engines name those of more than one rank."""
    highest: dict[str, int] = {}
    for trace in traces:
        for process in trace.origin.processes:
            title = _TITLE.search(process)
            for word, number in _TITLE_AXIS.findall(title[1]) if title is not None else ():
                axis = _TITLE_AXES[word]
                highest[axis] = max(highest.get(axis, 0), int(number))
    group = expert_group(traces)
    for axis, number in highest.items():
        if axis == "ep" and group is not None:
            yield Claim(
                axis, group.size, Source.METADATA, f"process titles number the {group.size} ranks of the ep group"
            )
            continue
        exact = is_complete(traces, world) and number > 0
        sentence = f"process titles number {axis} ranks up to {number}"
        yield Claim(axis, max(number + 1, 2), Source.METADATA, sentence, at_least=not exact)


def observed(traces: tuple[Trace, ...], world: int | None) -> Iterator[Claim]:
    """Axes that kernels tell."""
    names = {name for trace in traces for name in trace.activities.name.values}
    for size in _template_sizes(names, _CUSTOM_REDUCE):
        yield Claim("tp", size, Source.INFERRED, f"custom all-reduce kernels are built for {size} ranks")
    local = _template_sizes(names, _INTRANODE)
    for size in local:
        yield Claim("ep", size, Source.INFERRED, f"expert dispatch kernels are built for {size} ranks")
    if not local:
        yield from _experts(traces)
    yield from _reductions(traces, world)
    yield from _stages(traces, world)


def _template_sizes(names: set[str], pattern: re.Pattern[str]) -> list[int]:
    matches = (pattern.search(name) for name in names)
    return sorted({int(next(filter(None, match.groups()))) for match in matches if match is not None})


def _experts(traces: tuple[Trace, ...]) -> Iterator[Claim]:
    """Experts are split where tokens are sent to them: over the ep group, else the one size of group there is."""
    calls = max((_dispatches(trace) for trace in traces), default=0)
    group = expert_group(traces)
    size = group.size if group is not None else _only_group_size(traces)
    if calls and size is not None:
        sentence = f"{calls} expert dispatches on a rank, and groups of {size} ranks alone"
        yield Claim("ep", size, Source.INFERRED, sentence)


def _dispatches(trace: Trace) -> int:
    """Kernels that send tokens to experts, or all-to-alls of a trace that routes to experts."""
    sent = _count(trace, "dispatch")
    if sent:
        return sent
    ranges = any(_EXPERT_RANGE.search(name) for name in trace.annotations.name.values)
    routes = ranges or _count(trace, "moe_route") or _count(trace, "moe_gemm")
    return _count(trace, "all_to_all") if routes else 0


def _stages(traces: tuple[Trace, ...], world: int | None) -> Iterator[Claim]:
    """Ranks that send to each other a few times a forward pass are stages of a pipeline."""
    links: dict[int, int] = {trace.rank: trace.rank for trace in traces}

    def root(rank: int) -> int:
        while links.setdefault(rank, rank) != rank:
            rank = links[rank]
        return rank

    for trace in traces:
        records, passes = trace.collectives, _layer_passes(trace)
        direct = records.operation.where(lambda word: word in {"send", "recv"}) & (records.peer != ABSENT)
        if not passes or np.count_nonzero(direct) > SENDS_PER_LAYER * passes or _trains(trace):
            return
        for peer in np.unique(records.peer[direct]):
            links[root(trace.rank)] = root(int(peer))
    sizes = set(Counter(root(rank) for rank in tuple(links)).values())
    if len(sizes) == 1 and (size := sizes.pop()) > 1:
        sentence = f"each rank sends or receives a few times a forward pass, within chains of {size} ranks"
        yield Claim("pp", size, Source.INFERRED, sentence, at_least=not is_complete(traces, world))


def _reductions(traces: tuple[Trace, ...], world: int | None) -> Iterator[Claim]:
    """Two all-reduces a layer are tp; the recorded group of the calls, else the one size of group, is its size."""
    for trace in traces:
        layers = _layer_passes(trace)
        reduces = _count(trace, "all_reduce")
        low, high = REDUCES_PER_LAYER
        if not layers or not low <= reduces / layers <= high or _trains(trace):
            continue
        sizes = trace.collectives.group_size[trace.collectives.operation.where(lambda word: word == "all_reduce")]
        known = np.unique(sizes[sizes > 1])
        size = int(known[0]) if known.size == 1 else _only_group_size(traces) or world
        if size is not None and size > 1:
            sentence = f"{reduces / layers:.2f} all-reduces for each of {layers} layer passes, over {size} ranks"
            yield Claim("tp", size, Source.INFERRED, sentence)
            return


def _layer_passes(trace: Trace) -> int:
    """Layers times forward passes, 0 where nothing marks a layer."""
    subclass, name = trace.activities.subclass, trace.activities.name
    for word in _LAYER_MARKS:
        rows = subclass.where(lambda value, word=word: value == word)  # type: ignore[misc]
        if np.any(rows):
            return int(np.bincount(name.codes[rows]).max())
    return 0


def _trains(trace: Trace) -> bool:
    """Gradients are reduced too, so that counts per layer mean something else."""
    return any(name.startswith("Optimizer.") or "backward" in name.lower() for name in trace.annotations.name.values)


def _count(trace: Trace, subclass: str) -> int:
    return int(np.count_nonzero(trace.activities.subclass.where(lambda word: word == subclass)))


def _only_group_size(traces: tuple[Trace, ...]) -> int | None:
    """Size of all recorded groups of several ranks, if it is one."""
    sizes = {group.size for trace in traces for group in trace.origin.groups if group.size > 1}
    return sizes.pop() if len(sizes) == 1 else None
