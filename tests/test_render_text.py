"""The report for a terminal, as it is read."""

import re
from pathlib import Path

import pytest
from drawn_reports import DRAWINGS, HOSTILE, hostile_report, many_ranks, report_of

from analyzer.render.formats.text import render

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_report_reads_as_agreed(name, request):
    golden = GOLDENS / f"{name}.txt"
    text = render(report_of(name))
    if request.config.getoption("--goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("name", DRAWINGS)
def test_no_line_is_wider_than_the_terminal(name, width):
    assert max(len(line) for line in render(report_of(name), width).splitlines()) <= width


def test_the_verdict_comes_first():
    report = report_of("tp")
    assert render(report, 400).splitlines()[0] == report.verdict


def test_colour_adds_no_word():
    report = report_of("tp")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", render(report, color=True))
    assert [line.rstrip() for line in plain.splitlines()] == render(report).splitlines()


def test_a_wide_terminal_shows_more_ranks_and_longer_bars():
    narrow, wide = (render(many_ranks(64), width) for width in (80, 160))
    assert "and ranks 8-63" in narrow
    assert "and ranks 16-63" in wide
    assert len(max(wide.split("rung")[0].split(), key=len)) > 50


def test_a_wide_terminal_shows_the_ladder_and_bandwidths():
    text = render(report_of("tp"), 120)
    assert "bus bandwidth" in text
    assert "rung" in text


def test_a_hostile_name_moves_no_cursor_and_starts_no_command():
    text = render(hostile_report())
    assert "\x1b" in HOSTILE
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
