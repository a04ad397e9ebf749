"""Copies of keys and values against published sizes: bytes a token and ranks that repeat them."""

import pytest

from analyzer.errors import MissingEvidenceError
from analyzer.measures.kv_copies import kv_copies
from analyzer.model.layout import Layout
from analyzer.model.run import Run
from analyzer.model.workload import Workload
from analyzer.sketch import sketch

QWEN3_235B = "num_hidden_layers=94 num_key_value_heads=4 head_dim=128"
LLAMA_70B = "num_hidden_layers=80 num_key_value_heads=8 hidden_size=8192 num_attention_heads=64"
DEEPSEEK_V3 = "num_hidden_layers=61 num_key_value_heads=128 kv_lora_rank=512 qk_rope_head_dim=64"


@pytest.mark.parametrize(
    ("layout", "model", "copies", "token_bytes"),
    [
        ("tp=8", QWEN3_235B, 2, 192_512),
        ("tp=4", QWEN3_235B, 1, 192_512),
        ("tp=16", LLAMA_70B, 2, 327_680),
        ("tp=8 dcp=2", QWEN3_235B, 1, 192_512),
        ("tp=8", DEEPSEEK_V3, 8, 70_272),
        ("tp=8 dcp=4", DEEPSEEK_V3, 2, 70_272),
    ],
)
def test_published_models_keep_so_many_bytes_a_token(layout, model, copies, token_bytes):
    kv = kv_copies(sketch.read(f"layout {layout}\nmodel {model}\nrank 0 stream 7   GG"))
    assert (kv.copies, kv.token_bytes, kv.repeated_bytes) == (copies, token_bytes, (copies - 1) * token_bytes)
    assert kv.assumed


def _run(layout, **workload):
    trace = sketch.read("rank 0 stream 7   GG").traces[0]
    return Run("typed", (trace,), layout, workload=Workload(**workload))


DIMENSIONS = {"num_hidden_layers": 61, "num_key_value_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


def test_attention_replicas_inside_the_tp_group_split_no_request():
    layout = Layout(8, {"tp": 8, "dp": 8}, evidence={"dp": "dp_size 8, inside the tp group (enable_dp_attention)"})
    assert kv_copies(_run(layout, model=DIMENSIONS)).copies == 1
    switched = {"enable_dp_attention": 1}
    assert kv_copies(_run(Layout(8, {"tp": 8, "dp": 4}), model=DIMENSIONS, settings=switched)).copies == 2


def test_the_type_of_the_cache_comes_before_that_of_the_model():
    settings = {"kv_cache_dtype": "fp8_e4m3"}
    kv = kv_copies(_run(Layout(8, {"tp": 8}), model={**DIMENSIONS, "torch_dtype": "bfloat16"}, settings=settings))
    assert (kv.token_bytes, kv.assumed) == (61 * 576, False)


def test_an_unknown_degree_or_dimension_is_not_guessed():
    with pytest.raises(MissingEvidenceError, match="degree of tensor parallelism"):
        kv_copies(_run(Layout(8), model=DIMENSIONS))
    with pytest.raises(MissingEvidenceError, match="num_hidden_layers"):
        kv_copies(_run(Layout(8, {"tp": 8})))
