"""Kernels that do the work of two terms count as one of them, and every form of the report says so."""

import json

import pytest
from click.testing import CliRunner

from analyzer.__main__ import shardscope
from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load

KERNELS = (
    ("nvjet_tst_128x64_64x8_2x1_v_bz_TNT", 0, 40),
    ("allreduce_fusion_kernel_oneshot_lamport", 40, 20),
    ("MatmulAllReduce", 60, 30),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 90, 10),
)


@pytest.fixture
def place(tmp_path):
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": 0,
            "tid": 7,
            "ts": start,
            "dur": length,
            "args": {"stream": 7},
        }
        for name, start, length in KERNELS
    ]
    (tmp_path / "rank0.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return tmp_path


def test_time_of_blended_kernels_is_in_one_term_and_flagged(place):
    (row,) = diagnose(load(place), ()).breakdown.per_rank
    assert (row.compute_ns, row.communication_ns) == (70_000, 30_000)
    assert (row.fused_ns, row.overlapped_ns) == (20_000, 30_000)


def test_only_the_calls_of_a_fused_kernel_are_flagged(place):
    (row,) = diagnose(load(place), ()).collectives
    assert row.fused


def test_a_run_without_blended_kernels_flags_nothing(place):
    file = place / "rank0.json"
    document = json.loads(file.read_text())
    document["traceEvents"] = [document["traceEvents"][0], document["traceEvents"][3]]
    file.write_text(json.dumps(document))
    report = diagnose(load(place), ())
    assert [(row.fused_ns, row.overlapped_ns) for row in report.breakdown.per_rank] == [(0, 0)]
    assert [row.fused for row in report.collectives] == [False]


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_says_so(place, form):
    told = CliRunner().invoke(shardscope, ["diagnose", str(place), "--format", form], standalone_mode=False).output
    told = " ".join(told.split())
    assert "fused: 20.0 % is communication in kernels that compute as well" in told
    assert "overlapped: 30.0 % is compute in kernels with an exchange inside" in told
    assert "all_reduce (fused)" in told.replace("\\", "")
