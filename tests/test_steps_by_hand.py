"""Steps of real traces as they were counted from the raw JSON, by a script that shares no code with the project.

It counted the outermost annotations of an engine, else of the profiler, and where there are none the graph launches; the
span of each is from the first to the last kernel whose launch lies inside, or of a host's trace the annotation itself.
"""

from collections import Counter
from pathlib import Path

import pytest

from analyzer.ingest.load import load
from analyzer.steps.steps import steps

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the fetched trace corpus is not at hand; it is never committed"),
]

SGLANG = "tracelens_sglang_qwen3_30b_decode_b300_mi300"
VLLM_TP2 = {"prefill": 1, "mixed": 1, "decode": 7, "idle": 1}
BY_HAND = [
    ("hta_dlrm_a100/control.json.gz", {"unknown": 6}, 76_226_000),
    (
        "modded_nanogpt_before_after/modded-nanogpt-current-gpu-rank-00-chrome-trace.json.gz",
        {"unknown": 4},
        59_602_340,
    ),
    ("pytorch_benchmark_memcpy/trace.json", {"unknown": 10}, 30_641_000),
    ("torchrec_resnet18_2rank/rank0.pt.trace.json.gz", {"unknown": 3}, 42_771_000),
    ("torchrec_a2a_qcomm_4rank/rank1.pt.trace.json.gz", {"unknown": 3}, 213_954_000),
    ("tracelens_mi300_ddp_resnet/resnet_act_checkpoint.json.gz", {"unknown": 3}, 18_980_344),
    (f"{SGLANG}/b300_1782799835.6885648-TP-0-DECODE.trace.json.gz", {"decode": 1}, 7_505_109),
    (f"{SGLANG}/mi300_1782859605.7198358-TP-0-DECODE.trace.json.gz", {"decode": 1}, 12_357_830),
    ("tracelens_vllm_decode_full/graph_execution.json.gz", {"decode": 1}, 10_743_182),
    ("cpu-collected/vllm-llama-tp2/rank0.1795960510565968297.pt.trace.json.gz", VLLM_TP2, 61_928_580),
    (
        "cpu-collected/vllm-prefix-cache-on/rank0.1795964635002416523.pt.trace.json.gz",
        {"prefill": 6, "decode": 18, "idle": 6},
        11_820_464,
    ),
]
"""Annotations; the last column is the middle span of all steps, of two the shorter."""
GRAPHS = [
    ("ao_vit_cudagraph/vit_bfloat16.json.gz", 5, 150),
    ("tracelens_xdit_flux1_split/iteration_1_execute_diffusion.json.gz", 4, 993),
    ("sglang_ep8_decode_run1/rank0_10-116-218-90_3154928.1743414537602925481.pt.trace.json.gz", 1, 2_534),
]
"""Graph launches, and the kernels of one."""


@pytest.mark.parametrize(("path", "kinds", "middle_ns"), BY_HAND, ids=[path.split("/")[-2] for path, *_ in BY_HAND])
def test_annotated_steps_are_those_counted_by_hand(path, kinds, middle_ns):
    (rank_steps,) = steps(load(CORPUS / path))
    assert Counter(rank_steps.phase.tolist()) == kinds
    spans_ns = sorted(rank_steps.span_ns.tolist())
    assert spans_ns[(len(spans_ns) - 1) // 2] == pytest.approx(middle_ns, abs=2)  # µs in three decimals, read as floats


@pytest.mark.parametrize(("path", "count", "kernels"), GRAPHS, ids=[path.split("/")[0] for path, *_ in GRAPHS])
def test_launched_graphs_are_those_counted_by_hand(path, count, kernels):
    (rank_steps,) = steps(load(CORPUS / path))
    assert rank_steps.activities.tolist() == [kernels] * count
