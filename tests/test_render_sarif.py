"""The report as SARIF, for code scanning and its viewers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from drawn_reports import DRAWINGS, HOSTILE, hostile_report, many_ranks, report_of
from jsonschema import Draft4Validator

from analyzer.render.formats.sarif import render

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
REPORTS = {**{name: report_of(name) for name in DRAWINGS}, "hostile": hostile_report(), "64 ranks": many_ranks(64, 20)}


def _run(report):
    return json.loads(render(report))["runs"][0]


def _labelled(label):
    report = report_of("ep")
    return _run(replace(report, run=replace(report.run, label=label)))


@pytest.mark.parametrize("name", REPORTS)
def test_the_log_is_valid_against_the_published_schema(name):
    assert [error.message for error in Draft4Validator(SCHEMA).iter_errors(json.loads(render(REPORTS[name])))] == []


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_finding_is_a_result_and_every_rule_is_described(name):
    report, run = report_of(name), _run(report_of(name))
    rules = run["tool"]["driver"]["rules"]
    assert [result["ruleId"] for result in run["results"]] == [row.rule for row in report.findings]
    assert [rule["id"] for rule in rules] == sorted(row.rule for row in report.rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_severity_becomes_level():
    report = report_of("launch_bound")
    assert [(row.severity) for row in report.findings] == ["warning", "info"]
    assert [result["level"] for result in _run(report)["results"]] == ["warning", "note"]


def test_basis_and_cost_are_properties():
    properties = _run(report_of("ep"))["results"][1]["properties"]
    assert (properties["basis"], properties["cost_ns"]) == ("derived", 30_000)


def test_a_result_points_at_the_ranks_of_its_evidence():
    run = _run(report_of("ep"))
    named = [
        run["logicalLocations"][place["index"]]["name"]
        for place in run["results"][0]["locations"][0]["logicalLocations"]
    ]
    assert named == [f"rank {rank}" for rank in report_of("ep").findings[0].evidence.ranks]


def test_a_rule_that_could_not_be_asked_is_a_notification_with_its_cure():
    notes = _run(report_of("nothing_wrong"))["invocations"][0]["toolExecutionNotifications"]
    note = next(note for note in notes if note["associatedRule"]["id"] == "Q502")
    assert "metrics_before.prom" in note["message"]["text"]


def test_a_relative_path_stays_relative():
    assert _labelled("runs/tp 2")["artifacts"][0]["location"] == {"uri": "runs/tp%202"}


@pytest.mark.parametrize(("label", "uri"), [("/data/tp2", "data/tp2"), ("C:\\data\\tp2", "C%3A/data/tp2")])
def test_an_absolute_path_is_relative_to_the_root(label, uri):
    run = _labelled(label)
    assert run["artifacts"][0]["location"] == {"uri": uri, "uriBaseId": "ROOT"}
    assert run["originalUriBaseIds"] == {"ROOT": {"uri": "file:///"}}


def test_several_places_are_several_artifacts():
    assert [each["location"]["uri"] for each in _labelled("a.json, b.json")["artifacts"]] == ["a.json", "b.json"]


def test_two_renderings_are_the_same():
    assert render(report_of("tp")) == render(report_of("tp"))


def test_a_hostile_name_is_text():
    run = _run(hostile_report())
    assert HOSTILE.replace("\x1b", "\ufffd") in run["results"][0]["properties"]["names"][0]


def test_a_message_holds_no_placeholder_and_no_link():
    report = report_of("ep")
    row = replace(report.findings[0], message="a{0} lambda{1}::b{c} [d](https://e) e[2]")
    text = _run(replace(report, findings=[row]))["results"][0]["message"]["text"]
    assert text.startswith("a{{0}} lambda{{1}}::b{c} \\[d](https://e) e[2]")
