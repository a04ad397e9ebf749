"""The report as annotations of a workflow run."""

from dataclasses import replace
from urllib.parse import unquote

import pytest
from drawn_reports import DRAWINGS, HOSTILE, hostile_report, many_ranks, report_of

from analyzer.render.formats.github import render


def _commands(rendered):
    """Level, title and message of each line, as the runner reads it: the first `::` ends the properties."""
    made = []
    for line in rendered.splitlines():
        head, message = line.removeprefix("::").split("::", 1)
        level, title = head.split(" title=", 1)
        made.append((level, unquote(title), unquote(message)))
    return made


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_verdict_is_a_notice_and_every_finding_an_annotation(name):
    report = report_of(name)
    level = {"error": "error", "warning": "warning", "info": "notice"}
    found = _commands(render(report))
    assert found[0] == ("notice", "shardscope", report.verdict)
    assert sorted(title for _, title, _ in found[1:]) == sorted(f"{row.rule} {row.name}" for row in report.findings)
    assert sorted(each for each, _, _ in found[1:]) == sorted(level[row.severity] for row in report.findings)


def test_percent_signs_survive():
    rendered = render(replace(report_of("ep"), verdict="57.5 % of the window, 100%0A"))
    assert rendered.startswith("::notice title=shardscope::57.5 %25 of the window, 100%250A\n")
    assert _commands(rendered)[0][2] == "57.5 % of the window, 100%0A"


def test_a_hostile_name_starts_no_command_of_its_own():
    rendered = render(hostile_report())
    assert len(rendered.splitlines()) == 1 + len(hostile_report().findings)
    assert all(line.startswith(("::notice title=", "::warning title=")) for line in rendered.splitlines())


def test_a_title_with_separators_stays_a_title():
    report = report_of("ep")
    row = replace(report.findings[0], name=f"a,file=b::{HOSTILE}")
    [_, (_, title, _)] = _commands(render(replace(report, findings=[row])))
    assert title.startswith("Q302 a,file=b::<img")


def test_no_finding_is_dropped_without_a_word():
    found = _commands(render(many_ranks(2, findings=30)))
    assert len([level for level, _, _ in found if level == "warning"]) == 10
    assert found[-1] == ("warning", "shardscope", "25 more of severity warning: see the full report")
