"""Ascend's `trace_view.json`: device work has no category and is told by the name of its process and thread."""

from __future__ import annotations

import numpy as np

from analyzer.errors import TraceFormatError
from analyzer.ingest.kineto.raw import RawTrace
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
UNNAMED = "Other"
"""What the profiler calls a task whose type it does not know: on HCCL's streams, steps of a collective."""
STEP_OF_COLLECTIVE = ("SDMA", "RDMA", "Memcpy", "Reduce_Inline")


def is_ascend(raw: RawTrace) -> bool:
    """Whether the file names Ascend's processes."""
    named = set(raw.descriptions.text.take(_process_names(raw)).tolist())
    return bool(named & {*HARDWARE, OVERLAP})


def is_work(raw: RawTrace) -> Mask:
    """bool[n]: tasks of the device that compute or copy, and whole collectives.

    Raises:
        TraceFormatError: an excerpt that holds the vendor's overlap analysis and not the tasks it was made from.
    """
    spans = raw.phase.where(lambda phase: phase == "X") & raw.category.where(lambda category: category == "")
    tasks = spans & np.isin(raw.process, _processes(raw, HARDWARE))
    task_type = raw.text("Task Type")
    tasks &= ~task_type.where(lambda word: word.startswith(NO_WORK) or word in STEP_OF_COLLECTIVE)
    collectives = spans & np.isin(raw.process, _processes(raw, COLLECTIVES)) & np.isin(raw.thread, _whole(raw))
    if collectives.any():
        tasks &= ~_of_collectives(raw, tasks, task_type)
    work: Mask = tasks | collectives
    if not work.any() and _processes(raw, (OVERLAP,)).size:
        raise TraceFormatError(
            f"{raw.path}: an excerpt with Ascend's overlap analysis but no device tasks; "
            "give the whole trace_view.json that torch_npu wrote"
        )
    return work


def _of_collectives(raw: RawTrace, tasks: Mask, task_type: Labels) -> Mask:
    """bool[n]: unnamed tasks on streams that compute nothing: steps of collectives, which have rows of their own."""
    unnamed = tasks & task_type.where(lambda word: word == UNNAMED)
    computing = np.unique(raw.thread[tasks & ~unnamed])
    return unnamed & ~np.isin(raw.thread, computing)


def is_call(raw: RawTrace) -> Mask:
    """bool[n]: calls of the host runtime."""
    spans = raw.phase.where(lambda phase: phase == "X") & raw.category.where(lambda category: category == "")
    calls: Mask = spans & np.isin(raw.process, _processes(raw, HOST))
    return calls


def _process_names(raw: RawTrace) -> Mask:
    return raw.descriptions.key.where(lambda key: key == "process_name")


def _processes(raw: RawTrace, names: tuple[str, ...]) -> Integers:
    named = _process_names(raw) & raw.descriptions.text.where(lambda text: text in names)
    return raw.descriptions.process[named]


def _whole(raw: RawTrace) -> Integers:
    """Threads of whole collectives."""
    threads = raw.descriptions.key.where(lambda key: key == "thread_name")
    whole = raw.descriptions.text.where(lambda text: text.strip().endswith((WHOLE_COLLECTIVE, "Communication Kernel")))
    of_collectives = np.isin(raw.descriptions.process, _processes(raw, COLLECTIVES))
    return raw.descriptions.thread[threads & whole & of_collectives]
