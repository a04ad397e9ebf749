"""The report as a page, read as text; `test_html_browser.py` opens it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from drawn_reports import DRAWINGS, HOSTILE, hostile_report, many_ranks, report_of

from analyzer.render.formats.html import render

SIX_MB = 6_000_000
FREE = {"h1", "p", "li", "td", "th", "strong", "code", "pre", "summary", "title", "em"}


class Page(HTMLParser):
    """Tags with attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags[-1:] and self.tags[-1][0] == "script" and not self.scripts[-1]:
            self.scripts[-1] = data


def _policy(page):
    return next(found["content"] for tag, found in page.tags if tag == "meta" and "http-equiv" in found)


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_page_says_what_the_report_says(name):
    report, text = report_of(name), render(report_of(name))
    assert f'<p class="verdict">{report.verdict}</p>' in text
    assert all(f"{row.id} {row.name}" in text for row in report.questions)
    assert all(f"<strong>{row.rule} {row.name}</strong>" in text for row in report.findings)


def test_nothing_is_loaded_from_elsewhere():
    tags = Page(render(report_of("tp"))).tags
    places = [found[key] for _, found in tags for key in ("src", "href", "action", "data") if key in found]
    assert places == ["data:,"]


def test_the_policy_lets_the_pages_own_scripts_run_and_no_other():
    page = Page(render(report_of("tp")))
    own = [
        script
        for (_, found), script in zip([tag for tag in page.tags if tag[0] == "script"], page.scripts, strict=True)
        if "type" not in found
    ]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in own]
    assert len(own) == 2
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';" in _policy(page)
    assert "unsafe" not in _policy(page).replace("style-src 'unsafe-inline'", "")


def test_the_policy_forbids_every_connection():
    assert _policy(Page(render(report_of("tp")))).startswith("default-src 'none'; ")
    assert "connect-src" not in _policy(Page(render(report_of("tp"))))


def test_a_hostile_name_makes_no_element():
    plain, hostile = Page(render(report_of("tp"))), Page(render(hostile_report()))
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in plain.tags} | FREE
    assert len(hostile.scripts) == 3
    assert not [found for _, found in hostile.tags if set(found) & {"onerror", "onload", "onclick"}]


def test_a_hostile_name_ends_no_script():
    data = json.loads(Page(render(hostile_report())).scripts[0])
    assert data["steps"]["names"] == [f"{HOSTILE}decode".replace("\x1b", "\ufffd")]


def test_columns_without_a_figure_are_left_out():
    assert ">between steps<" not in render(report_of("tp"))
    assert ">not yet launched<" in render(report_of("tp"))


def test_what_else_the_report_holds_is_shown():
    assert re.search(
        r"<summary>load</summary><pre>\{\s+&#34;requests&#34;: 4",
        render(replace(report_of("tp"), extra={"load": {"requests": 4}})),
    )


@pytest.mark.parametrize(("ranks", "findings"), [(64, 20), (64, 500)])
def test_sixty_four_ranks_are_all_shown(ranks, findings):
    text = render(many_ranks(ranks, findings))
    assert len(text.encode()) < SIX_MB
    assert len(json.loads(Page(text).scripts[0])["ranks"]["names"]) == 64


def test_the_page_stays_under_six_megabytes_whatever_the_run():
    report = many_ranks(2048, 200, "<&" * 5000)
    long = replace(report.run, warnings=["<" * 9_000] * 500, settings={f"key {at}": "&" * 9_000 for at in range(500)})
    extra = {f"note {at}": ["<" * 9_000] * 10 for at in range(100)}
    findings = [replace(row, message="'" * 9_000, advice=['"' * 9_000] * 20) for row in report.findings]
    assert len(render(replace(report, run=long, extra=extra, findings=findings)).encode()) < SIX_MB


def test_of_very_many_ranks_the_slowest_and_the_busiest_are_shown():
    report = many_ranks(600)
    window_ns = report.breakdown.per_rank[0].window_ns
    rows = [
        replace(row, compute_ns=window_ns if row.rank == 300 else row.compute_ns) for row in report.breakdown.per_rank
    ]
    names = json.loads(Page(render(replace(report, breakdown=replace(report.breakdown, per_rank=rows)))).scripts[0])[
        "ranks"
    ]["names"]
    assert len(names) == 512
    assert 300 in names
    assert names == sorted(names)
