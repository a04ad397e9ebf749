"""Who waits for whom, as every form of the report shows it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import test_waits
from step_traces import Recorder
from test_render_html import Page

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.diagnose.waiting import waiting_table
from analyzer.ingest.load import load
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.plugins import offers
from analyzer.render import words
from analyzer.render.formats import html, markdown, text
from analyzer.schema.report import from_json, to_json
from analyzer.schema.waiting import LateReason

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
in_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the trace corpus is not at {CORPUS}")


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


def test_a_rank_that_is_last_as_often_as_chance_has_it_is_not_named_in_words(report):
    by_chance = replace(report.waiting.late[0], p_value=0.33, is_persistent=False)
    waiting = replace(report.waiting, late=[by_chance])
    shown = text.render(replace(report, waiting=waiting, findings=[], questions=[], verdict=""))
    assert "no rank is last more often than chance explains" in shown
    assert "rank 1 is last" not in shown


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


def test_a_late_rank_whose_host_is_blocked_names_the_call():
    def rank(blocked_us):
        recorder = Recorder()
        for _ in range(20):
            recorder.calls.append(
                ("cudaDeviceSynchronize", recorder.host, recorder.host + 2 + blocked_us, 100, 1, ABSENT)
            )
            recorder.wait(2 + blocked_us).launch("gemm", us=50, late=0)
            recorder.launch("reduce", us=400 - blocked_us, late=0).catch_up()
        return recorder

    run = Run("two", (rank(0).trace(0), rank(90).trace(1)))
    (late,) = waiting_table(run).late
    assert [(reason.doing, reason.name, reason.excess_ns) for reason in late.reasons] == [
        ("blocked", "", 85_500),  # 90 µs in 19 of 20 calls: what was before the first kernel is not recorded
        ("blocked", "cudaDeviceSynchronize", 85_500),
    ]
    assert words.reasons(late, 2) == (
        "waits for a blocked host 85.5 µs longer a call, correlation 0.97; "
        "waits for a blocked host (cudaDeviceSynchronize) 85.5 µs longer a call, correlation 0.97"
    )


def test_a_late_rank_with_as_many_but_longer_kernels_of_experts_may_hold_more_tokens():
    reason = LateReason("compute", "fused_moe_kernel", "moe_gemm", 40_000, 0.9, 0.97, 0.0)
    late = replace(waiting_table(_run()).late[0], reasons=[reason])
    assert words.reasons(late, 2) == (
        "computes (moe_gemm fused_moe_kernel) 40.0 µs longer a call, correlation 0.97, in as many kernels: more tokens "
        "for its experts, or slower"
    )


def test_of_two_methods_a_clock_that_is_too_coarse_for_one_makes_no_agreement():
    (group,) = waiting_table(_run()).groups
    assert words.agreement(group) == "yes"
    assert words.agreement(replace(group, agrees=False)) == "no"
    assert words.agreement(replace(group, used="shortest duration", wait_by_shortest_ns=1)) == "–"
    assert words.agreement(replace(group, wait_by_arrival_ns=None, agrees=None)) == "–"


def test_pairs_beyond_the_longest_are_summed():
    n = 70
    traces = tuple(
        test_waits._trace(rank, test_waits._steps(30 if rank == 5 else 0, calls=3), world=n) for rank in range(n)
    )
    waiting = waiting_table(Run("many", traces))
    assert len(waiting.pairs) == n - 1
    assert {pair.last for pair in waiting.pairs} == {5}
    assert sum(pair.wait_ns for pair in waiting.pairs) + waiting.unlisted_pairs_ns == 3 * 30_000 * (n - 1)


@pytest.mark.corpus
@in_corpus
def test_of_eight_real_ranks_the_one_whose_host_launches_late_is_found():
    waiting = waiting_table(load(CORPUS / "modded_nanogpt_8rank"))
    (group,) = waiting.groups
    assert (waiting.matched_share, group.verdict, group.agrees) == (1.0, "skew", True)
    assert f"{group.wait_by_arrival_ns / 1e6:.1f} {group.wait_by_shortest_ns / 1e6:.1f}" == "33.8 33.0"
    late = waiting.late[0]
    assert (late.rank, late.calls, late.is_persistent, late.is_own) == (1, 23, True, True)
    assert (late.reasons[0].doing, round(late.reasons[0].correlation, 2)) == ("launch", 1.0)


@pytest.mark.corpus
@in_corpus
def test_an_expert_exchange_whose_ranks_leave_apart_is_inconclusive_and_says_so():
    waiting = waiting_table(load(CORPUS / "sglang_ep8_decode_run1"))
    (group,) = waiting.groups
    assert (group.verdict, group.agrees, group.complete_share) == ("inconclusive", False, 1.0)
    assert "not all of them wait for the last one alone" in group.reason
    assert [late.is_persistent for late in waiting.late] == [False]
