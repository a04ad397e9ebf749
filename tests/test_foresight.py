"""What one run lets expect: classes of a drawn or recorded step, the range, the refusals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.commands.sweep import command
from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.ingest.load import load
from analyzer.render.whatif import markdown as foresight_markdown
from analyzer.sketch import sketch
from analyzer.whatif.foresight import foresee, to_json
from analyzer.whatif.step_classes import step_of
from analyzer.whatif.time_classes import ScalingBehavior

RECORDED = Path(__file__).resolve().parents[1] / "sample_traces/recorded"
H100 = "NVIDIA H100 80GB HBM3"
STEPS = """
    layout  tp=2
    message 65536
    engine  vllm
    model   num_attention_heads=8 num_key_value_heads=4 hidden_size=4096 num_hidden_layers=4
    rank 0 stream 7   GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.
    rank 0 host       lll.....lll.....lll.....lll.....lll.....
    rank 0 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
    rank 1 stream 7   GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.
    rank 1 host       lll.....lll.....lll.....lll.....lll.....
    rank 1 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
"""


def drawn(*changes):
    text = STEPS
    for old, new in changes:
        text = text.replace(old, new)
    return sketch.read(text)


def test_the_classes_of_a_step_sum_to_the_time_from_start_to_start():
    step = step_of(drawn(), 2)
    assert {part.name: (part.sort, part.time_ns, part.calls) for part in step.classes} == {
        "gemm": (ScalingBehavior.GEMM, 40_000, 1),
        "norm": (ScalingBehavior.REPLICATED, 10_000, 1),
        "all_reduce": (ScalingBehavior.COLLECTIVE, 20_000, 1),
        "between steps": (ScalingBehavior.REPLICATED, 10_000, 1),
    }
    assert step.step_ns == 80_000


def test_a_collective_knows_its_message_and_a_run_its_heads():
    step = step_of(drawn(), 2)
    assert next(part.message_bytes for part in step.classes if part.name == "all_reduce") == 65_536
    assert (step.facts.query_heads, step.facts.kv_heads, step.facts.added_calls) == (8, 4, 8.0)


def test_the_step_is_expected_as_a_range_around_its_classes():
    found = foresee(drawn(), "tp", 4, platform=H100)
    # 3 µs of the product stay, 37 µs halve; on four ranks of an H100 the reduction takes longer than on two.
    then = {part.name: then_ns for part, then_ns in found.classes}
    assert (then["gemm"], then["norm"], then["between steps"]) == (21_500, 10_000, 10_000)
    assert 20_000 < then["all_reduce"] < 40_000
    assert found.expectation.low_ns < sum(then.values()) < found.expectation.high_ns


@pytest.mark.parametrize(
    ("run", "wish", "message"),
    [
        (drawn(), ("tp", 16), "degree 16 is more than four times away from 2; measure one in between"),
        (drawn(), ("tp", 2), "degree 2 is the one that was measured; ask for another"),
        (drawn(), ("pp", 4), "record the same load at two degrees of pp and sweep them"),
        (drawn(("layout  tp=2", "layout  tp=2 pp=2")), ("tp", 4), "is split by pp=2 too"),
        (drawn(("heads=8", "heads=6")), ("tp", 4), "6 query heads do not divide by 4"),
        (drawn(("GGGGNAA", "UUUUNAA")), ("tp", 4), "50.0 % of the step is in classes that nothing scales"),
    ],
)
def test_what_cannot_be_expected_is_refused_in_one_sentence(run, wish, message):
    with pytest.raises(UsageError, match=message):
        foresee(run, *wish, platform=H100)


def test_a_step_that_waits_for_the_host_is_refused():
    late = drawn(("GGGGNAA.", "GG.....A"), ("lll.....", "l......l"))
    with pytest.raises(UsageError, match="the device waits for the host"):
        foresee(late, "tp", 4)


def test_a_run_without_the_kind_of_step_says_so():
    with pytest.raises(MissingEvidenceError, match="the run has no prefill steps"):
        foresee(drawn(), "tp", 4, kind="prefill")


def test_links_that_nobody_measured_are_to_be_named():
    run = load(RECORDED / "tp2")
    with pytest.raises(UsageError, match="name a device that has like ones with --platform"):
        foresee(run, "tp", 4)
    assert foresee(run, "tp", 4, platform="L40S").expectation.direction == ""


def test_json_marks_the_prediction_as_a_model():
    told = json.loads(to_json(foresee(drawn(), "tp", 4, platform=H100)))
    assert (told["optimum"], told["predicted"][0]["degree"], told["predicted"][0]["basis"]) == (None, 4, "model")
    assert {part["basis"] for part in told["ceilings"]} <= {"derived", "model"}


def test_the_command_prints_range_classes_and_bounds():
    shown = (
        CliRunner()
        .invoke(command, [str(RECORDED / "tp2"), "--what-if", "tp=4", "--platform", "L40S"], catch_exceptions=False)
        .stdout
    )
    assert shown.startswith("expected at TP4 from one run: ")
    assert "doubling to TP4 saves at most" in shown
    assert "without waits: at most" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("wish", ["tp", "tp=", "tp=0", "tp=x"])
def test_a_wish_without_a_degree_is_named(wish):
    with pytest.raises(UsageError, match="say the axis and the degree"):
        CliRunner().invoke(command, [str(RECORDED / "tp2"), "--what-if", wish], catch_exceptions=False)


def test_the_recorded_step_of_four_ranks_lies_in_the_range_that_two_let_expect():
    told = foresee(load(RECORDED / "tp2"), "tp", 4, platform="L40S").expectation
    measured = step_of(load(RECORDED / "tp4"), 4)
    assert told.low_ns < measured.step_ns < told.high_ns


def test_markdown_folds_the_classes_and_calls_bounds_bounds():
    found = foresee(drawn(), "tp", 4, platform=H100)
    lines = foresight_markdown.render(found).splitlines()
    assert lines[0].startswith("**expected at TP4 from one run: ")
    assert "Upper bounds, not promises:" in lines
    assert any(line.startswith("| `gemm` | 40.0 µs | 21.5 µs | divided") for line in lines)
