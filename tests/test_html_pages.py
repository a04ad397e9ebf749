"""The pages of a comparison and of a sweep, read as text; `test_html_browser.py` opens them."""

import re

import pytest
from html_pages import comparison_page, hostile_comparison, hostile_sweep, sweep_page

SIX_MB = 6_000_000


def test_a_comparison_shows_what_changed_and_where_it_went():
    text = comparison_page()
    assert '<p class="verdict">decode step: slower, 10.0 ms → 12.0 ms' in text
    assert "<h3>decode step: +2.00 ms</h3>" in text
    assert '<td>communication</td><td class="n" data-sort="1000000">1.00 ms</td>' in text


def test_a_sweep_shows_its_verdict_and_what_ate_the_gain():
    text = sweep_page()
    assert '<p class="verdict">latency: optimum TP4; TP8 is past it: +25.0 %' in text
    assert "TP4 → TP8: compute -12.5 ms, communication +25.0 ms" in text


@pytest.mark.parametrize("make", [hostile_comparison, hostile_sweep])
def test_every_string_of_a_page_is_escaped(make):
    assert "<img" not in make()


@pytest.mark.parametrize("make", [comparison_page, sweep_page, hostile_comparison, hostile_sweep])
def test_a_page_is_one_file_below_six_megabytes(make):
    text = make()
    assert len(text.encode()) < SIX_MB
    assert re.findall(r"<[^>]* (?:src|href|action)=\"([^\"]*)", text.partition("<script")[0]) == ["data:,"]
