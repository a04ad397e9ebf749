"""Recorded runs at several degrees become points, or a refusal that names what differs."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer._sweep_runs import series_of
from analyzer.cli.sweep import command
from analyzer.diagnose import diagnose
from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.ingest.load import load
from analyzer.model.point import Exchange
from analyzer.report import (
    BreakdownTables,
    ClockFacts,
    CollectiveRow,
    Hidden,
    RankBreakdown,
    Report,
    RunFacts,
    StepKind,
    SyncCauses,
    Tool,
    to_json,
)
from analyzer.sweep import Ask, headline, sweep

MS = 1_000_000
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces" / "cpu-collected"


def steps(compute, communication, *, kind="decode", count=200, gap=0):
    """Steps of so many milliseconds, `gap` milliseconds apart."""
    span = (compute + communication) * MS
    terms = {"compute": compute * MS, "communication": communication * MS, "movement": 0, "sync": 0}
    return StepKind(kind, "annotation", count, span, span, span + gap * MS, terms)


def report(degree, *kinds, message=16384, **facts):
    """A report of one run; `facts` replace those of its run."""
    layout = {"tp": degree, "pp": 1, "ep": 1, "source": "declared"}
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
        settings={"batch": 8, "port": 8000 + degree},
    )
    causes = SyncCauses(0, 0, 10, 0, 0, 0)
    rank = RankBreakdown(0, 100, 50, 40, 0, 10, Hidden(0, 0), causes, {}, 0, 90)
    rows = (
        [CollectiveRow([0, 1], "tp", "all_reduce", 64, message, 20_000, None, None, level="nvlink")]
        if degree > 1
        else []
    )
    tables = BreakdownTables([rank], list(kinds))
    return Report(1, Tool("shardscope", "0"), replace(run, **facts), tables, rows, [], [], [], [])


TEACHING = (
    report(1, steps(100, 0)),
    report(2, steps(50, 10)),
    report(4, steps(25, 25)),
    report(8, steps(12, 50)),
)


def test_four_runs_make_the_teaching_series():
    told = sweep(series_of(TEACHING, "tp"), Ask())
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
    assert point.exchange == Exchange(None, 16384, "nvlink")


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
        ({"devices": ["A100"]}, "device differs, H100 in runs/tp1 and A100 in runs/tp2"),
        ({"layout": {"tp": 2, "pp": 2, "source": "declared"}}, "degree of pp differs, 1 in runs/tp1 and 2 in runs/tp2"),
    ],
)
def test_what_differs_is_named(facts, message):
    with pytest.raises(UsageError) as fault:
        series_of((report(1, steps(100, 0)), report(2, steps(50, 10), **facts)), "tp")
    assert str(fault.value).startswith(message)


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
    told = sweep(series_of(reports, "tp"), Ask())
    assert told.scaling.reason == "degree 1 has 7 steady steps in a single run; record 20 or more, or more runs"
