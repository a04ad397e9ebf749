"""Every way to split the work is recognised on a recorded sample and has a rule."""

from pathlib import Path

import pytest

import rules
from analyzer.diagnose.answers import plain_answer
from analyzer.ingest.load import load
from analyzer.plugins import offers
from analyzer.rule import Question

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"


def rule(code):
    return next(rule for rule in offers(rules, "check").values() if rule.code == code)


@pytest.mark.parametrize(
    ("system", "sample", "axis", "code"),
    [
        ("tensor-parallel", "recorded/tp2", "tp", "Q301"),
        ("pipeline", "recorded/pp2", "pp", "Q103"),
        ("data-parallel", "recorded/dp2", "dp", "Q104"),
        ("expert", "recorded/ep2", "ep", "Q302"),
        ("position", "recorded/dcp2", "dcp", "Q207"),
        ("collectives", "recorded/cp2", "cp", "Q303"),
    ],
)
def test_a_split_is_recognised_on_its_sample_and_has_a_rule(system, sample, axis, code):
    run = load(SAMPLES / sample)
    assert run.layout.sizes[axis] == 2
    assert plain_answer(Question.SPLIT, run).text.startswith(("dp=2 × ep=2", f"{axis}=2"))
    assert system in rule(code).page.lower()


def test_prefill_and_decode_apart_are_recognised_and_have_rules():
    run = load(SAMPLES / "recorded/pd_end")
    assert "by phase: prefill on ranks 0 and decode on ranks 1" in plain_answer(Question.SPLIT, run).text
    assert [bool(list(rule(code).check(run))) for code in ("Q512", "Q513")] == [True, False]
    assert list(rule("Q511").check(load(SAMPLES / "recorded/pd_recompute")))
