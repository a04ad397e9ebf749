"""Ascend's `trace_view.json`: device work has no category and is told by the name of its process and thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analyzer.errors import TraceFormatError
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.intervals import Intervals
from analyzer.model.events import Labels
from analyzer.stats.arrays import Integers, Mask

HARDWARE = ("Ascend Hardware",)
COLLECTIVES = ("HCCL", "Communication")
OVERLAP = "Overlap Analysis"
HOST = ("CANN",)

WHOLE_COLLECTIVE = "Communication"
"""End of the name of the thread that holds whole collectives; the planes beside it hold their steps a second time."""

NO_WORK = ("EVENT_", "NOTIFY_", "PLACE_HOLDER", "Notify", "Write Value", "RDMASend")
"""Task types that mark or wait; `SDMA` are the copies inside collectives, which the collective's own row covers."""
STEP_OF_COLLECTIVE = ("SDMA", "RDMA", "Memcpy", "Reduce_Inline")
EXCHANGE_MARKS = ("NOTIFY_", "Notify", "RDMASend", "Write Value")
"""Task types by which ranks tell each other; streams that compute have none."""
UNNAMED = "Other"
UNNAMED_STEP = "HCCL Other"
"""What a task named `Other` is called here where it is a step of a collective; elsewhere it may be anything."""


def is_ascend(raw: RawTrace) -> bool:
    """Whether the file names Ascend's processes."""
    named = set(raw.descriptions.text.take(_process_names(raw)).tolist())
    return bool(named & {*HARDWARE, OVERLAP})


def with_steps_named(raw: RawTrace) -> RawTrace:
    """The trace with tasks named `Other` on streams of collectives called what they are.

    A stream is one of collectives where nothing computes on it, and ranks tell each other there or one of these tasks
    runs within a whole collective.
    """
    tasks, task_type = _tasks(raw), raw.text("Task Type")
    unnamed = tasks & raw.name.where(lambda name: name == UNNAMED)
    if not unnamed.any():
        return raw
    streams = np.stack((raw.process, raw.thread))
    stream = np.unique(streams, axis=1, return_inverse=True)[1].reshape(-1)
    computes = tasks & ~unnamed & ~_waits_or_moves(task_type)
    tells = tasks & task_type.where(lambda word: word.startswith(EXCHANGE_MARKS) or word in STEP_OF_COLLECTIVE)
    tells |= unnamed & _covered(raw)
    counts = (np.bincount(stream, weights=rows, minlength=stream.max() + 1) for rows in (computes, tells))
    computing, telling = counts
    chosen = unnamed & ((computing == 0) & (telling > 0))[stream]
    values = (*raw.name.values, UNNAMED_STEP)
    codes = np.where(chosen, len(values) - 1, raw.name.codes).astype(np.int32)
    return replace(raw, name=Labels(values, codes))


def _covered(raw: RawTrace) -> Mask:
    """bool[n]: events that whole collectives cover, mostly."""
    whole = _collectives(raw)
    end = raw.start_ns + raw.duration_ns
    covered: Mask = (
        2 * Intervals.from_arrays(raw.start_ns[whole], end[whole]).within(raw.start_ns, end) > raw.duration_ns
    )
    return covered


def is_work(raw: RawTrace) -> Mask:
    """bool[n]: tasks of the device that compute or copy, and whole collectives.

    Raises:
        TraceFormatError: an excerpt that holds the vendor's overlap analysis and not the tasks it was made from.
    """
    tasks = _tasks(raw) & ~_waits_or_moves(raw.text("Task Type"))
    unnamed = raw.name.where(lambda name: name == UNNAMED_STEP)
    if unnamed.any():
        tasks &= ~(unnamed & _covered(raw))
    work: Mask = tasks | _collectives(raw)
    if not work.any() and _processes(raw, (OVERLAP,)).size:
        raise TraceFormatError(
            f"{raw.path}: an excerpt with Ascend's overlap analysis but no device tasks; "
            "give the whole trace_view.json that torch_npu wrote"
        )
    return work


def is_call(raw: RawTrace) -> Mask:
    """bool[n]: calls of the host runtime."""
    return _spans(raw, HOST)


def _spans(raw: RawTrace, processes: tuple[str, ...]) -> Mask:
    spans = raw.phase.where(lambda phase: phase == "X") & raw.category.where(lambda category: category == "")
    of_processes: Mask = spans & np.isin(raw.process, _processes(raw, processes))
    return of_processes


def _tasks(raw: RawTrace) -> Mask:
    return _spans(raw, HARDWARE)


def _collectives(raw: RawTrace) -> Mask:
    """bool[n]: whole collectives."""
    whole: Mask = _spans(raw, COLLECTIVES) & np.isin(raw.thread, _whole(raw))
    return whole


def _waits_or_moves(task_type: Labels) -> Mask:
    """bool[n]: tasks that mark, wait, or are a step of a collective, whose own row covers them."""
    return task_type.where(lambda word: word.startswith(NO_WORK) or word in STEP_OF_COLLECTIVE)


def _process_names(raw: RawTrace) -> Mask:
    return raw.descriptions.key.where(lambda key: key == "process_name")


def _processes(raw: RawTrace, names: tuple[str, ...]) -> Integers:
    named = _process_names(raw) & raw.descriptions.text.where(lambda text: text in names)
    return raw.descriptions.process[named]


def _whole(raw: RawTrace) -> Integers:
    """Threads of whole collectives."""
    threads = raw.descriptions.key.where(lambda key: key == "thread_name")
    whole = raw.descriptions.text.where(lambda text: text.strip().endswith((WHOLE_COLLECTIVE, "Communication Kernel")))
    own = np.isin(raw.descriptions.process, _processes(raw, COLLECTIVES))
    return raw.descriptions.thread[threads & whole & own]
