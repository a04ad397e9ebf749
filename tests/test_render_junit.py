"""The report as JUnit XML, for CI systems that show tests."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from drawn_reports import DRAWINGS, HOSTILE, hostile_report, many_ranks, report_of

from analyzer.render.formats.junit import render

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")
REPORTS = {**{name: report_of(name) for name in DRAWINGS}, "hostile": hostile_report(), "64 ranks": many_ranks(64, 20)}


@pytest.mark.parametrize("name", REPORTS)
def test_the_file_is_valid_against_the_published_schema(name):
    SCHEMA.validate(render(REPORTS[name]))


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_question_is_a_suite_and_every_rule_a_case(name):
    root = ET.fromstring(render(report_of(name)))
    assert [suite.get("name") for suite in root] == [
        "1 split",
        "2 locality",
        "3 communication",
        "4 topology",
        "5 reuse",
        "6 reversal",
    ]
    assert sorted(case.get("name") for case in root.iter("testcase")) == [
        f"{row.rule} {row.name}" for row in report_of(name).rules
    ]


def test_warnings_fail_and_remarks_do_not():
    cases = {case.get("name")[:4]: case for case in ET.fromstring(render(report_of("launch_bound"))).iter("testcase")}
    assert cases["Q602"].find("failure").get("type") == "warning"
    assert cases["Q201"].find("failure") is None
    assert "1 copy between host and device" in cases["Q201"].findtext("system-out")


def test_an_unknown_rule_is_skipped_with_its_cure():
    cases = {case.get("name")[:4]: case for case in ET.fromstring(render(report_of("nothing_wrong"))).iter("testcase")}
    assert "metrics_before.prom" in cases["Q502"].find("skipped").get("message")


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_counts_are_those_of_the_cases(name):
    root = ET.fromstring(render(report_of(name)))
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert int(root.get("failures")) == sum(
        row.outcome == "found" and _fails(name, row) for row in report_of(name).rules
    )


def _fails(name, rule):
    return any(row.rule == rule.rule and row.severity != "info" for row in report_of(name).findings)


def test_several_findings_of_a_rule_are_one_failure():
    report = report_of("ep")
    again = [replace(report.findings[0], message="again, elsewhere")] * 2
    [failure] = ET.fromstring(render(replace(report, findings=[report.findings[0], *again]))).iter("failure")
    assert failure.get("message").endswith("(and 2 more findings)")
    assert failure.text.count("again, elsewhere") == 2


def test_a_hostile_name_is_text():
    root = ET.fromstring(render(hostile_report()))
    assert {element.tag for element in root.iter()} <= {
        "testsuites",
        "testsuite",
        "properties",
        "property",
        "testcase",
        "failure",
        "skipped",
        "system-out",
    }
    assert HOSTILE.replace("\x1b", "\ufffd") in root[0].find("properties/property").get("value")
