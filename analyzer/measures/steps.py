"""Engine iterations of every rank: which there are, what each ran on the device, and for how long."""

from __future__ import annotations

import numpy as np

from analyzer.measures._step_names import Phase, Writer, read_step_name
from analyzer.model.events import Events, Mask
from analyzer.model.trace import Trace


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


__all__ = ["Phase", "step_annotations"]
