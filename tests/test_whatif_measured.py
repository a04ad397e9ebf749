"""What one degree lets expect of another, held against operations that were measured at both.

A decode step is put together from measured GEMMs, attention and all-reduces of one layer at each degree; the estimator
sees the step at one degree, the truth is the step put together at the other.
"""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from analyzer.measures.expected import Call, expected
from analyzer.whatif.expectation import what_if
from analyzer.whatif.limits import Facts
from analyzer.whatif.time_classes import CUSTOM, FP8_FLOOR_NS, FP8_SPREAD, ClassTime, ScalingBehavior, Step

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LAYERS = 80
HIDDEN = 8192
SHAPES = (("gemm-row", "8192", "8192"), ("gemm-column", "16384", "8192"), ("gemm-row", "8192", "16384"))
"""Output projection and a feed-forward block of a model of hidden size 8192."""
ENGINE = {"H100-SXM5-80GB": "vllm-0.24.0-custom", "B200-SXM": "vllm-0.24.0-custom", "L40S": "vllm-0.14.0-custom"}
TOKENS = (1, 8, 32, 128)
QUESTIONS = ((2, 4), (4, 8), (2, 8), (8, 4), (4, 2))

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.exists(), reason="the tables of measured operations are not at hand"),
]


def rows(name):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.fixture(scope="module")
def kernels():
    """Microseconds of one kernel by GPU, operation, type, shape, tokens and shard; of attention by context."""
    found = {}
    for row in rows("op_sharding.csv"):
        shape = (row["op"], row["full_n"], row["full_k"])
        place = row["ctx"] if row["op"] == "decode-attention" else ""
        found[row["gpu"], row["dtype"], shape, int(row["tokens"]), place, int(row["shard"])] = float(row["time_us"])
    return found


@pytest.fixture(scope="module")
def reductions():
    """Microseconds of one all-reduce in a CUDA graph, by GPU, ranks and bytes."""
    return {
        (row["gpu"], int(row["n_gpus"]), int(row["bytes"])): float(row["time_us"])
        for row in rows("collectives.csv")
        if row["op"] == "all_reduce" and row["launch"] == "graph" and row["impl"] == ENGINE.get(row["gpu"])
    }


def classes_of(kernels, reductions, case, degree):
    """The step at one degree, None where a table lacks an operation."""
    gpu, dtype, tokens, context = case
    gemms = [kernels.get((gpu, dtype, shape, tokens, "", degree)) for shape in SHAPES]
    attention = kernels.get((gpu, "bfloat16", ("decode-attention", "64", "8"), tokens, context, degree))
    message = tokens * HIDDEN * 2
    reduction = reductions.get((gpu, degree, message))
    if attention is None or reduction is None or None in gemms:
        return None
    fp8 = {"floor_ns": FP8_FLOOR_NS, "spread": FP8_SPREAD} if dtype == "fp8" else {}
    return (
        ClassTime("gemm", ScalingBehavior.GEMM, LAYERS * sum(gemms) * 1e3, LAYERS * len(gemms), **fp8),
        ClassTime("attention", ScalingBehavior.ATTENTION, LAYERS * attention * 1e3, LAYERS),
        ClassTime(
            "all_reduce",
            ScalingBehavior.COLLECTIVE,
            2 * LAYERS * reduction * 1e3,
            2 * LAYERS,
            operation=CUSTOM,
            message_bytes=message,
        ),
    )


def links(gpu):
    return lambda operation, n_bytes, ranks: (
        expected(Call("all_reduce", n_bytes, ranks, is_custom=operation == CUSTOM), gpu).time_ns
    )


@pytest.fixture(scope="module")
def told(kernels, reductions):
    """(expectation, measured step) of every step and question, by GPU and type."""
    found = defaultdict(list)
    cases = {(key[0], dtype, key[3], key[4]) for key in kernels if key[4] for dtype in ("bfloat16", "fp8")}
    for case in sorted(cases):
        for now, then in QUESTIONS:
            before, after = (classes_of(kernels, reductions, case, degree) for degree in (now, then))
            if before and after:
                step = Step(now, before, links(case[0]), Facts(query_heads=64, kv_heads=8))
                found[case[:2]].append((what_if(step, then), sum(part.time_ns for part in after)))
    return found


def inside(pairs):
    return float(np.mean([told.low_ns <= measured <= told.high_ns for told, measured in pairs]))


def test_enough_steps_were_measured(told):
    assert {gpu for gpu, _ in told} == set(ENGINE)
    assert sum(map(len, told.values())) >= 200


def test_most_measured_steps_lie_in_the_range(told):
    pairs = [pair for part in told.values() for pair in part]
    assert inside(pairs) >= 0.95
    assert {key: share for key, share in ((key, inside(part)) for key, part in told.items()) if share < 0.8} == {}


def test_a_named_direction_is_the_right_one(told):
    pairs = [pair for part in told.values() for pair in part if pair[0].direction]
    right = [(measured < found.now_ns) == (found.direction == "faster") for found, measured in pairs]
    assert len(right) >= 200
    assert np.mean(right) >= 0.98


def test_the_middle_of_the_range_is_near(told):
    off = [
        abs(np.sqrt(found.low_ns * found.high_ns) / measured - 1) for part in told.values() for found, measured in part
    ]
    assert np.median(off) <= 0.06
