"""Tasks that HCCL names `Other` are steps of its collectives, as the vendor's own Overlap Analysis counts them."""

import json

import pytest

from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.model.kind import Kind

US = 1_000
HARDWARE, HCCL, OVERLAP = 10, 20, 30
BASE_US = 1_700_000_000_000_000


def named(pid, name, threads):
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    for tid, text in threads.items():
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": text}}


def row(pid, tid, name, at, took, task_type=""):
    args = {"Task Type": task_type, "Stream Id": tid, "Task Id": at} if task_type else {}
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": str(BASE_US + at), "dur": took, "args": args}


def iteration(at, whole, *, products=5, took=100, exchange=2250, other_streams=(11, 12)):
    """Products with 10 µs between them, 10 µs, then a collective whose steps are on streams of their own."""
    for index in range(products):
        yield row(HARDWARE, 1, "MatMul12", at + index * (took + 10), took, "AI_CORE")
    start = at + products * (took + 10) + 10
    if whole:
        yield row(HCCL, 1, f"hcom_allReduce__538_{at}_1", start, exchange)
    for index in range(10):
        step = start + index * (exchange // 10)
        yield row(HARDWARE, 3, "NOTIFY_WAIT", step, 20, "NOTIFY_WAIT")
        for stream in other_streams:
            yield row(HARDWARE, stream, "Other", step, exchange // 10 - 5, "Other")


def rank_of(folder, events):
    place = folder / "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT"
    place.mkdir(parents=True)
    names = (
        *named(HARDWARE, "Ascend Hardware", {1: "Stream 1", 3: "Stream 3", 11: "Stream 11", 12: "Stream 12"}),
        *named(HCCL, "HCCL", {1: "Group 0 Communication", 2: "Plane 0"}),
        *named(OVERLAP, "Overlap Analysis", {1: "Computing"}),
    )
    (place / "trace_view.json").write_text(json.dumps([*names, *events]))
    (rank_split,) = breakdown(load(folder))
    return rank_split


def test_computing_and_communication_are_those_of_the_overlap_analysis(tmp_path):
    rank_split = rank_of(tmp_path, [event for at in range(4) for event in iteration(3000 * at, whole=True)])
    # Overlap Analysis of this trace: computing 2.0 ms, communication not overlapped 9.0 ms.
    assert (rank_split.compute.total_ns, rank_split.communication.total_ns) == (2_000 * US, 9_000 * US)
    assert rank_split.subclass_ns == {
        (Kind.COMPUTE, "gemm"): 2_000 * US,
        (Kind.COMMUNICATION, "all_reduce"): 9_000 * US,
    }


def test_other_numbers(tmp_path):
    events = [
        event
        for at in range(6)
        for event in iteration(5000 * at, whole=True, products=8, took=200, exchange=400, other_streams=(12,))
    ]
    rank_split = rank_of(tmp_path, events)
    assert (rank_split.compute.total_ns, rank_split.communication.total_ns) == (9_600 * US, 2_400 * US)


def test_without_a_row_of_the_whole_collective_its_steps_are_communication(tmp_path):
    rank_split = rank_of(
        tmp_path, [event for at in range(4) for event in iteration(3000 * at, whole=False, other_streams=(3,))]
    )
    assert rank_split.compute.total_ns == 2_000 * US
    assert rank_split.communication.total_ns == 4 * 10 * 220 * US
    assert rank_split.subclass_ns[Kind.COMMUNICATION, "collective"] == 8_800 * US


@pytest.mark.parametrize("whole", [True, False])
def test_on_a_stream_that_computes_it_stays_what_no_pattern_knows(tmp_path, whole):
    events = [*iteration(0, whole=whole, other_streams=()), row(HARDWARE, 1, "Other", 4000, 50, "Other")]
    rank_split = rank_of(tmp_path, events)
    assert (rank_split.unclassified_ns, rank_split.compute.total_ns) == (50 * US, 550 * US)
