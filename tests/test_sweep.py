"""The sweep command: points from CSV, verdict line, table, JSON, refusals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.commands.sweep import command
from analyzer.errors import ShardscopeError, TraceFormatError, UsageError
from analyzer.sweep.csv_points import read_points
from analyzer.sweep.optimum import Objective, ScalingVerdict
from analyzer.sweep.point import Point, PointSeries
from analyzer.sweep.sweep import SweepRequest, change, headline, sweep, to_json

TEACHING = Path(__file__).resolve().parents[1] / "sample_traces" / "sweep_teaching.csv"


@pytest.fixture
def points(tmp_path):
    """Write a CSV, get the series in it."""

    def read(text):
        path = tmp_path / "points.csv"
        path.write_text(text, encoding="utf-8")
        return read_points(path)

    return read


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


def teaching(objective=Objective.LATENCY, **ask):
    return sweep(read_points(TEACHING)[0], SweepRequest("tp", objective, **ask))


class TestTheTeachingSeries:
    def test_the_verdict_line_names_optimum_price_and_culprit(self):
        assert headline(teaching()) == (
            "latency: optimum TP4; TP8 is past it: +25.0 % (+15.5 % to +35.4 %), "
            "eaten by communication: 25.0 ms more while compute saved 12.5 ms"
        )

    def test_the_json_says_what_the_contract_says(self):
        told = json.loads(to_json((teaching(),)))
        assert told["schema"] == 1
        assert told["dimension"] == "tp"
        assert (told["optimum"]["degree"], told["optimum"]["interval"], told["optimum"]["basis"]) == (
            4,
            [4, 4],
            "measured",
        )
        (past,) = told["past_optimum"]
        assert (past["degree"], past["penalty"], past["eaten_by"]) == (8, 0.25, "communication")
        assert told["predicted"] == []
        assert told["points"][2]["terms"] == {"compute": 25000000, "communication": 25000000, "movement": 0, "sync": 0}
        assert [point["value_ns"] for point in told["points"]] == [100000000, 60000000, 50000000, 62500000]

    def test_per_gpu_the_first_degree_wins_and_both_are_printed(self):
        told = teaching()
        assert [(other.objective, other.best) for other in told.others] == [(Objective.PER_GPU, 1)]

    def test_past_degrees_of_a_budget_are_counted_in_replicas(self):
        told = teaching(Objective.TOTAL, gpus=8)
        assert told.scaling.past == (2, 4, 8)
        assert headline(told).startswith("total throughput of 8 GPUs: optimum TP1")

    def test_the_text_begins_with_the_verdict_and_draws_each_degree(self):
        lines = run(TEACHING).output.splitlines()
        assert lines[0].startswith("latency: optimum TP4; TP8 is past it: +25.0 %")
        drawn = next(line for line in lines if "← optimum" in line)
        assert (drawn.count("█"), drawn.count("▓")) == (15, 15)

    def test_the_text_fits_eighty_columns(self):
        lines = run(TEACHING).output.splitlines()
        assert max(map(len, lines)) <= 80
        assert "tp █ comp. ▓ comm. ▒ move · idle" in lines
        assert "4  25.0 ms 25.0 ms   0 ns   0 ns" in lines

    def test_every_term_that_grew_is_explained(self, points):
        (told,) = points(
            "degree,value_ms,compute_ms,communication_ms,movement_ms,sync_ms\n4,50,25,20,0,5\n8,70,20,35,0,15\n"
        )
        assert json.loads(to_json((sweep(told, SweepRequest()),)))["past_optimum"][0]["mechanisms"] == {
            "communication": "communication grew 1.75x, a ring's bandwidth term only 1.17x: latency of further ranks, "
            "or a slower rung; message sizes and placement would tell which",
            "sync": "more stragglers: a step waits for the latest of 8 ranks, not of 4, 1.38x for random delays",
        }

    def test_markdown_holds_the_verdict_the_table_and_the_balance(self):
        lines = run(TEACHING, "--format", "markdown").output.splitlines()
        assert lines[0].startswith("**latency: optimum TP4; TP8 is past it: +25.0 %")
        assert any(line.startswith("| `TP8` | 62.5 ms | 59.1 ms-66.1 ms | 12.5 ms | 50.0 ms |") for line in lines)
        assert any(line.startswith("- TP4 → TP8: compute -12.5 ms") for line in lines)

    def test_the_command_writes_a_file_once(self, tmp_path):
        out = tmp_path / "sweep.json"
        assert run(TEACHING, "--format", "json", "-o", out).exit_code == 0
        assert json.loads(out.read_text())["optimum"]["degree"] == 4
        with pytest.raises(UsageError, match="exists"):
            run(TEACHING, "-o", out)


class TestPublishedCases:
    @pytest.mark.parametrize(
        ("series", "verdict"),
        [
            (
                "2,5500\n4,3910\n8,3150",
                "latency: optimum at least TP8 (still improving; the last step keeps 62.1 % of linear)",
            ),
            (
                "2,6070\n4,4770\n8,4250",
                "latency: optimum at least TP8 (still improving; the last step keeps 56.1 % of linear)",
            ),
        ],
    )
    def test_vllm_issue_16300(self, points, series, verdict):
        (told,) = points(f"degree,value_ms\n{series}\n")
        assert headline(sweep(told, SweepRequest())) == verdict

    def test_vllm_issue_22331(self, points):
        (told,) = points("degree,tokens_per_s\n1,90\n2,77.5\n4,77.5\n")
        assert headline(sweep(told, SweepRequest())) == (
            "time a token: optimum TP1; TP2 is past it: +16.1 % (+7.3 % to +25.7 %), unexplained: rerun; "
            "TP4 is past it: +16.1 % (+7.2 % to +25.8 %), unexplained: rerun"
        )

    def test_exllamav2_734_and_gpt_fast_111_only_lose(self, points):
        (told,) = points("degree,tokens_per_s\n1,1668.22\n2,210.95\n")
        assert sweep(told, SweepRequest()).scaling.past == (2,)
        (told,) = points("degree,tokens_per_s\n1,29\n2,17\n")
        assert sweep(told, SweepRequest()).scaling.past == (2,)

    def test_decode_context_parallel_changes_its_verdict_with_the_context(self, points):
        read = points(
            "degree,context,tokens_per_s\n1,2048,3936.52\n8,2048,3082.34\n1,9216,5962.17\n8,9216,6869.54\n"
            "1,16384,1519.78\n8,16384,2556.25\n"
        )
        told = tuple(sweep(series, SweepRequest("dcp")) for series in read)
        assert [part.scaling.best for part in told] == [1, 8, 8]
        gains = [part.scaling.standing(1).value_ns / part.scaling.standing(8).value_ns - 1 for part in told]
        assert gains == pytest.approx([-0.217, 0.152, 0.682], abs=0.0005)
        assert (
            change(told)
            == "the best degree changes: DCP1 at context 2,048, DCP8 at context 9,216, DCP8 at context 16,384"
        )

    def test_layouts_of_one_size_are_compared_by_name(self, points):
        read = points(
            "layout,context,value_ms\ntp8,1024,59.43\ntp8dcp8,1024,76.48\ntp8,8192,167.17\ntp8dcp8,8192,141.54\n"
        )
        told = tuple(sweep(series, SweepRequest()) for series in read)
        assert [headline(part) for part in told] == [
            "context 1,024: latency: optimum tp8",
            "context 8,192: latency: optimum tp8dcp8",
        ]
        assert (
            json.loads(to_json(told))["change"]
            == "the best degree changes: tp8 at context 1,024, tp8dcp8 at context 8,192"
        )

    def test_context_parallel_decode_has_no_per_gpu_verdict(self, points):
        (told,) = points("degree,value_ms\n1,59.4\n8,76.5\n")
        assert sweep(told, SweepRequest("dcp")).others == ()
        with pytest.raises(UsageError, match="dcp adds no GPUs"):
            sweep(told, SweepRequest("dcp", Objective.PER_GPU))


class TestNotes:
    def test_a_host_bound_step_is_pointed_out(self, points):
        (told,) = points("degree,value_ms,host_ms\n1,100,5\n2,60,30\n")
        assert sweep(told, SweepRequest()).notes[1] == (
            "degree 2 is host bound: the device waits 50.0 % of the step for launches; use CUDA graphs, then sweep again"
        )

    def test_memory_is_told_from_speed(self, points):
        (told,) = points("degree,value_ms,preemptions\n4,100,37\n8,40,0\n")
        assert sweep(told, SweepRequest()).notes[-1] == (
            "degree 8 is faster than the ranks alone explain (125.0 % of linear): capacity or another load a step, not speed; "
            "preemptions fell from 37 to 0"
        )

    def test_a_knee_of_memory_is_told_from_parallel_efficiency(self, points):
        (told,) = points("degree,value_ms,preemptions,hit_rate\n2,100,90,0.1\n4,30,0,0.5\n8,28,0,0.5\n")
        assert (
            sweep(told, SweepRequest())
            .notes[-1]
            .startswith("degree 4 is a knee of memory: up to it each step also added")
        )

    def test_gpus_of_an_instance_count_where_they_are_not_the_degree(self, points):
        (told,) = points("degree,value_ms,gpus\n1,100,4\n2,60,8\n")
        assert sweep(told, SweepRequest("ep", Objective.TOTAL, gpus=8)).scaling.best == 1
        with pytest.raises(TraceFormatError, match=r"line 3, column gpus: a degree takes one whole number of GPUs"):
            points("degree,value_ms,gpus\n1,100,4\n1,60,8\n")

    def test_runs_far_apart_are_pointed_out(self, points):
        (told,) = points("degree,value_ms\n1,100\n1,115\n2,60\n2,61\n")
        assert sweep(told, SweepRequest()).notes == (
            "runs of degree 1 lie 15.0 % apart; look for throttling or other load",
        )

    def test_terms_that_miss_the_value_are_pointed_out(self, points):
        (told,) = points(
            "degree,value_ms,compute_ms,communication_ms,movement_ms,sync_ms\n1,100,80,0,0,0\n2,60,40,20,0,0\n"
        )
        assert "the terms of degree 1 miss its value by 20.0 %" in sweep(told, SweepRequest()).notes


class TestRefusals:
    def test_one_point_cannot_tell(self, points):
        (told,) = points("degree,value_ms\n4,50\n")
        assert headline(sweep(told, SweepRequest())) == (
            "latency: cannot tell: only degree 4 was measured; measure at least one more"
        )

    def test_a_hump_cannot_tell(self, points):
        (told,) = points("degree,value_ms\n1,198.5\n2,320\n4,102.3\n")
        assert headline(sweep(told, SweepRequest())) == (
            "latency: cannot tell: degree 2 lies above both 1 and 4, a suspect point; measure degree 2 again"
        )
        assert json.loads(to_json((sweep(told, SweepRequest()),)))["optimum"] is None

    def test_too_few_steps_cannot_tell(self, points):
        (told,) = points("degree,value_ms,steps\n1,100,500\n2,60,7\n")
        assert sweep(told, SweepRequest()).scaling.kind is ScalingVerdict.CANNOT_TELL

    def test_mixed_versions_are_not_compared(self, points):
        with pytest.raises(
            UsageError, match=r"version differs, '0\.14' in line 2 and '0\.15' in line 3; sweep one version at a time"
        ):
            points("degree,value_ms,version\n1,100,0.14\n2,60,0.15\n")

    def test_a_directory_without_traces_is_one_line(self, tmp_path):
        with pytest.raises(ShardscopeError) as fault:
            run(tmp_path)
        assert "\n" not in str(fault.value)

    def test_points_and_runs_are_not_mixed(self, tmp_path):
        with pytest.raises(UsageError, match="two things"):
            run(TEACHING, tmp_path)

    def test_a_total_needs_a_budget(self):
        with pytest.raises(UsageError, match="pass --gpus"):
            run(TEACHING, "--objective", "total")


class TestTheReader:
    def test_rows_of_one_degree_are_runs(self, points):
        (series,) = points("degree,value_ms\n2,60\n1,100\n2,61\n")
        assert series.points == (Point(1, (100e6,)), Point(2, (60e6, 61e6)))

    def test_rates_become_time_a_token(self, points):
        (series,) = points("degree,tokens_per_s\n1,1000\n")
        assert (series.points[0].values_ns, series.quantity) == ((1e6,), "time a token")

    def test_a_blank_line_and_a_byte_order_mark_do_not_matter(self, points):
        assert points("\ufeffdegree,value_ms\n\n1,100\n")[0].points == (Point(1, (100e6,)),)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "line 1 has the columns (none); needed are degree (or layout) and one of value_ms and tokens_per_s"),
            ("degree,value\n1,2\n", "line 1 has the columns degree, value; needed are"),
            (
                "degree,value_ms,tokens_per_s\n1,2,3\n",
                "needed are degree (or layout) and one of value_ms and tokens_per_s",
            ),
            ("degree,value_ms,comunication_ms\n1,2,3\n", "line 1 has an unknown column 'comunication_ms'"),
            ("degree,value_ms,value_ms\n1,2,3\n", "line 1 has column 'value_ms' twice"),
            ("degree,value_ms\n", "no row under the header"),
            ("degree,value_ms\n1,2\n2,3,4\n", "line 3 has 3 cells, the header 2"),
            ("degree,value_ms\n1,fast\n", "line 2, column value_ms: 'fast' is not a number above 0"),
            ("degree,value_ms\n1,-3\n", "line 2, column value_ms: '-3' is not a number above 0"),
            ("degree,value_ms\n1,nan\n", "line 2, column value_ms: 'nan' is not a number above 0"),
            ("degree,value_ms\n0,3\n", "line 2, column degree: '0' is not a whole number above 0"),
            ("degree,value_ms\n1.5,3\n", "line 2, column degree: '1.5' is not a whole number above 0"),
            ("degree,value_ms\n1,\n", "line 2, column value_ms or tokens_per_s, is empty"),
            ("layout,value_ms\n,3\n", "line 2, column layout, is empty; name the layout"),
            (
                "degree,value_ms,compute_ms\n1,3,2\n1,3,\n",
                "line 3, column compute_ms: empty, but other runs of degree 1 state it",
            ),
        ],
    )
    def test_a_fault_is_one_line_with_its_place(self, points, text, message):
        with pytest.raises(TraceFormatError) as fault:
            points(text)
        assert message in str(fault.value)
        assert "points.csv" in str(fault.value)
        assert "\n" not in str(fault.value)

    def test_a_missing_file_is_one_line(self, tmp_path):
        with pytest.raises(ShardscopeError, match="not readable as a CSV of points"):
            read_points(tmp_path / "absent.csv")


def test_another_dimension_keeps_its_own_name():
    series = PointSeries("", (Point(1, (100.0,)), Point(2, (80.0,))))
    assert headline(sweep(series, SweepRequest("prefill-instances"))).startswith(
        "latency: optimum at least prefill-instances 2 ("
    )
