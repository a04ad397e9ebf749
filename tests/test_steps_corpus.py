"""Steps and layouts of real traces; the counts are those of their annotations and graph launches."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from analyzer.ingest.load import load
from analyzer.model.kind import Kind
from analyzer.steps.steps import reused_tokens, step_summary, steps

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the trace corpus is not at hand"),
]

B300 = "tracelens_sglang_qwen3_30b_decode_b300_mi300/b300_1782799835.6885648-TP-0-DECODE.trace.json.gz"
MI300 = "tracelens_sglang_qwen3_30b_decode_b300_mi300/mi300_1782859605.7198358-TP-0-DECODE.trace.json.gz"
VLLM_MI300 = "tracelens_vllm_decode_full"
SGLANG_PREFILL = "tracelens_sglang_prefilldecode"
DEEPSEEK = "sglang_ep8_decode_run1/rank0_10-116-218-90_3154928.1743414537602925481.pt.trace.json.gz"


@cache
def run(place):
    return load(CORPUS / place)


@pytest.mark.parametrize(
    ("place", "source", "kinds"),
    [
        (VLLM_MI300, "annotation", {"decode": 1}),
        (SGLANG_PREFILL, "annotation", {"prefill": 1}),
        (B300, "annotation", {"decode": 1}),
        (MI300, "annotation", {"decode": 1}),
        (DEEPSEEK, "graph launch", {"decode": 1}),
        ("lightllm_ep8_decode", "graph launch", {"decode": 1}),
        ("cpu-collected/vllm-llama-tp1", "annotation", {"prefill": 1, "decode": 7, "idle": 1}),
        ("cpu-collected/vllm-llama-tp2", "annotation", {"prefill": 1, "mixed": 1, "decode": 7, "idle": 1}),
        ("cpu-collected/vllm-llama-pp2", "annotation", {"prefill": 1, "decode": 7, "idle": 8}),
        ("cpu-collected/vllm-serve-dp2", "annotation", {"prefill": 1, "mixed": 1, "decode": 8, "idle": 1}),
        ("cpu-collected/vllm-prefix-cache-on", "annotation", {"prefill": 6, "decode": 18, "idle": 6}),
        ("cpu-collected/vllm-pd-mooncake/decode", "annotation", {"prefill": 2, "mixed": 1, "decode": 15, "idle": 3113}),
        ("cpu-collected/torch-tp-2", "annotation", {"unknown": 2}),
        ("cpu-collected/torch-pd-2", "annotation", {"prefill": 2, "decode": 2}),
    ],
)
def test_the_steps_of_a_recording_are_counted_by_phase(place, source, kinds):
    found = step_summary(run(place))
    assert {row.kind: row.count for row in found} == kinds
    assert {row.source for row in found} == {source}


@pytest.mark.parametrize(
    ("place", "kind", "median_us"),
    [
        (VLLM_MI300, "decode", 10_743),
        (SGLANG_PREFILL, "prefill", 987_289),
        (B300, "decode", 7_505),
        (MI300, "decode", 12_358),
        (DEEPSEEK, "decode", 103_350),
        ("cpu-collected/vllm-prefix-cache-off", "prefill", 368_868),
        ("cpu-collected/vllm-prefix-cache-on", "prefill", 78_396),
    ],
)
def test_a_step_lasts_from_its_first_to_its_last_activity(place, kind, median_us):
    found = {row.kind: row for row in step_summary(run(place))}
    assert round(found[kind].median_ns / 1_000) == median_us


@pytest.mark.parametrize(("place", "host_percent", "step_percent"), [(B300, 10, 72), (MI300, 33, 86)])
def test_a_decode_step_of_an_engine_that_runs_ahead_is_not_idle(place, host_percent, step_percent):
    found, activities = steps(run(place))[0], run(place).traces[0].activities
    busy = activities.busy(Kind.COMPUTE) | activities.busy(Kind.COMMUNICATION) | activities.busy(Kind.MOVEMENT)
    # By the annotation's own range most of the step would seem idle.
    by_host = busy.within(found.host_start_ns, found.host_end_ns) / (found.host_end_ns - found.host_start_ns)
    by_launch = found.time_within(busy) / found.span_ns
    assert np.round(100 * by_host).astype(int).tolist() == [host_percent]
    assert np.round(100 * by_launch).astype(int).tolist() == [step_percent]


def test_prefix_caching_shows_in_the_tokens_that_a_prefill_computes():
    rows = {
        place: next(row for row in step_summary(run(f"cpu-collected/{place}")) if row.kind == "prefill")
        for place in ("vllm-prefix-cache-off", "vllm-prefix-cache-on")
    }
    assert {place: row.median_tokens for place, row in rows.items()} == {
        "vllm-prefix-cache-off": 512,
        "vllm-prefix-cache-on": 64,
    }


def test_a_prompt_that_finds_nothing_in_the_cache_reuses_nothing():
    assert reused_tokens(run(SGLANG_PREFILL)) == (0, 15_360)


@pytest.mark.parametrize(
    "place", ["nano_vllm_4080/decode_gpu_0.json.gz", "switch_transformers", "tracelens_mi210_gpu_only"]
)
def test_where_nothing_marks_a_step_none_is_claimed(place):
    assert len(steps(run(place))[0]) == 0


@pytest.mark.parametrize(
    ("place", "world", "sizes"),
    [
        ("cpu-collected/vllm-llama-tp2", 2, {"tp": 2, "pp": 1, "dp": 1, "cp": 1, "dcp": 1}),
        ("cpu-collected/vllm-llama-pp2", 2, {"tp": 1, "pp": 2, "dp": 1, "cp": 1, "dcp": 1}),
        ("cpu-collected/vllm-serve-dp2", 2, {"tp": 1, "pp": 1, "dp": 2, "ep": 1, "cp": 1, "dcp": 1}),
        (VLLM_MI300, 1, {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "dcp": 1}),
        ("lightllm_ep8_decode", 8, {"ep": 8}),
        ("cpu-collected/torch-tp-2", 2, {}),
    ],
)
def test_the_layout_of_a_recording_is_what_it_shows(place, world, sizes):
    layout = run(place).layout
    assert (layout.world_size, layout.sizes) == (world, sizes)
