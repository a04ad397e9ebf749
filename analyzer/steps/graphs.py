"""Steps where nobody wrote them down: by graph launches, else by what the device repeats."""

from __future__ import annotations

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.annotations import stated_phase
from analyzer.steps.launches import graph_launches
from analyzer.steps.names import Phase
from analyzer.steps.period import Repeats, fingerprints, repeats
from analyzer.steps.rank_steps import StepCut, StepSource

ATTENTION = frozenset({"attention", "mla", "sparse_attention", "linear_attention"})
"""Subclasses of which a graph that holds a whole forward pass has at least one."""

ONCE_A_STEP = frozenset({"copy_htod", "embedding", "sampling"})
"""Subclasses that a step has and a layer has not: inputs come in, tokens are looked up and sampled.

Copies to the host are not among them: expert routing of unfused models asks for sizes in every layer.
"""

PRODUCTS = ATTENTION | {"gemm", "moe_gemm", "convolution"}
"""Subclasses of which a step has at least one: a loop without any prepares or post-processes."""

SMALLEST = 8
"""Activities of a step, at least: a norm, a product and a copy that alternate are a benchmark's loop, not a step."""

_LOW_LATENCY = "internode_ll"
"""DeepEP's low-latency kernels: made for decode, and too small in their buffers for prefill."""


def by_graphs(trace: Trace, launches: Integers) -> StepCut | str:
    """One step for each graph launch, or for each repeating series of launches where graphs are pieces of a step.

    Args:
        trace: the rank's.
        launches: int64[m], row in the calls of each activity's launch.
    """
    in_graph = np.flatnonzero(launches != ABSENT)
    if in_graph.size:
        in_graph = in_graph[graph_launches(trace)[launches[in_graph]]]
    if in_graph.size == 0:
        return "no graph is launched"
    rows, member = np.unique(launches[in_graph], return_inverse=True)
    order = np.argsort(member, kind="stable")
    border = np.concatenate(([0], np.cumsum(np.bincount(member))))
    content = np.diff(fingerprints(trace.activities.name.codes[in_graph[order]], border))
    attends = _of_subclass(trace, ATTENTION)[in_graph]
    whole = np.bincount(member, weights=attends, minlength=rows.size) > 0
    kinds, codes = np.unique(content, return_inverse=True)
    if kinds.size == 1 or np.count_nonzero(whole) * 2 >= rows.size:
        kept = rows if kinds.size == 1 else rows[whole]
        reason = f"{kept.size} graph launches, of which each is a step"
        return _launched(trace, launches, np.stack((kept, kept)), np.ones(kept.size, np.bool_), reason)
    pauses = np.diff(trace.calls.start_ns[rows], prepend=trace.calls.start_ns[rows[0]])
    # A piece after another is rarer than the piece: the first and the last one of a step can be equal.
    pairs = np.unique(np.stack((np.roll(codes, 1), codes)), axis=1, return_inverse=True)[1]
    unit = repeats(pairs.reshape(-1).astype(np.int32), pauses)
    if unit is None:
        return f"{rows.size} graphs are launched, but they are neither whole steps nor a repeating series"
    last = rows[np.append(unit.start[1:], rows.size) - 1]
    reason = f"{unit.start.size} series, each of {int(np.median(np.diff(unit.start)))} graph launches"
    return _launched(trace, launches, np.stack((rows[unit.start], last)), unit.is_alike, reason)


def by_period(trace: Trace, launches: Integers) -> StepCut | str:
    """One step for each repetition of the sequence of activities.

    Args:
        trace: the rank's.
        launches: int64[m], row in the calls of each activity's launch.
    """
    activities = trace.activities
    if trace.origin.device == "cpu" or len(activities) == 0:
        return "a host's operations are not searched for a period" if len(activities) else "the device did nothing"
    marks, products = (
        np.concatenate(([0], np.cumsum(_of_subclass(trace, words)))) for words in (ONCE_A_STEP, PRODUCTS)
    )
    reach = np.maximum.accumulate(activities.end_ns)
    pause = np.maximum(activities.start_ns - np.concatenate((activities.start_ns[:1], reach[:-1])), 0)

    def accepts(start: int, end: int) -> bool:
        return end - start >= SMALLEST and bool(marks[end] > marks[start] and products[end] > products[start])

    unit = repeats(activities.name.codes, pause, accepts)
    if unit is None:
        return "the sequence of the device's work repeats no unit that takes inputs in or samples"
    step_of = np.searchsorted(unit.start, np.arange(len(activities)), side="right") - 1
    reason = f"the device's work repeats {unit.start.size} times, {int(np.median(np.diff(unit.start)))} activities each"
    return _cut(trace, launches, step_of.astype(np.int64), unit, reason)


def _launched(trace: Trace, launches: Integers, bounds: Integers, alike: Mask, reason: str) -> StepCut:
    """Steps that run from one launch to another, both included.

    Args:
        trace: the rank's.
        launches: int64[m].
        bounds: int64[2, n], rows of the first and last launch of each step.
        alike: bool[n].
        reason: how they were found.
    """
    first, last = bounds
    calls = trace.calls
    step = np.searchsorted(first, launches, side="right") - 1
    inside = (step >= 0) & (launches <= last[np.maximum(step, 0)])
    if launches.size:
        # Calls of other threads that fall in between are other work.
        thread = np.stack((calls.process, calls.lane))
        inside &= np.all(thread[:, np.maximum(launches, 0)] == thread[:, first[np.maximum(step, 0)]], axis=0)
    step_of = np.where(inside & (launches != ABSENT), step, ABSENT).astype(np.int64)
    name = calls.name.take(first)
    whole = np.ones(first.size, np.bool_)
    whole[-1] = alike[-1]
    return StepCut(
        StepSource.GRAPH_LAUNCH,
        reason,
        name,
        (None,) * len(name.values),
        [_phase(trace, step_of)] * first.size,
        calls.start_ns[first],
        calls.end_ns[last],
        step_of,
        whole,
    )


def _cut(trace: Trace, launches: Integers, step_of: Integers, unit: Repeats, reason: str) -> StepCut:
    n = unit.start.size
    name = trace.activities.name.take(unit.start)
    host = np.flatnonzero((launches != ABSENT) & (step_of != ABSENT))
    begin, end = _host(trace, launches[host], step_of[host], n)
    whole = np.ones(n, np.bool_)
    whole[-1] = unit.is_alike[-1]
    return StepCut(
        StepSource.PERIOD,
        reason,
        name,
        (None,) * len(name.values),
        [_phase(trace, step_of)] * n,
        begin,
        end,
        step_of,
        whole,
    )


def _host(trace: Trace, launches: Integers, step: Integers, n: int) -> tuple[Integers, Integers]:
    """First begin and last end of the launches of each step; ABSENT where none is known."""
    begin, end = np.full(n, np.iinfo(np.int64).max), np.full(n, ABSENT, np.int64)
    np.minimum.at(begin, step, trace.calls.start_ns[launches])
    np.maximum.at(end, step, trace.calls.end_ns[launches])
    return np.where(end == ABSENT, ABSENT, begin).astype(np.int64), end


def _phase(trace: Trace, step_of: Integers) -> Phase:
    """What the file's name says; else decode where low-latency expert kernels run."""
    stated = stated_phase(trace)
    if stated is not Phase.UNKNOWN:
        return stated
    fast = trace.activities.name.where(lambda name: _LOW_LATENCY in name)
    return Phase.DECODE if np.any(fast & (step_of != ABSENT)) else Phase.UNKNOWN


def _of_subclass(trace: Trace, words: frozenset[str]) -> Mask:
    """bool[m]: activities of one of some subclasses."""
    return trace.activities.subclass.where(lambda word: word in words)
