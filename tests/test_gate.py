"""The gate: one verdict, one exit code, nothing accepted without a reason."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from made_reports import collective, finding, rank, report, step

from analyzer.cli.commands.gate import command
from analyzer.errors import TraceFormatError, UsageError
from analyzer.gate.baseline import baseline, from_json
from analyzer.gate.baseline import to_json as baseline_json
from analyzer.gate.history import Entry, read_history, spread, to_line, trend
from analyzer.gate.metrics import GateVerdict
from analyzer.gate.settings import GateSettings, read_settings
from analyzer.gate.verdict import gate
from analyzer.schema.report import RuleOutcome, to_json

ROOT = Path(__file__).resolve().parents[1]
QUIET = (8.0, 8.05, 7.95)
SLOW = (9.2, 9.25, 9.15)


def runs(compute=QUIET, *, calls=6400, level="nvlink", found=(), communication=1.0, **facts):
    """One run a value of compute, in milliseconds a decode step."""
    return [
        report(
            f"run{at}",
            steps=[step(compute=value, communication=communication)],
            collectives=[collective(calls=calls, level=level)],
            findings=found,
            **facts,
        )
        for at, value in enumerate(compute)
    ]


def judge(base, head, settings=None, **options):
    return gate(head, baseline(base), settings or GateSettings(), **options)


def verdict(result, metric):
    return next(row for row in result.rows if row.metric == metric).verdict


def why(result, metric):
    return next(row for row in result.rows if row.metric == metric).why


def test_equal_runs_pass():
    result = judge(runs(), runs())
    assert (result.verdict, result.exit_code(strict=True)) == (GateVerdict.PASS, 0)


def test_a_slower_step_is_a_regression():
    result = judge(runs(), runs(SLOW))
    assert (result.verdict, result.exit_code(strict=False)) == (GateVerdict.REGRESSION, 1)
    assert result.losses == ("decode.step",)
    assert why(result, "decode.step") == "12.0 % slower, 5.0 % allowed"


def test_a_faster_step_is_improved():
    result = judge(runs(SLOW), runs())
    assert (result.verdict, result.exit_code(strict=True)) == (GateVerdict.IMPROVED, 0)


def test_one_run_a_side_is_undecided_and_fails_only_when_strict():
    result = judge(runs((8.0,)), runs((9.2,)))
    assert result.verdict is GateVerdict.UNDECIDED
    assert (result.exit_code(strict=False), result.exit_code(strict=True)) == (0, 1)
    assert why(result, "decode.step") == "looks 12.0 % slower, but 1 run a side cannot prove a change"


def test_undecided_says_the_smallest_change_that_could_have_been_seen():
    assert why(judge(runs((8.0,)), runs((8.0,))), "decode.step") == (
        "1 run a side cannot prove a change; a rise of 13.4 % would have been seen"
    )


def test_runs_that_scatter_too_much_decide_nothing():
    wild = (7.0, 8.0, 9.2)
    result = judge(runs(wild), runs(wild))
    assert result.verdict is GateVerdict.UNDECIDED
    assert why(result, "decode.step").startswith("runs scatter too much: only a rise of ")


def test_a_hint_with_three_runs_is_undecided():
    result = judge(runs(), runs((8.4, 8.45, 8.35)))
    assert verdict(result, "decode.step") is GateVerdict.UNDECIDED
    assert why(result, "decode.step").startswith("may be 4.0 % slower, not proven; a rise of ")


def test_an_exact_quantity_needs_no_repeats():
    result = judge(runs((8.0,)), runs((8.0,), calls=9600))
    assert result.verdict is GateVerdict.REGRESSION
    assert result.losses == ("calls.tp.all_reduce", "bytes.tp.all_reduce")


def test_one_percent_of_calls_is_the_edge_of_a_recording():
    assert verdict(judge(runs(), runs(calls=6450)), "calls.tp.all_reduce") is GateVerdict.PASS


def test_calls_that_vary_between_repeats_are_not_exact():
    base = runs()
    base[1] = replace(base[1], collectives=[collective(calls=6000)])
    assert verdict(judge(base, runs(calls=6200)), "calls.tp.all_reduce") is GateVerdict.UNDECIDED


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("node", "network", GateVerdict.REGRESSION),
        ("node", "peer", GateVerdict.IMPROVED),
        ("peer", "node", GateVerdict.PASS),
        ("nvlink", "rdma", GateVerdict.REGRESSION),
        ("rdma", "nvlink", GateVerdict.IMPROVED),
        ("nvlink", "new", GateVerdict.REGRESSION),
    ],
)
def test_a_farther_rung_is_a_regression(before, after, expected):
    assert verdict(judge(runs(level=before), runs(level=after)), "rung.tp.all_reduce") is expected


def test_communication_that_appears_is_a_regression():
    result = judge(runs(communication=0.0), runs(communication=2.0))
    assert verdict(result, "decode.communication") is GateVerdict.REGRESSION


def test_a_part_below_one_percent_of_the_step_decides_nothing():
    result = judge(runs(communication=0.02), runs(communication=0.06))
    assert why(result, "decode.communication") == "below 1.0 % of the step on both sides"


def test_less_than_fifty_microseconds_are_ignored():
    def short(compute):
        return [report(steps=[step(compute=value, communication=0, movement=0, sync=0)]) for value in compute]

    result = judge(short((0.2, 0.2, 0.2)), short((0.24, 0.24, 0.24)))
    assert verdict(result, "decode.step") is GateVerdict.PASS


@pytest.mark.parametrize(
    ("facts", "listed"),
    [
        ({"engine": "sglang"}, "engine vllm → sglang"),
        ({"devices": ["NVIDIA H200"]}, "device NVIDIA H100 → NVIDIA H200"),
        ({"settings": {"batch": 16, "port": 8000}}, "setting batch 8 → 16"),
        ({"layout": {"tp": 1, "pp": 2, "source": "declared"}}, "layout tp 2 → 1, layout pp 1 → 2"),
    ],
)
def test_another_workload_is_not_comparable(facts, listed):
    result = judge(runs(), runs(**facts))
    assert (result.verdict, result.exit_code(strict=False)) == (GateVerdict.NOT_COMPARABLE, 2)
    assert result.notes[0] == (
        f"not the workload of the baseline: {listed}; pass --allow-different to compare all the same"
    )


def test_calls_and_bytes_are_gated_only_where_the_recordings_hold_equal_work():
    other = [step(count=80), step("prefill", compute=80.0, count=20)]
    base = [replace_steps(made, [step(count=90), step("prefill", compute=80.0, count=10)]) for made in runs()]
    result = judge(base, [replace_steps(made, other) for made in runs(calls=9600)])
    assert not any(row.metric.startswith(("calls.", "bytes.")) for row in result.rows)
    assert "the recordings hold other mixes of steps or tokens: calls, bytes, moved are not gated" in result.notes


def test_other_batches_leave_calls_gated_and_bytes_not():
    head = [replace_steps(made, [step(requests=8 + at % 2)]) for at, made in enumerate(runs())]
    base = [replace_steps(made, [step(requests=9)]) for made in runs()]
    metrics = [row.metric for row in judge(base, head).rows]
    assert "calls.tp.all_reduce" in metrics
    assert "bytes.tp.all_reduce" not in metrics


def test_another_workload_is_compared_when_told_so():
    assert judge(runs(), runs(engine="sglang"), allow_different=True).verdict is GateVerdict.PASS


def test_another_version_is_what_a_gate_is_for():
    result = judge(runs(), runs(versions={"vllm": "0.33.0"}))
    assert result.verdict is GateVerdict.PASS
    assert [part.what for part in result.differences] == ["version vllm"]


def test_a_phase_that_was_not_recorded_is_not_comparable():
    base = [replace_steps(made, [step(), step("prefill", compute=80.0)]) for made in runs()]
    result = judge(base, runs())
    assert (result.verdict, why(result, "prefill.step")) == (
        GateVerdict.NOT_COMPARABLE,
        "3 runs of the head without prefill steps: run0, run1, run2",
    )


def replace_steps(made, steps):
    return replace(made, breakdown=replace(made.breakdown, steps=steps))


def test_another_batch_is_not_comparable():
    head = [replace_steps(made, [step(requests=16)]) for made in runs()]
    assert why(judge(runs(), head), "decode.step") == "its steps hold 8 requests in the baseline and 16 now"


def test_a_run_without_steps_cannot_be_gated():
    bare = [report(steps=[], collectives=[], ranks=[rank()])]
    assert judge(bare, bare).verdict is GateVerdict.NOT_COMPARABLE


def test_a_new_finding_is_listed_and_fails_when_asked_to():
    head = runs(found=[finding("Q301")])
    assert judge(runs(), head).verdict is GateVerdict.PASS
    result = judge(runs(), head, GateSettings(fail_on_new="warning"))
    assert (result.verdict, result.losses) == (GateVerdict.REGRESSION, ("Q301",))


def test_a_finding_that_grew_graver_is_new():
    base, head = runs(found=[finding(severity="info")]), runs(found=[finding(severity="error")])
    assert [(row.severity, row.was) for row in judge(base, head).findings] == [("error", "info")]


def test_a_finding_of_one_run_in_three_is_chance():
    head = runs()
    head[0] = replace(head[0], findings=[finding()])
    assert judge(runs(), head, GateSettings(fail_on_new="info")).findings == ()


def test_an_ignored_finding_passes_with_its_reason():
    settings = GateSettings(fail_on_new="warning", ignored={"Q301": "two-node decode, accepted in #41"})
    result = judge(runs(), runs(found=[finding()]), settings)
    assert result.verdict is GateVerdict.PASS
    assert result.findings[0].accepted == "two-node decode, accepted in #41"


def test_an_ignored_metric_passes_with_its_reason():
    result = judge(runs(), runs(SLOW), GateSettings(ignored={"decode.step": "a larger model"}))
    assert result.verdict is GateVerdict.PASS
    assert next(row for row in result.rows if row.metric == "decode.step").accepted == "a larger model"


def test_a_stale_entry_is_a_warning():
    known = [replace(made, rules=[RuleOutcome("Q301", "a", 3, "clean")]) for made in runs()]
    settings = GateSettings(ignored={"Q301": "gone", "Q999": "never"}, least={"decode.stepp": 0.1})
    assert judge(runs(), known, settings).notes == (
        "ignore Q301 is stale: no run has this finding any more",
        "ignore Q999 is stale: no such rule or metric",
        "the threshold of decode.stepp is stale: no such metric",
    )


def test_thresholds_are_per_metric():
    assert judge(runs(), runs(SLOW), GateSettings(least={"decode.step": 0.3})).verdict is GateVerdict.PASS
    assert judge(runs(), runs(SLOW), GateSettings(least={"decode.compute": 0.05})).losses == (
        "decode.step",
        "decode.compute",
    )
    assert not any(
        row.metric == "decode.step" for row in judge(runs(), runs(), GateSettings(least={"decode.step": None})).rows
    )


def test_settings_are_read_from_either_file():
    text = """
        {0}gate]
        default = 0.04
        decode.step = 0.03
        "calls.tp.all_reduce" = false
        fail-on-new = "warning"
        {0}ignore]
        Q301 = "two-node decode, accepted in #41"
    """
    expected = GateSettings(
        {"decode.step": 0.03, "calls.tp.all_reduce": None},
        0.04,
        "warning",
        {"Q301": "two-node decode, accepted in #41"},
    )
    assert read_settings(text.replace("{0}", "["), "shardscope.toml") == expected
    assert read_settings(text.replace("{0}", "[tool.shardscope."), "pyproject.toml") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[gate]\ndecode.step = 5", "decode.step = 5; write the share by which it must change, 0.05 for 5 %"),
        ("[gate]\ndefault = false", "default = False; write the share"),
        ("[gate]\nfail-on-new = 'all'", "fail-on-new = 'all' is none of info, warning, error"),
        ("[ignore]\nQ301 = ''", "ignore Q301 needs a reason"),
        ("gate = 1", "gate is no table"),
        ("[gate", "no TOML"),
    ],
)
def test_wrong_settings_are_one_clear_line(text, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        read_settings(text, "shardscope.toml")


def test_a_baseline_keeps_fractions_and_words():
    made = runs(calls=6433)
    assert from_json(baseline_json(baseline(made)).encode(), "b.json") == baseline(made)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"schema": 1, "tool": "0", "facts": {}, "runs": []}', b"[1]"])
def test_a_damaged_baseline_is_one_clear_line(text):
    with pytest.raises(TraceFormatError, match=r"^b\.json: .* --update-baseline"):
        from_json(text, "b.json")


def entries(*means, scatter=0.0):
    return [
        Entry(
            1,
            f"2026-01-{at + 1:02}",
            f"c{at}",
            "pass",
            {"decode.step": [mean * (1 - scatter), mean, mean * (1 + scatter)]},
        )
        for at, mean in enumerate(means)
    ]


def test_history_is_read_back():
    told = entries(10e6, 11e6)
    assert read_history("".join(map(to_line, told)), "h.jsonl") == tuple(told)


def test_a_damaged_line_of_the_history_is_named():
    with pytest.raises(TraceFormatError, match=r"h\.jsonl, line 2: no entry of a gate"):
        read_history(f"{to_line(entries(1.0)[0])}{{\n", "h.jsonl")


def test_a_jump_is_found_where_it_happened():
    found = trend(entries(10, 10.1, 9.9, 10, 11.2, 11.1, 11.3, 11.2), "decode.step")
    assert (found.jump[0], round(found.jump[1], 2), found.drift) == ("c4", 1.12, None)


def test_a_drift_is_no_jump():
    found = trend(entries(10, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 10.7), "decode.step")
    assert (found.jump, round(found.drift, 3)) == (None, 1.01)


def test_a_steady_metric_has_no_course():
    found = trend(entries(10, 10.1, 9.9, 10, 10.05, 9.95, 10.1, 10), "decode.step")
    assert (found.jump, found.drift) == (None, None)


def test_a_noisy_past_raises_what_must_change():
    past = entries(10e6, 10e6, 10e6, scatter=0.08)
    assert spread(past, "decode.step") == pytest.approx(0.08, rel=0.01)
    assert judge(runs(), runs(SLOW), history=past).verdict is not GateVerdict.REGRESSION


def test_a_noisy_past_excuses_no_blindness():
    past = entries(10e6, 10e6, 10e6, scatter=0.2)
    assert why(judge(runs(), runs(), history=past), "decode.step") == (
        "runs scatter too much: only a rise of 42.7 % would have been seen"
    )


def test_two_gates_tell_no_spread():
    assert spread(entries(10, 10, scatter=0.08), "decode.step") is None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Saved reports of a baseline (b0…), of slow runs (s0…) and of another engine (e0…)."""
    for letter, made in (("b", runs()), ("s", runs(SLOW, found=[finding()])), ("e", runs(engine="sglang"))):
        for at, one in enumerate(made):
            (tmp_path / f"{letter}{at}.json").write_text(to_json(one), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words):
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def three(letter):
    return [f"{letter}{at}.json" for at in range(3)]


def made_baseline():
    assert call(*three("b"), "--baseline", "base.json", "--update-baseline").exit_code == 0


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "github"])
@pytest.mark.parametrize(("letter", "code"), [("b", 0), ("s", 1), ("e", 2)])
@pytest.mark.usefixtures("folder")
def test_the_exit_code_is_the_same_in_every_form(form, letter, code):
    made_baseline()
    done = call(*three(letter), "--baseline", "base.json", "--format", form)
    assert done.exit_code == code
    assert done.stdout


@pytest.mark.usefixtures("folder")
def test_without_a_baseline_the_cure_is_named():
    with pytest.raises(UsageError, match=r"base\.json is not there; write the first baseline with --update-baseline"):
        call(*three("b"), "--baseline", "base.json")


@pytest.mark.usefixtures("folder")
def test_a_loss_becomes_the_baseline_only_with_a_reason():
    made_baseline()
    with pytest.raises(UsageError, match=r"the runs lose against base\.json \(decode\.step\); say why"):
        call(*three("s"), "--baseline", "base.json", "--update-baseline")
    assert call(*three("s"), "--baseline", "base.json").exit_code == 1
    assert (
        call(*three("s"), "--baseline", "base.json", "--update-baseline", "--reason", "larger vocabulary").exit_code
        == 0
    )
    assert call(*three("s"), "--baseline", "base.json").exit_code == 0
    kept = json.loads(Path("base.json").read_text())
    assert kept["accepted"] == [{"reason": "larger vocabulary", "metrics": ["decode.step"]}]


@pytest.mark.usefixtures("folder")
def test_new_findings_fail_by_option_or_by_table():
    Path("shardscope.toml").write_text('[gate]\ndefault = 0.5\nfail-on-new = "warning"\n')
    made_baseline()
    assert call(*three("s"), "--baseline", "base.json").exit_code == 1
    Path("shardscope.toml").write_text('[gate]\ndefault = 0.5\n[ignore]\nQ301 = "known"\n')
    done = call(*three("s"), "--baseline", "base.json", "--fail-on-new", "info")
    assert done.exit_code == 0
    assert "accepted: known" in done.stdout


@pytest.mark.usefixtures("folder")
def test_history_is_appended_and_shown():
    made_baseline()
    for at in range(4):
        call(*three("b"), "--baseline", "base.json", "--history", "h.jsonl", "--label", f"c{at}")
    for at in range(3):
        done = call(*three("s"), "--baseline", "base.json", "--history", "h.jsonl", "--label", f"d{at}")
    assert len(Path("h.jsonl").read_text().splitlines()) == 7
    assert "decode.step jumped by +12.0 % at d0, over 7 gates" in done.stdout


@pytest.mark.usefixtures("folder")
def test_several_forms_come_from_one_reading():
    made_baseline()
    call(*three("s"), "--baseline", "base.json", "--also", "junit=out.xml", "--also", "markdown=out.md")
    assert ET.parse("out.xml").getroot().get("failures") == "1"
    assert Path("out.md").read_text().startswith("### ❌ regression in decode.step (3 runs against 3)\n")


@pytest.mark.usefixtures("folder")
def test_junit_fails_what_is_undecided_only_when_strict():
    made_baseline()
    counts = []
    for words in ([], ["--strict"]):
        root = ET.fromstring(call("b0.json", "--baseline", "base.json", "--format", "junit", *words).stdout)
        counts.append((root.get("failures"), root[0].get("skipped")))
    assert counts == [("0", "3"), ("3", "0")]


@pytest.mark.usefixtures("folder")
def test_annotations_escape_what_would_act():
    made_baseline()
    shown = call(*three("s"), "--baseline", "base.json", "--format", "github").stdout
    assert shown.splitlines()[0] == "::error title=gate::regression in decode.step (3 runs against 3)"
    assert "12.0 %25 slower" in shown


@pytest.mark.usefixtures("folder")
def test_the_text_fits_80_columns():
    made_baseline()
    shown = call(*three("s"), "--baseline", "base.json").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith("regression in decode.step (3 runs against 3)\n")


@pytest.mark.usefixtures("folder")
def test_a_reason_without_an_update_is_refused():
    with pytest.raises(UsageError, match="pass --update-baseline with it"):
        call(*three("b"), "--baseline", "base.json", "--reason", "x")
