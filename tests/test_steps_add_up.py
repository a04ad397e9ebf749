"""A row of steps is one step: the median one, its terms summing to it. What is no step, no collective, no compute."""

import json
from pathlib import Path

import pytest
from step_traces import Recorder

from analyzer.diagnose.bounds import bound_rows
from analyzer.diagnose.diagnose import diagnose
from analyzer.diagnose.tables import step_rows
from analyzer.errors import ShardscopeError
from analyzer.ingest.load import load
from analyzer.model.run import Run
from analyzer.sketch.sketch import read
from analyzer.steps.steps import middle_row, steps

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_traces"
CORPUS = ROOT.parent / "shared" / "traces"
CPU = CORPUS / "cpu-collected"
fetched = pytest.mark.skipif(not CORPUS.is_dir(), reason="the fetched traces are not at hand")


def sets():
    places = [path for kind in ("recorded", "drawn") for path in (SAMPLES / kind).iterdir()]
    places += [path for path in (*CORPUS.iterdir(), *CPU.iterdir()) if path != CPU] if CORPUS.is_dir() else []
    return sorted(path for path in places if path.is_dir())


@pytest.mark.parametrize("place", sets(), ids=lambda path: path.name)
def test_the_terms_of_a_row_sum_to_the_step_it_shows(place):
    try:
        run = load(place)
    except ShardscopeError as refused:
        pytest.skip(f"no run: {refused}")
    for row in step_rows(run):
        assert sum(row.terms.values()) == row.median_ns
        assert min(row.terms.values()) >= 0


def test_the_row_is_one_step_and_not_a_mixture_of_medians():
    """Steps of 100, 130 and 150 µs whose products take 90, 40 and 70: the middle one computes 40."""
    (row,) = step_rows(
        read("""
        rank 0 stream 7   .GGGGGGGGGA.GGGG|AAAAAAAA.GGGGGGG|AAAAAAA
        rank 0 host       ll.........ll............ll..............
        rank 0 steps      DDDDDDDDDDD|DDDDDDDDDDDDD|DDDDDDDDDDDDDDD
        """)
    )
    assert (row.median_ns, row.terms) == (
        130_000,
        {"compute": 40_000, "communication": 90_000, "movement": 0, "sync": 0},
    )


def test_of_two_in_the_middle_the_lower_one_is_shown():
    import numpy as np

    assert middle_row(np.array([70, 10, 30, 20])) == 3
    assert middle_row(np.array([5, 5, 5])) == 1


COUNTED = {
    "vllm-dsv2-tp1": {"prefill": 1, "decode": 7},
    "vllm-dsv2-tp2-ep": {"prefill": 1, "decode": 7},
    "vllm-llama-pp2": {"prefill": 1, "decode": 7, "idle": 8},
    "vllm-llama-tp1": {"prefill": 1, "decode": 7, "idle": 1},
    "vllm-llama-tp2": {"prefill": 1, "mixed": 1, "decode": 7, "idle": 1},
    "vllm-llama-tp2-launcher": {"prefill": 1, "decode": 7},
    "vllm-mixtral-tp2": {"prefill": 1, "decode": 7},
    "vllm-qwen3moe-tp2-ep": {"prefill": 1, "decode": 7},
    "vllm-prefix-cache-off": {"prefill": 6, "decode": 18, "idle": 6},
    "vllm-prefix-cache-on": {"prefill": 6, "decode": 18, "idle": 6},
    "vllm-serve-dp2": {"prefill": 1, "mixed": 1, "decode": 8, "idle": 1},
    "vllm-serve-tp2": {"prefill": 1, "mixed": 2, "decode": 7, "idle": 1},
}
"""Counted in the files themselves: ranges `execute_context_…` by the requests they name, of the rank that has most."""
MEDIANS_NS = {
    "vllm-dsv2-tp1": {"prefill": 3_097_279_271, "decode": 77_641_595},
    "vllm-llama-tp1": {"prefill": 920_780_805, "decode": 62_596_161},
    "vllm-prefix-cache-off": {"prefill": 368_868_275, "decode": 8_255_356},
    "vllm-prefix-cache-on": {"prefill": 78_395_720, "decode": 11_820_464},
}
"""Of runs of one rank: the lower median of these ranges' durations, from the files."""


@fetched
@pytest.mark.parametrize("name", COUNTED)
def test_steps_are_those_counted_by_hand(name):
    rows = {row.kind: row for row in step_rows(load(CPU / name))}
    assert {kind: row.count for kind, row in rows.items()} == COUNTED[name]
    for kind, median_ns in MEDIANS_NS.get(name, {}).items():
        assert rows[kind].median_ns == median_ns


@pytest.mark.parametrize(
    "name", ["## codecs decode", "video.decode", "jpeg/decode", "tokenizer: decode", "audio prefill"]
)
def test_a_word_that_ends_like_a_phase_is_none(name):
    recorder = Recorder()
    for number in range(4):
        recorder.annotate(f"ProfilerStep#{number}", lambda: recorder.annotate(name, lambda: recorder.graph("a", "b")))
    (rank,) = steps(Run("run", (recorder.trace(),)))
    assert set(rank.phase.tolist()) == {"unknown"}


@pytest.mark.parametrize(("name", "phase"), [("pd.prefill", "prefill"), ("decode", "decode")])
def test_a_range_that_names_the_phase_of_its_step_is_read(name, phase):
    recorder = Recorder()
    for number in range(4):
        recorder.annotate(f"ProfilerStep#{number}", lambda: recorder.annotate(name, lambda: recorder.graph("a", "b")))
    (rank,) = steps(Run("run", (recorder.trace(),)))
    assert set(rank.phase.tolist()) == {phase}


@pytest.mark.parametrize(
    "place", [SAMPLES / "recorded" / "tp2", SAMPLES / "recorded" / "ep2"], ids=lambda path: path.name
)
def test_posting_a_collective_is_host_time_on_no_rung(place):
    report = diagnose(load(place), ())
    for row in report.breakdown.per_rank:
        assert "comm_setup" not in row.subclasses
        assert row.sync_causes.host_launch_ns > 0
    assert "comm_setup" not in {row.kind for row in report.collectives}


def posted(tmp_path, post_us, run_us):
    """A host posts an all-reduce for so long; its backend runs it on another thread, from the middle of the posting on."""
    events = []
    for number in range(4):
        start = 10_000 * number
        for name, tid, begin, length, category in (
            ("aten::mm", 1, start, 1_000, "cpu_op"),
            ("c10d::allreduce_", 1, start + 1_000, post_us, "cpu_op"),
            ("gloo:all_reduce", 2, start + 1_000 + post_us // 2, run_us, "user_annotation"),
        ):
            events.append(
                {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": length, "args": {}}
            )
    (tmp_path / "rank0.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return diagnose(load(tmp_path), ()).breakdown.per_rank[0]


@pytest.mark.parametrize(("post_us", "run_us"), [(2_000, 3_000), (400, 5_000)])
def test_a_posting_under_its_collective_hides_nothing_of_it(tmp_path, post_us, run_us):
    row = posted(tmp_path, post_us, run_us)
    assert row.compute_ns == 4 * 1_000_000
    assert row.communication_ns + row.sync_causes.peer_wait_ns == 4 * run_us * 1_000
    assert row.sync_causes.host_launch_ns == 4 * post_us // 2 * 1_000


def ascend(folder, products, product_us, exchange_us, unnamed_streams):
    """Four steps of products, then an all-reduce whose steps lie on streams of tasks of no named type."""
    events = []

    def named(pid, name, threads):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        events.extend(
            {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": text}} for tid, text in threads
        )

    def task(pid, tid, name, start, length, kind=""):
        args = {"Task Type": kind, "Stream Id": tid} if kind else {}
        row = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": str(1_700_000_000_000_000 + start), "dur": length}
        events.append({**row, "args": args})

    named(10, "Ascend Hardware", [(1, "Stream 1"), *((stream, f"Stream {stream}") for stream in unnamed_streams)])
    named(20, "HCCL", [(1, "Group 0 Communication")])
    for step in range(4):
        start = step * (products * product_us + exchange_us + 500)
        for number in range(products):
            task(10, 1, "MatMul", start + number * product_us, product_us, "AI_CORE")
        begin = start + products * product_us + 100
        task(20, 1, f"hcom_allReduce__538_{step}_1", begin, exchange_us)
        for stream in unnamed_streams:
            for part in range(5):
                task(10, stream, "Other", begin + part * exchange_us // 5, exchange_us // 5, "Other")
    place = folder / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    place.mkdir(parents=True)
    (place / "trace_view.json").write_text(json.dumps(events))
    return diagnose(load(folder), ()).breakdown.per_rank[0]


@pytest.mark.parametrize(
    ("products", "product_us", "exchange_us", "streams"), [(5, 100, 2_250, (11, 12)), (3, 400, 600, (7,))]
)
def test_tasks_of_no_named_type_on_streams_of_collectives_are_no_compute(
    tmp_path, products, product_us, exchange_us, streams
):
    row = ascend(tmp_path, products, product_us, exchange_us, streams)
    assert row.compute_ns == 4 * products * product_us * 1_000
    assert row.communication_ns == 4 * exchange_us * 1_000
    assert row.unclassified_ns == 0


def test_tasks_of_no_named_type_beside_products_stay_work(tmp_path):
    row = ascend(tmp_path, 2, 100, 600, (1,))
    assert row.unclassified_ns > 0


@pytest.mark.parametrize("name", ["tp1", "ep1"])
def test_the_bound_of_exposed_copies_is_the_movement_of_the_row(name):
    run = load(SAMPLES / "recorded" / name)
    rows = {row.kind: row for row in step_rows(run)}
    bounds = {row.kind: row.saved_ns for row in bound_rows(run) if row.name == "without exposed copies"}
    assert bounds == {kind: rows[kind].terms["movement"] for kind in bounds} != {}
