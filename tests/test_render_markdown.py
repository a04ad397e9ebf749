"""The report as a comment on a pull request."""

import re

import pytest
from drawn_reports import DRAWINGS, hostile_report, many_ranks, report_of
from markdown_it import MarkdownIt

from analyzer.render.formats.markdown import code, render, text

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def test_the_verdict_comes_first():
    assert render(report_of("ep")).splitlines()[0] == f"**{report_of('ep').verdict}**"


def test_what_is_not_folded_fits_a_screen():
    shown = re.sub(r"<details>.*?</details>", "", render(report_of("tp")), flags=re.DOTALL)
    assert len([line for line in shown.splitlines() if line]) <= 12


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_finding_has_a_row_and_a_fold(name):
    report = report_of(name)
    rendered = render(report)
    assert all(f"| {row.severity} | {row.rule} {row.name} |" in rendered for row in report.findings)
    assert all(f"<summary>{row.rule} {row.name}</summary>" in rendered for row in report.findings)


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name):
    rendered = render(report_of(name))
    for table in re.findall(r"(?:^\|.*\n)+", rendered, flags=re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_hostile_name_makes_no_tag():
    html = MARKDOWN.render(render(hostile_report()))
    assert set(re.findall(r"<(\w+)", html)) & {"img", "script", "a", "del"} == set()


def test_a_hostile_name_breaks_no_table():
    html = MARKDOWN.render(render(hostile_report()))
    assert html.count("<table>") == MARKDOWN.render(render(report_of("tp"))).count("<table>")
    assert not re.search(r"^\|", re.sub(r"<[^>]+>", "", html), flags=re.MULTILINE)


def test_nobody_is_mentioned():
    outside_code = re.sub(r"(`+).*?\1", "", render(hostile_report()))
    assert not re.search(r"@\w", outside_code)


def test_a_name_with_backticks_stays_one_name():
    assert code("a`b``c") == "```a`b``c```"
    assert code("`a") == "`` `a ``"


def test_prose_with_marks_is_prose():
    assert MARKDOWN.renderInline(text("a_b*c*[d](e)<b>`f`|&lt;")) == "a_b*c*[d](e)&lt;b&gt;`f`|&amp;lt;"


def test_many_ranks_stay_readable():
    rendered = render(many_ranks(512, findings=200))
    assert "and ranks 64-511 in the full report" in rendered
    assert len(rendered) < 65_536  # GitHub takes no longer comment
