"""Rules over several ranks: where they fire on real and recorded runs, and that healthy runs are left alone."""

from functools import cache
from pathlib import Path

import pytest
from rank_traces import trace

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.model.run import Run
from analyzer.plugins import offers
from analyzer.sketch import sketch

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
CORPUS = Path(__file__).resolve().parents[2] / "shared/traces"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BALANCED = """
    layout  tp=2
    message 65536
    engine  vllm
    rank 0 stream 7   GGGTTTGGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA
    rank 0 host       g................|...............|................|................|................
    rank 0 steps      D................|...............|................|................|................
    rank 1 stream 7   GGGTTTGGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA|GGGTTTGGGGGGGGGA
    rank 1 host       g................|...............|................|................|................
    rank 1 steps      D................|...............|................|................|................
"""


@cache
def known():
    return offers(rules, "check")


def found(run, code):
    return [finding for rule in known().values() if rule.code == code for finding in rule.check(run)]


def warnings(run):
    rows = diagnose(run, known().values()).findings
    return [row.rule for row in rows if row.severity != "info"]


def test_well_balanced_tensor_parallel_ranks_in_one_node_get_no_warning():
    assert warnings(sketch.read(BALANCED)) == []


def test_a_healthy_single_device_gets_no_warning():
    assert warnings(load(SAMPLES / "drawn/healthy")) == []


def test_f7_the_one_stalled_call_of_sixty_is_named():
    calls = [
        (REDUCE, 1000.0 * at + (1_050_100 if at > 30 else 0), 1_051_000.0 if at == 30 else 900.0) for at in range(60)
    ]
    (stall,) = found(Run("f7", (trace(0, calls),)), "Q307")
    assert stall.message == "one all_reduce of 60 alike takes 1.05 s on rank 0; the others take 900 µs"
    assert stall.cost_ns == 1_050_100_000


def test_f12_the_published_stage_table_is_not_the_bubble():
    columns = [32, 32, 32, 39]
    rows = []
    for rank, work in enumerate(columns):
        step = ("G" * work).ljust(39, ".")
        rows.append(f"rank {rank} stream 7   {step * 5}")
        rows.append(f"rank {rank} host       {('l' + '.' * 38) * 5}")
        rows.append(f"rank {rank} steps      D{'D' * 38}{('|' + 'D' * 38) * 4}")
    rows = [row.replace("G" * 195, "|".join(["G" * 39] + ["G" * 38] * 4)) for row in rows]
    (finding,) = found(sketch.read("layout  pp=4\n" + "\n".join(rows)), "Q103")
    assert "not the bubble (0.0 %) but the slowest stage (13.5 %): rank 3 works 390 µs" in finding.message


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the fetched trace corpus is not at hand")
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("torchrec_resnet18_2rank", "Q305", "rank 1 is last in 100.0 % of 12 collectives of ranks 0-1"),
        ("torchrec_a2a_optimizer_4rank", "Q305", "rank 2 is last in 100.0 % of 12 collectives of ranks 0-3"),
        ("torchrec_a2a_qcomm_4rank", "Q304", "rank 2 is last in 60.0 % of 30 collectives of ranks 0-3"),
        ("cpu-collected/torch-tp-4", "Q306", "ranks 0-3 wait 25.2 % of the window for whichever comes last"),
    ],
)
def test_a_real_run_is_told_its_straggler(name, code, words):
    assert any(finding.message.startswith(words) for finding in found(load(CORPUS / name), code))


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the fetched trace corpus is not at hand")
def test_idle_steps_of_a_real_replica_that_cost_nothing_are_left_alone():
    assert found(load(CORPUS / "cpu-collected/vllm-serve-dp2"), "Q104") == []


@pytest.mark.parametrize("code", ["Q101", "Q603"])
def test_prefill_and_decode_ranks_are_not_held_against_one_another(code):
    assert found(load(SAMPLES / "recorded/pd1+1"), code) == []
