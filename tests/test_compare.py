"""Two sides are compared exactly where they can be, and honestly where they scatter."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from made_reports import MS, collective, finding, rank, report, step

from analyzer.cli.commands.compare import command
from analyzer.compare.balance import class_balance, overlap, phase_balance, window_balance
from analyzer.compare.comparison import compare, headlines
from analyzer.compare.configuration import Difference
from analyzer.compare.exact import State, counts_of, quantities
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import TraceFormatError, UsageError
from analyzer.render.compare import markdown as compare_markdown
from analyzer.render.compare import text as compare_text
from analyzer.schema.breakdown import SyncCauses
from analyzer.schema.report import to_json
from analyzer.sketch import sketch

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "sample_traces" / "recorded"


def exact(comparison, name):
    return next(row for row in comparison.exact if row.name == name)


def runs(*compute, **facts):
    return [report(f"run{at}", steps=[step(compute=value)], **facts) for at, value in enumerate(compute)]


def test_f4_overlap_decides_not_the_kernels():
    """Span, union and sum 12.049 / 11.204 / 14.444 ms against 9.399 / 9.349 / 13.884 ms."""

    def side(span, union, all_ns):
        own = rank(compute=union, communication=0, movement=0, sync=span - union, hidden=all_ns - union)
        return [report(ranks=[own])]

    found = overlap(side(9.399, 9.349, 13.884), side(12.049, 11.204, 14.444))
    assert (found.kernels_ns, found.overlap_ns, found.idle_ns) == (560_000, 1_295_000, 795_000)
    assert found.span_ns == 2_650_000
    assert found.decides == "overlap"


def test_f4_drawn_the_same_kernels_one_after_another_take_longer_by_what_no_longer_overlaps():
    beside = """
        rank 0 stream 7   GGGGGGGG
        rank 0 stream 20  GGGGGG..
    """
    after = """
        rank 0 stream 7   GGGGGGGG......
        rank 0 stream 20  ........GGGGGG
    """
    sides = []
    for drawing in (beside, after):
        run = sketch.read(drawing)
        made = diagnose(run, ())
        sides.append([made])
    found = overlap(*sides)
    assert (found.kernels_ns, found.overlap_ns, found.span_ns) == (0, 60_000, 60_000)
    assert (found.basis, found.decides) == ("activities", "overlap")


def test_deterministic_quantities_come_first_and_are_compared_exactly():
    comparison = compare([report()], [report(collectives=[collective(calls=9600)])])
    shown = compare_text.render(comparison)
    assert shown.index("calls.tp.all_reduce") < shown.index("95 % interval")
    row = exact(comparison, "calls.tp.all_reduce")
    assert (row.base, row.head, row.state) == ((Fraction(64),), (Fraction(96),), State.MORE)
    assert exact(comparison, "bytes.tp.all_reduce").base == (Fraction(64 * 16384),)


def test_calls_of_several_groups_are_those_of_a_rank():
    groups = [collective(calls=200, group=(0, 1)), collective(calls=200, group=(2, 3))]
    assert quantities(report(collectives=groups))["calls.tp.all_reduce"] == 2


def test_a_collective_that_is_gone_has_no_calls_and_no_bytes():
    comparison = compare([report()], [report(collectives=[])])
    assert exact(comparison, "calls.tp.all_reduce").head == (0,)
    assert exact(comparison, "bytes.tp.all_reduce").state is State.BASE_ONLY


def test_a_farther_rung_differs():
    comparison = compare([report()], [report(collectives=[collective(level="rdma")])])
    assert exact(comparison, "rung.tp.all_reduce").state is State.DIFFERS


def test_an_unknown_rung_is_not_compared():
    comparison = compare([report()], [report(collectives=[collective(level="unknown")])])
    assert exact(comparison, "rung.tp.all_reduce").state is State.BASE_ONLY


def test_what_varies_between_repeats_is_said_to_vary():
    base = [report(collectives=[collective(calls=calls)]) for calls in (6400, 6600)]
    comparison = compare(base, [report(collectives=[collective(calls=6500)])])
    assert exact(comparison, "calls.tp.all_reduce").state is State.VARIES


def test_launches_a_step_are_known_where_launches_are_recorded():
    run = sketch.read("""
        rank 0 stream 7   GG.GG.GG.GG.GG.GG.
        rank 0 host       ll.ll.ll.ll.ll.ll.
        rank 0 steps      DDD|DD|DD|DD|DD|DD
    """)
    made = diagnose(run, ())
    assert counts_of(made).launches == {"decode": 2}
    assert "launches.decode" in quantities(made)


def test_damaged_counts_are_one_clear_error():
    with pytest.raises(TraceFormatError, match=r"run: extra\.counts of the report is damaged"):
        quantities(report(extra={"counts": {"launches": 3}}))


def test_a_change_that_runs_cannot_show_is_no_difference():
    comparison = compare(runs(8.0, 8.2, 7.9), runs(8.1, 8.0, 8.3))
    row = comparison.row("decode", "step")
    assert (row.differs, row.small) == (False, False)
    assert headlines(comparison)[0].startswith("decode step: no change shown, +")
    assert "would have been seen" in headlines(comparison)[0]


def test_a_step_that_is_slower_says_which_term_it_is():
    comparison = compare(runs(8.0, 8.1, 7.9), runs(9.2, 9.3, 9.1))
    assert headlines(comparison)[0].startswith("decode step: slower, 10.0 ms → 11.2 ms, +12.0 % (")
    assert headlines(comparison)[0].endswith("; compute +1.20 ms of +1.20 ms")


def test_five_runs_a_side_are_told_apart_by_their_ranks():
    comparison = compare(runs(8.0, 8.1, 7.9, 8.05, 7.95), runs(9.2, 9.3, 9.1, 9.25, 9.15))
    assert comparison.row("decode", "step").p == pytest.approx(2 / 252)


def test_one_run_a_side_is_a_hint():
    comparison = compare(runs(8.0), runs(9.2))
    assert any(note.startswith("1 run a side cannot show how much runs scatter") for note in comparison.notes)


def test_prefill_and_decode_are_never_mixed():
    base = [report(steps=[step(), step("prefill", compute=80.0, count=20)])]
    head = [report(steps=[step(), step("prefill", compute=100.0, count=20)])]
    comparison = compare(base, head)
    assert comparison.row("decode", "compute").ratio == pytest.approx(1.0)
    assert comparison.row("prefill", "compute").ratio == pytest.approx(1.25)
    assert comparison.phases == ("decode", "prefill")


def test_windows_with_other_mixes_of_steps_are_not_compared_by_kernel_class():
    base = [report(steps=[step(count=100), step("prefill", count=10)])]
    head = [report(steps=[step(count=100), step("prefill", count=30)])]
    comparison = compare(base, head)
    assert comparison.row("kernels", "gemm") is None
    assert "kernel classes are not compared, and calls and bytes a step are not of equal work" in comparison.notes[-1]


def test_kernel_classes_are_per_step():
    comparison = compare([report()], [report(steps=[step(count=50)], ranks=[rank(compute=400.0)])])
    assert comparison.row("kernels", "gemm").ratio == pytest.approx(1.0)


def test_the_configuration_difference_stands_beside_the_time_difference():
    head = report(versions={"vllm": "0.33.0"}, settings={"batch": 16, "port": 8001})
    comparison = compare([report()], [head])
    assert comparison.differences == (
        Difference("setting batch", "8", "16"),
        Difference("setting port", "8000", "8001"),
        Difference("version vllm", "0.32.0", "0.33.0"),
    )
    assert "two workloads, not two states of one: setting batch 8 → 16" in comparison.notes


def test_other_batches_are_said_not_to_be_equal_work():
    comparison = compare([report()], [report(steps=[step(requests=16)])])
    assert "decode steps hold 8 to 16 requests: their times are not of equal work" in comparison.notes


def test_repeats_that_differ_in_configuration_are_said():
    base = [report(), report(settings={"batch": 4, "port": 8000})]
    assert "runs of the base differ in setting batch: 8, 4" in compare(base, [report()]).notes


def test_new_and_gone_findings_are_listed_once():
    comparison = compare([report(findings=[finding("Q201")])], [report(findings=[finding("Q301")])] * 2)
    assert [row.rule for row in comparison.new] == ["Q301"]
    assert [row.rule for row in comparison.gone] == ["Q201"]


def test_a_side_without_a_run_is_refused():
    with pytest.raises(UsageError, match="a side without a run"):
        compare([], [report()])


times = st.integers(0, 10**12)


@st.composite
def windows(draw):
    """A side of one to four runs of one to three ranks, every term and cause drawn."""
    n = draw(st.integers(1, 3))
    made = []
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for number in range(n):
            compute, communication, movement, *causes = draw(st.lists(times, min_size=9, max_size=9))
            own = rank(number, 0, 0, 0, 0)
            terms = (compute, communication, movement, sum(causes))
            classes = {"gemm": compute // 2, "norm": compute - compute // 2, "all_reduce": communication}
            rows.append(
                replace(
                    own,
                    window_ns=sum(terms),
                    compute_ns=terms[0],
                    communication_ns=terms[1],
                    movement_ns=terms[2],
                    sync_ns=terms[3],
                    sync_causes=SyncCauses(*causes),
                    subclasses={**classes, "fill": movement},
                    device_busy_ns=sum(terms[:3]),
                )
            )
        made.append(report(ranks=rows))
    return made


def middle_window(reports):
    """Mean over the ranks of the run in the middle, or of the two, rounded down."""
    order = sorted(
        sum(row.window_ns for row in made.breakdown.per_rank) // len(made.breakdown.per_rank) for made in reports
    )
    return order[(len(order) - 1) // 2], order[len(order) // 2]


@settings(max_examples=60, deadline=None)
@given(windows(), windows())
def test_summed_differences_are_the_difference_of_the_windows(base, head):
    for balance in (window_balance(base, head), class_balance(base, head)):
        assert sum(part.difference_ns for part in balance.parts) == balance.whole.difference_ns
        for reports, whole_ns in ((base, balance.whole.base_ns), (head, balance.whole.head_ns)):
            low, high = middle_window(reports)
            assert low <= whole_ns <= high + 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(times, min_size=6, max_size=6), min_size=1, max_size=4), st.booleans())
def test_terms_of_a_step_and_what_medians_lack_sum_to_the_step(drawn, with_period):
    rows = []
    for compute, communication, movement, sync, span, gap in drawn:
        terms = {"compute": compute, "communication": communication, "movement": movement, "sync": sync}
        rows.append(replace(step(), terms=terms, median_ns=span, period_ns=span + gap))
    balance = phase_balance(rows, [step()], with_period=with_period)
    assert sum(part.base_ns for part in balance.parts) == balance.whole.base_ns
    assert balance.whole.head_ns == 10 * MS
    assert sum(part.difference_ns for part in balance.parts) == balance.whole.difference_ns


def test_shuffling_the_repeats_changes_nothing():
    values = np.random.default_rng(3).normal(8, 0.2, 5).tolist()
    there, back = compare(runs(*values), runs(9.0, 9.1, 8.9)), compare(runs(*values[::-1]), runs(9.0, 9.1, 8.9))
    assert [row.p for row in there.timed] == pytest.approx([row.p for row in back.timed], nan_ok=True)
    assert there.balances == back.balances


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_recorded_runs_are_compared_in_every_form(form):
    shown = CliRunner().invoke(
        command, [str(RECORDED / "tp1"), str(RECORDED / "tp2"), "--format", form], catch_exceptions=False
    )
    assert shown.exit_code == 0
    assert "calls.tp.all_reduce" in shown.stdout
    assert "two workloads, not two states of one: world size 1 → 2, layout tp 1 → 2" in shown.stdout


def test_the_json_sums_and_names_its_schema():
    shown = CliRunner().invoke(command, [str(RECORDED / "tp1"), str(RECORDED / "tp2"), "--format", "json"])
    found = json.loads(shown.stdout)
    assert found["schema"] == 1
    for balance in found["balances"]:
        assert sum(part["difference_ns"] for part in balance["parts"]) == balance["whole"]["difference_ns"]


def test_saved_reports_are_compared_like_their_traces(tmp_path):
    for number in (1, 2, 3):
        for side, compute in (("base", 8.0), ("head", 9.5)):
            path = tmp_path / f"{side}{number}.json"
            path.write_text(to_json(runs(compute + 0.01 * number)[0]), encoding="utf-8")
    words = [
        word
        for side in ("base", "head")
        for n in (1, 2, 3)
        for word in (f"--{side}", str(tmp_path / f"{side}{n}.json"))
    ]
    shown = CliRunner().invoke(command, words, catch_exceptions=False)
    assert shown.stdout.startswith("decode step: slower, 10.0 ms → 11.5 ms, +15.0 % (")


@pytest.mark.parametrize(
    "words", [[], ["a"], ["a", "b", "c"], ["--base", "a"], ["a", "b", "--base", "c", "--head", "d"]]
)
def test_sides_that_do_not_fit_are_refused(words):
    done = subprocess.run(
        [sys.executable, "-m", "analyzer", "compare", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "shardscope: name two runs, BASE and HEAD, or repeats of each with --base RUN… and --head RUN…\n"
    )


def test_the_text_fits_80_columns():
    shown = compare_text.render(compare(runs(8.0, 8.1, 7.9), runs(9.2, 9.3, 9.1)))
    assert max(map(len, shown.splitlines())) <= 80


def test_no_name_acts_in_markdown():
    hostile = replace(report(), findings=[replace(finding(), message="<img src=x onerror=alert(1)> @team")])
    shown = compare_markdown.render(compare([report()], [hostile]))
    assert r"\<img src=x onerror=alert(1)\> @<!-- -->team" in shown
