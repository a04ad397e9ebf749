"""Who waits for whom, as every form of the report shows it."""

import json

import pytest
import test_waits
from step_traces import Recorder
from test_render_html import Page

import rules
from analyzer._waiting_rows import waiting_table
from analyzer.diagnose import diagnose
from analyzer.model.run import Run
from analyzer.plugins import offers
from analyzer.render import html, markdown, text
from analyzer.report import from_json, to_json


def _run():
    """Rank 1 comes 30 µs late at each of 200 reductions, its product takes so much longer."""
    return Run("two", (test_waits._trace(0, test_waits._steps(0)), test_waits._trace(1, test_waits._steps(30))))


@pytest.fixture(scope="module")
def report():
    return diagnose(_run(), offers(rules, "check").values())


def test_a_late_rank_has_its_frequency_against_chance_its_lateness_and_its_reasons():
    (late,) = waiting_table(_run()).late
    assert (late.group, late.rank, late.calls, late.last_share, late.chance) == ([0, 1], 1, 200, 1.0, 0.5)
    assert late.p_value == pytest.approx(0.5**200)
    assert (late.median_late_ns, late.p90_late_ns, late.caused_ns) == (30_000, 30_000, 6_000_000)
    assert late.own_ns == 6_000_000
    assert (late.is_persistent, late.is_own, late.more_tokens) == (True, True, None)
    assert [(reason.doing, reason.name, reason.excess_ns) for reason in late.reasons] == [
        ("compute", "", 30_000),
        ("compute", test_waits.GEMM, 30_000),
    ]
    assert late.reasons[0].correlation == pytest.approx(1.0)


def test_a_group_is_told_by_both_methods_and_their_agreement():
    (group,) = waiting_table(_run()).groups
    assert (group.collectives, group.complete_share, group.matched) == (200, 1.0, "order and common ends")
    assert group.wait_by_arrival_ns == group.wait_by_shortest_ns == 3_000_000
    assert group.transfer_by_arrival_ns == group.transfer_by_shortest_ns
    assert (group.used, group.agrees, group.verdict) == ("arrival", True, "mixed")


def test_the_pairs_of_ranks_are_who_waited_for_whom():
    waiting = waiting_table(_run())
    assert [(pair.rank, pair.last, pair.wait_ns) for pair in waiting.pairs] == [(0, 1, 6_000_000)]
    assert waiting.unlisted_pairs_ns == 0


def test_a_rank_alone_says_what_is_missing():
    waiting = waiting_table(Run("one", (test_waits._trace(0, test_waits._steps(0)),)))
    assert (waiting.groups, waiting.late, waiting.pairs) == ([], [], [])
    assert waiting.missing.startswith("one rank's trace alone cannot tell waiting from transfer")


def test_json_brings_waiting_back(report):
    written = to_json(report)
    assert json.loads(written)["waiting"]["late"][0]["rank"] == 1
    assert from_json(written, "here").waiting == report.waiting


def test_text_names_the_late_rank_within_eighty_columns(report):
    shown = text.render(report)
    told = " ".join(shown.split())
    assert "rank 1 is last in 100.0 % of 200 calls (chance 50.0 %, p < 0.0001; persistent), by 30.0 µs" in told
    assert "the others wait 6.00 ms for it: computes 30.0 µs longer a call, correlation 1.00" in told
    assert max(map(len, shown.splitlines())) <= 80


def test_markdown_has_groups_and_late_ranks(report):
    shown = markdown.render(report)
    assert "| ranks 0-1 | 200 | order and common ends | 100.0 % | 3.00 ms | 3.00 ms | yes | mixed" in shown
    assert "1. ranks 0-1: rank 1 is last in 100.0 % of 200 calls" in shown


def test_the_page_draws_who_waits_for_whom(report):
    page = Page(html.render(report))
    charts = next(json.loads(script) for script in page.scripts if script.startswith("{"))
    assert charts["waits"] == {"names": [0, 1], "values": [[0, 6_000_000], [0, 0]]}
    assert {"chart-waits", "groups", "late"} <= {found.get("id") for _, found in page.tags}


def test_a_late_rank_whose_steps_hold_more_tokens_has_unequal_work():
    def rank(tokens, product_us):
        recorder = Recorder()
        for _ in range(20):

            def work():
                recorder.launch("gemm", us=product_us, late=0).launch("reduce", us=400 - product_us, late=0)

            recorder.annotate(f"step[DECODE bs=8 toks={tokens}]", work).catch_up()
        return recorder

    run = Run("two", (rank(8, 100).trace(0), rank(24, 160).trace(1)))
    (late,) = waiting_table(run).late
    assert (late.rank, late.median_late_ns, late.more_tokens) == (1, 60_000, 16.0)
