"""Recorded runs at several degrees become points, or a refusal that names what differs."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.commands.sweep import command
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.ingest.load import load
from analyzer.schema.breakdown import BreakdownTables, Hidden, RankBreakdown, StepKind, SyncCauses
from analyzer.schema.report import ClockFacts, CollectiveRow, Report, RunFacts, Tool, to_json
from analyzer.sweep.optimum import Objective
from analyzer.sweep.point import Exchange, Memory
from analyzer.sweep.runs import series_of
from analyzer.sweep.sweep import SweepRequest, headline, sweep

MS = 1_000_000
SETTINGS = {"batch": 8, "dtype": "bfloat16", "enforce_eager": 0, "input_tokens": 1024, "model": "/a/Qwen3-8B"}
MODEL = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces" / "cpu-collected"


def steps(compute, communication, *, kind="decode", count=200, gap=0):
    """Steps of so many milliseconds, `gap` milliseconds apart."""
    span = (compute + communication) * MS
    terms = {"compute": compute * MS, "communication": communication * MS, "movement": 0, "sync": 0}
    return StepKind(kind, "annotation", count, span, span, span + gap * MS, terms)


def report(degree, *kinds, message=16384, **facts):
    """A report of one run; `facts` replace those of its run."""
    layout = {"tp": degree, "pp": 1, "cp": 1, "ep": 1, "source": "declared"}
    run = RunFacts(
        label=f"runs/tp{degree}",
        ranks=list(range(degree)),
        world_size=degree,
        layout=layout,
        layout_evidence={},
        engine="vllm",
        role="decode",
        devices=["H100"],
        nodes=1,
        clock=ClockFacts("shared", 0),
        warnings=[],
        wait_method="arrival",
        versions={"vllm": "0.32.0"},
        settings={**SETTINGS, "port": 8000 + degree},
        model=MODEL,
    )
    causes = SyncCauses(0, 0, 10, 0, 0, 0)
    rank = RankBreakdown(0, 100, 50, 40, 0, 10, Hidden(0, 0), causes, {}, 0, 90)
    rows = (
        [CollectiveRow([0, 1], "tp", "all_reduce", 64, message, 20_000, None, None, level="nvlink")]
        if degree > 1
        else []
    )
    tables = BreakdownTables([rank], list(kinds))
    for name, held in (("settings", SETTINGS), ("model", MODEL)):
        facts[name] = {**held, **facts.get(name, {})}
    return Report(1, Tool("shardscope", "0"), replace(run, **facts), tables, rows, [], [], [], [])


TEACHING = (
    report(1, steps(100, 0)),
    report(2, steps(50, 10)),
    report(4, steps(25, 25)),
    report(8, steps(12, 50)),
)


def test_four_runs_make_the_teaching_series():
    told = sweep(series_of(TEACHING, "tp"), SweepRequest())
    assert (told.scaling.best, told.scaling.past) == (4, (8,))
    assert headline(told).startswith("decode steps: latency: optimum TP4; TP8 is past it: +24.0 %")
    assert told.gains[0].mechanism.startswith("latency: messages of 16.0 KiB")


def test_reports_of_one_degree_are_repeats():
    series = series_of((*TEACHING[:1], report(2, steps(50, 10)), report(2, steps(52, 10))), "tp")
    assert series.points[1].values_ns == (60e6, 62e6)
    assert series.points[1].terms_ns["compute"] == 51e6


def test_time_between_steps_counts_as_waiting():
    series = series_of((report(1, steps(100, 0, gap=7)), report(2, steps(50, 10, gap=5))), "tp")
    assert [point.values_ns for point in series.points] == [(107e6,), (65e6,)]
    assert [point.terms_ns["sync"] for point in series.points] == [7e6, 5e6]


def test_spans_are_compared_where_a_period_is_missing():
    alone = replace(steps(50, 10, gap=5), period_ns=None)
    series = series_of((report(1, steps(100, 0, gap=7)), report(2, alone)), "tp")
    assert [point.values_ns for point in series.points] == [(100e6,), (60e6,)]


def test_a_point_knows_its_steps_host_time_and_messages():
    point = series_of((report(2, steps(50, 10)),), "tp").points[0]
    assert (point.steps, point.host_ns) == (200, pytest.approx(6e6))
    assert point.exchange == Exchange(0.32, 16384, "nvlink")


def test_decode_is_compared_where_all_have_it():
    runs = [report(degree, steps(90, 0, kind="prefill", count=900), steps(9, 0)) for degree in (1, 2)]
    assert series_of(tuple(runs), "tp").label == "decode steps"
    assert series_of(tuple(runs), "tp", "prefill").label == "prefill steps"


def test_else_the_kind_that_takes_most_time():
    runs = [report(degree, steps(90, 0, kind="mixed", count=9), steps(9, 0, kind="unknown")) for degree in (1, 2)]
    assert series_of(tuple(runs), "tp").label == "unknown steps"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"engine": "sglang"},
            "engine differs, vllm in runs/tp1 and sglang in runs/tp2; compare runs that differ in tp alone",
        ),
        ({"versions": {"vllm": "0.31.0"}}, "version of vllm differs, 0.32.0 in runs/tp1 and 0.31.0 in runs/tp2"),
        ({"settings": {"batch": 16}}, "setting batch differs, 8 in runs/tp1 and 16 in runs/tp2"),
        (
            {"settings": {"batch": 8, "enforce_eager": 1}},
            "setting enforce_eager differs, 0 in runs/tp1 and 1 in runs/tp2",
        ),
        ({"settings": {"dtype": "float16"}}, "setting dtype differs, bfloat16 in runs/tp1 and float16 in runs/tp2"),
        ({"settings": {"input_tokens": 99}}, "setting input_tokens differs, 1024 in runs/tp1 and 99 in runs/tp2"),
        ({"settings": {"model": "/b/Llama-8B"}}, "model differs, Qwen3-8B in runs/tp1 and Llama-8B in runs/tp2"),
        ({"model": {"hidden_size": 8}}, "hidden_size of the model differs, 4096 in runs/tp1 and 8 in runs/tp2"),
        ({"model": {"num_experts": 64}}, "number of experts differs, 0 in runs/tp1 and 64 in runs/tp2"),
        ({"devices": ["A100"]}, "device differs, H100 in runs/tp1 and A100 in runs/tp2"),
        ({"layout": {"tp": 2, "cp": 2, "source": "declared"}}, "degree of cp differs, 1 in runs/tp1 and 2 in runs/tp2"),
    ],
)
def test_what_differs_is_named(facts, message):
    with pytest.raises(UsageError) as fault:
        series_of((report(1, steps(100, 0)), report(2, steps(50, 10), **facts)), "tp")
    assert str(fault.value).startswith(message)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"num_attention_heads": 6}, "runs/tp4: 6 query heads do not divide by 4; correct layout or model"),
        ({"num_key_value_heads": 6}, "runs/tp4: 6 KV heads neither divide by 4 nor into it; correct layout or model"),
    ],
)
def test_heads_that_do_not_divide_are_refused(model, message):
    with pytest.raises(UsageError, match=message):
        series_of((report(1, steps(100, 0), model=model), report(4, steps(50, 10), model=model)), "tp")


def test_steps_of_pipeline_stages_are_no_series():
    staged = report(4, steps(50, 10), layout={"tp": 1, "pp": 4, "source": "declared"})
    with pytest.raises(
        UsageError, match=r"a step of a pipeline is one micro-batch .* \(pp1 in runs/tp1, pp4 in runs/tp4"
    ):
        series_of((report(1, steps(100, 0)), staged), "pp")


def test_a_step_of_another_number_of_tokens_is_refused():
    few, many = (replace(steps(50, 10), tokens=number) for number in (8, 16))
    with pytest.raises(UsageError, match=r"tokens a step differ, 8 in runs/tp2 and 16 in runs/tp1; a step with more"):
        series_of((report(1, many), report(2, few)), "tp")
    assert len(series_of((report(1, replace(many, tokens=8)), report(2, few)), "tp").points) == 2


def test_what_no_run_states_was_not_compared_and_that_is_said():
    (note,) = series_of((report(1, steps(100, 0)), report(2, steps(50, 10), versions={})), "tp").notes
    assert note == "not recorded in every run, so not compared: version; state them in run.json"


def test_replicated_heads_come_from_the_model_of_the_run():
    runs = tuple(report(degree, steps(compute, 4)) for degree, compute in ((8, 25), (16, 45)))
    (loss,) = sweep(series_of(runs, "tp"), SweepRequest()).gains
    assert loss.mechanism.startswith("replicated state: 8 KV heads over 16 ranks")


class TestLayouts:
    @staticmethod
    def laid(label, time_ms, world=8, **axes):
        return report(world, steps(time_ms, 0), label=label, layout={"tp": 1, "ep": 1, **axes, "source": "declared"})

    def test_one_number_of_gpus_is_a_comparison_of_layouts(self):
        runs = (self.laid("a", 10, tp=8), self.laid("b", 9, tp=4, dp=2, ep=8), self.laid("c", 30, dp=8))
        series = series_of(runs, "layout")
        assert [point.name for point in series.points] == ["tp8", "attention tp4 dp2, experts ep8", "dp8"]
        assert not series.ordered
        told = sweep(series, SweepRequest("layout"))
        assert (told.scaling.best, told.scaling.past) == (2, ())
        assert headline(told) == "decode steps: latency: optimum attention tp4 dp2, experts ep8"

    def test_a_degree_that_adds_no_gpus_is_a_layout_too(self):
        series = series_of((self.laid("a", 10, tp=8), self.laid("b", 20, tp=8, ep=8)), "ep")
        assert [point.name for point in series.points] == ["tp8", "attention tp8, experts ep8"]
        assert series.notes[0] == "all take 8 GPUs: compared as layouts, of which none is past another"

    def test_layouts_of_different_size_are_refused(self):
        with pytest.raises(UsageError, match="a takes 8 GPUs and b 4; layouts are compared on one number of GPUs"):
            series_of((self.laid("a", 10, tp=8), self.laid("b", 20, 4, tp=4)), "layout")

    def test_degrees_that_neither_grow_nor_stay_are_refused(self):
        runs = (self.laid("a", 9, 4, tp=4), self.laid("b", 8, tp=8, ep=2), self.laid("c", 7, tp=8, ep=4))
        with pytest.raises(UsageError, match="ep2 takes 8 GPUs in b and ep4 8 in c; compare degrees whose GPUs grow"):
            series_of(runs, "ep")

    def test_efficiency_and_budget_count_gpus_not_degrees(self):
        runs = tuple(
            self.laid(f"ep{degree}", time_ms, 2 * degree, tp=2 * degree, ep=degree)
            for degree, time_ms in ((1, 100), (4, 50))
        )
        told = sweep(series_of(runs, "ep"), SweepRequest("ep", Objective.TOTAL, gpus=8))
        assert told.scaling.standing(4).efficiency == pytest.approx(0.5)
        assert told.scaling.best == 1
        with pytest.raises(UsageError, match="an instance of 8 GPUs does not fit into 4 GPUs"):
            sweep(series_of(runs, "ep"), SweepRequest("ep", Objective.TOTAL, gpus=4))


def test_memory_that_the_engine_counted_is_told_from_speed():
    memory = ({"preemptions": 37, "queried_tokens": 1000, "cached_tokens": 100}, {"preemptions": 0})
    runs = tuple(
        report(degree, steps(time_ms, 0), memory=told)
        for degree, time_ms, told in ((4, 100, memory[0]), (8, 40, memory[1]))
    )
    told = sweep(series_of(runs, "tp"), SweepRequest())
    assert told.series.points[0].memory == Memory(37, None, 0.1)
    assert told.notes[-1] == (
        "degree 8 is faster than the ranks alone explain (125.0 % of linear): capacity or another load a step, "
        "not speed; preemptions fell from 37 to 0"
    )


def test_ports_and_derived_axes_may_differ():
    derived = {"layout": {"tp": 2, "ep": 2, "source": "metadata"}}
    assert len(series_of((report(1, steps(100, 0)), report(2, steps(50, 10), **derived)), "tp").points) == 2


def test_an_unknown_degree_names_the_cure():
    with pytest.raises(MissingEvidenceError, match=r'the degree of ep is unknown; state it in run.json .*\{"ep": …\}'):
        series_of((report(2, steps(50, 10), layout={"tp": 2, "source": "declared"}),), "ep")


def test_runs_without_a_common_kind_are_refused():
    with pytest.raises(UsageError, match="no kind of step in common"):
        series_of((report(1, steps(9, 0, kind="prefill")), report(2, steps(9, 0))), "tp")


def test_an_absent_kind_names_those_that_are_there():
    with pytest.raises(UsageError, match=r"runs/tp1 has no prefill steps \(there are: decode\)"):
        series_of(TEACHING, "tp", "prefill")


def test_written_reports_are_swept_as_runs_are(tmp_path):
    paths = []
    for told in TEACHING:
        paths.append(tmp_path / f"tp{told.run.world_size}.json")
        paths[-1].write_text(to_json(told), encoding="utf-8")
    shown = CliRunner().invoke(command, [str(path) for path in paths], catch_exceptions=False)
    assert shown.stdout.startswith("decode steps: latency: optimum TP4; TP8 is past it: +24.0 %")


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the fetched trace corpus is not at hand")
def test_seven_recorded_steps_are_no_verdict():
    reports = tuple(diagnose(load(CORPUS / f"vllm-llama-tp{degree}"), ()) for degree in (1, 2))
    told = sweep(series_of(reports, "tp"), SweepRequest())
    assert told.scaling.reason == "degree 1 has 7 steady steps in a single run; record 20 or more, or more runs"
