"""Pipeline stages and experts of drawn and recorded runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.measures.experts.balance import ImbalanceCause
from analyzer.measures.experts.load import expert_loads
from analyzer.measures.stages import stages
from analyzer.model.events import Labels
from analyzer.sketch import sketch

RECORDED = Path(__file__).resolve().parents[1] / "sample_traces/recorded"
CORPUS = Path(__file__).resolve().parents[2] / "shared/traces"
UNEVEN = """
    layout  pp=2
    rank 0 stream 7   GGGG..GGGG..GGGG..GGGG..GGGG..
    rank 0 host       l.....l.....l.....l.....l.....
    rank 0 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
    rank 1 stream 7   GGGGGGGGGGGGGGGGGGGGGGGGGGGGGG
    rank 1 host       l.....l.....l.....l.....l.....
    rank 1 steps      DDDDDD|DDDDD|DDDDD|DDDDD|DDDDD
"""


def test_the_slowest_stage_sets_the_cycle_and_is_not_the_bubble():
    run = sketch.read(UNEVEN.replace("GGGGGGGGGGGGGGGGGGGGGGGGGGGGGG", "GGGGGG|GGGGG|GGGGG|GGGGG|GGGGG"))
    (row,) = stages(run)
    assert row.account.stages_ns == (40_000, 60_000)
    assert (row.account.cycle_ns, row.account.balance) == (60_000, pytest.approx(5 / 6))
    assert (row.bubble_share, row.imbalance_share) == (0, pytest.approx(1 / 6))
    assert row.sentence == (
        "2 stages, balance 83.3 %: not the bubble (0.0 %) but the slowest stage (16.7 %): "
        "rank 1 works 60.0 µs a decode step, the mean stage 50.0 µs"
    )


def test_a_run_without_pipeline_has_no_stages_and_without_experts_no_load():
    run = sketch.read(UNEVEN.replace("pp=2", "tp=2"))
    assert (stages(run), expert_loads(run)) == ((), ())


def test_recorded_stages_rest_in_decode_and_are_in_the_report():
    report = diagnose(load(RECORDED / "pp2"), ())
    assert [row.kind for row in report.scaling.stages] == ["prefill", "decode"]
    prefill, decode = report.scaling.stages
    assert (round(prefill.balance, 2), round(decode.balance, 2)) == (0.95, 0.94)
    assert decode.bubble_share > 0.5 > prefill.bubble_share


@pytest.mark.parametrize(("name", "imbalance"), [("ep2", 1.507), ("ep4", 2.010)])
def test_recorded_expert_counts_show_the_skew_that_was_drawn(name, imbalance):
    (row,) = expert_loads(load(RECORDED / name))
    assert row.load.imbalance == pytest.approx(imbalance, abs=0.001)
    assert (row.load.cause, row.basis.value) == (ImbalanceCause.SKEW, "derived")
    assert row.load.advice[0][-1] == "Rebalance with redundant experts."


def test_split_sizes_count_dispatch_and_leave_the_way_back_out():
    drawn = sketch.read("layout  ep=2\nmessage 4096\n" + "\n".join(f"rank {at} stream 7   GGAA|AGG" for at in (0, 1)))
    there = ("[4, 12];[4, 8]", "[8, 8];[12, 8]")
    back = ("[4, 8];[4, 12]", "[12, 8];[8, 8]")
    traces = []
    for trace, first, second in zip(drawn.traces, there, back, strict=True):
        assert len(trace.collectives) == 2
        records = replace(trace.collectives, operation=Labels.of(["all_to_all"] * 2), splits=Labels.of([first, second]))
        traces.append(replace(trace, collectives=records))
    (row,) = expert_loads(replace(drawn, traces=tuple(traces)))
    # Rank 0 gets 12 rows, rank 1 gets 20: 20 over 16.
    assert (row.source, row.load.imbalance) == ("split sizes of dispatch", pytest.approx(1.25))


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the fetched trace corpus is not at hand")
@pytest.mark.parametrize(("name", "imbalance"), [("sglang_ep8_decode_run1", 1.03), ("lightllm_ep8_decode", 1.04)])
def test_real_decode_over_eight_ranks_is_balanced(name, imbalance):
    (row,) = expert_loads(load(CORPUS / name))
    assert (round(row.load.imbalance, 2), row.load.cause) == (imbalance, ImbalanceCause.BALANCED)
    assert row.source == "time of the experts' products"
    assert np.isfinite(row.exchange_ns)
