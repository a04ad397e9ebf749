"""Steps that an engine or the profiler wrote down, cut by what was launched inside them."""

from __future__ import annotations

import re

import numpy as np

from analyzer.model.events import ABSENT, Events
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.names import Phase, StepName, Writer, read_step_name
from analyzer.steps.rank_steps import StepCut, StepSource

_WORDED = re.compile(r"^(?:pd[.:/])?(prefill|decode)$")
"""Ranges inside a profiler's step that name a phase, as `pd.prefill` does."""


def step_annotations(trace: Trace) -> Events:
    """Annotations that mark a step, the engine's own where there are any, else the profiler's.

    Of annotations that lie inside one another on a thread the outermost stays: builds that write two forms for one
    step write one inside the other. Steps without work (`Phase.IDLE`) are among them.
    """
    annotations = trace.annotations
    words = [read_step_name(name) for name in annotations.name.values]
    for writer in Writer:
        named = np.array([word is not None and word.writer is writer for word in words] or [False], np.bool_)
        rows = np.flatnonzero(named[annotations.name.codes])
        if rows.size:
            marked = annotations.take(rows)
            return marked.take(_outermost(marked))
    return annotations.take(slice(0, 0))


def working_annotations(trace: Trace) -> Events:
    """Annotations of steps that do something: an engine that waits for requests writes thousands that do not."""
    spans = step_annotations(trace)
    words = [read_step_name(name) for name in spans.name.values]
    idle = np.array([word is not None and word.phase is Phase.IDLE for word in words] or [False], np.bool_)
    return spans.take(~idle[spans.name.codes])


def by_annotations(trace: Trace, launches: Integers) -> StepCut | str:
    """Steps by their annotations, or why that cannot be.

    Args:
        trace: the rank's.
        launches: int64[m], row in the calls of each activity's launch.
    """
    spans = step_annotations(trace)
    if len(spans) == 0:
        return "no annotation marks a step"
    if trace.origin.device == "cpu":
        # The activities are the host's own: each is where it was called.
        step_of = _enclosing(spans, trace.activities)
        how = "by the time of each operation on its thread"
    else:
        known = launches != ABSENT
        step_of = np.full(launches.shape, ABSENT, np.int64)
        if np.any(known):
            step_of[known] = _enclosing(spans, trace.calls)[launches[known]]
        how = "by what was launched inside"
    if len(trace.activities) and np.all(step_of == ABSENT):
        return f"none of the device's work was launched inside the {len(spans)} step annotations"
    words = tuple(read_step_name(name) for name in spans.name.values)
    reason = f"{len(spans)} annotations such as {spans.name[0]!r}, cut {how}"
    whole = np.ones(len(spans), np.bool_)
    phases = _phases(trace, spans, words)
    return StepCut(
        StepSource.ANNOTATION, reason, spans.name, words, phases, spans.start_ns, spans.end_ns, step_of, whole
    )


def _enclosing(spans: Events, events: Events) -> Integers:
    """int64[len(events)]: the span in which each event begins; ABSENT where there is none.

    An event belongs to a span of its own thread. Where one thread alone has spans, events of the other threads belong
    to the span that is open when they begin: backward passes and collectives are issued by threads of their own.
    """
    span_of = np.full(len(events), ABSENT, np.int64)
    threads = np.unique(np.stack((spans.process, spans.lane)), axis=1).T
    for process, lane in threads:
        rows = np.flatnonzero((spans.process == process) & (spans.lane == lane))
        event_rows = (
            slice(None) if len(threads) == 1 else np.flatnonzero((events.process == process) & (events.lane == lane))
        )
        begin = events.start_ns[event_rows]
        latest = np.searchsorted(spans.start_ns[rows], begin, side="right") - 1
        inside = (latest >= 0) & (begin < spans.end_ns[rows[np.maximum(latest, 0)]])
        span_of[event_rows] = np.where(inside, rows[np.maximum(latest, 0)], ABSENT)
    return span_of


def _phases(trace: Trace, spans: Events, words: tuple[StepName | None, ...]) -> list[Phase]:
    """Phase of each span: as its name says, else as a range inside it does, else as the file's name does."""
    table = [Phase.UNKNOWN if word is None else word.phase for word in words]
    phases = [table[code] for code in spans.name.codes]
    if Phase.UNKNOWN not in table:
        return phases
    for span_index, inside in _worded(trace.annotations, spans).items():
        if phases[span_index] is Phase.UNKNOWN:
            phases[span_index] = inside
    return [stated_phase(trace) if phase is Phase.UNKNOWN else phase for phase in phases]


def _worded(annotations: Events, spans: Events) -> dict[int, Phase]:
    """Phase of the spans that hold ranges named after one."""
    hits = [_WORDED.search(name) for name in annotations.name.values]
    phases = [None if word is None else Phase(word[1]) for word in hits]
    named = annotations.take(annotations.name.where(lambda name: _WORDED.search(name) is not None))
    inside: dict[int, set[Phase]] = {}
    for span_index, code in zip(_enclosing(spans, named), named.name.codes, strict=True):
        phase = phases[code]
        if span_index != ABSENT and phase is not None:
            inside.setdefault(int(span_index), set()).add(phase)
    return {span_index: Phase.MIXED if len(words) > 1 else words.pop() for span_index, words in inside.items()}


def stated_phase(trace: Trace) -> Phase:
    """Phase that the file's name states of the whole trace."""
    return Phase(trace.origin.stage) if trace.origin.stage else Phase.UNKNOWN


def _outermost(spans: Events) -> Mask:
    """bool[n]: spans that do not begin inside an earlier one of their thread."""
    order = np.lexsort((-spans.end_ns, spans.start_ns, spans.lane, spans.process))
    outer = np.zeros(len(spans), np.bool_)
    lane, process = spans.lane[order], spans.process[order]
    opens = np.flatnonzero(np.concatenate(([True], (lane[1:] != lane[:-1]) | (process[1:] != process[:-1]))))
    for first, last in zip(opens, np.append(opens[1:], order.size), strict=True):
        rows = order[first:last]
        reach = np.maximum.accumulate(spans.end_ns[rows])
        outer[rows] = np.concatenate(([True], spans.start_ns[rows][1:] >= reach[:-1]))
    return outer
