"""How often the gate fires: simulated A/A and A/B gates, fixed seeds. The table is the one in docs/gate-in-ci.md."""

import re
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from analyzer.compare.significance import Change, called, run_difference
from analyzer.stats.tests import benjamini_hochberg, holm, mann_whitney, welch

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gate-in-ci.md"
SEED = 20260
STEPS = 150
RUNS = (1, 3, 5)
RISES = (0.0, 0.05, 0.08, 0.10, 0.15)
LEAST = 0.05


def medians(rng, shape, run_sd):
    """Median step of each run: a run's own luck, and steps that scatter by 8 %, correlate by 0.5, with 2 % stalls."""
    noise = lfilter([1], [1, -0.5], rng.standard_normal((*shape, STEPS)) * np.sqrt(0.75), axis=-1) * 0.08
    noise += 0.5 * (rng.random(noise.shape) < 0.02)
    return np.exp(rng.normal(0, run_sd, shape) + np.median(noise, axis=-1))


@cache
def fired(runs, run_sd, metrics=1, gates=2000):
    """Share of gates that fire at each rise of the first metric, percent; with no rise, those that fire on any."""
    rng = np.random.default_rng(SEED)
    base, head = (medians(rng, (gates, metrics, runs), run_sd) for _ in range(2))
    shares = []
    for rise in RISES:
        after = head.copy()
        after[:, 0] *= 1 + rise
        rose = called(run_difference(base, after), np.full(metrics, LEAST)) == Change.ROSE
        shares.append(100 * float((rose.any(axis=-1) if rise == 0 else rose[:, 0]).mean()))
    return tuple(shares)


@pytest.mark.parametrize("runs", [3, 5])
def test_false_alarms_are_four_percent_at_most(runs):
    assert fired(runs, 0.02)[0] <= 4.0


@pytest.mark.parametrize("runs", [3, 5])
def test_a_rise_of_ten_percent_is_found_nine_times_in_ten(runs):
    assert fired(runs, 0.02)[RISES.index(0.10)] >= 90.0


@pytest.mark.parametrize("runs", [3, 5])
def test_six_metrics_together_give_no_more_false_alarms(runs):
    assert fired(runs, 0.02, metrics=6, gates=500)[0] <= 4.0


def test_six_metrics_together_still_find_a_rise_of_ten_percent_with_five_runs():
    assert fired(5, 0.02, metrics=6, gates=500)[RISES.index(0.10)] >= 90.0


def test_three_noisy_runs_give_about_four_percent():
    assert fired(3, 0.04)[0] <= 5.0


ROWS = (
    [(runs, 0.02, 1, 2000) for runs in RUNS]
    + [(runs, 0.02, 6, 500) for runs in RUNS[1:]]
    + [(runs, 0.04, 1, 2000) for runs in RUNS]
)


def test_the_page_shows_this_table():
    found = re.findall(r"^\| (\d) \| (\d) % \| (\d) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {(int(runs), int(sd) / 100, int(metrics)): cells.split(" | ") for runs, sd, metrics, cells in found}
    assert list(shown) == [row[:3] for row in ROWS]
    for runs, sd, metrics, gates in ROWS:
        cells = [float(cell) for cell in shown[runs, sd, metrics]]
        assert cells == pytest.approx(fired(runs, sd, metrics, gates), abs=0.5)  # half a percent: other libm, other ulp


def change(base, head, *, higher_is_better=False):
    """What the rule says of two single measurements."""
    sides = [np.log(np.array([[value]])) * (-1 if higher_is_better else 1) for value in (base, head)]
    word = called(run_difference(*map(np.exp, sides)), np.array([LEAST]))[0]
    return {Change.NONE: "no change", Change.ROSE: "regressed", Change.FELL: "improved"}[Change(int(word))]


@pytest.mark.parametrize(("base", "head"), list(combinations((403.98, 401.02, 398.42), 2)))
def test_f17_three_throughputs_of_one_build_are_no_change(base, head):
    assert change(base, head, higher_is_better=True) == "no change"
    assert change(head, base, higher_is_better=True) == "no change"


def test_f17_257_to_401_is_improved():
    assert change(257.11, 401.02, higher_is_better=True) == "improved"


def test_f17_118_to_108_is_regressed():
    assert change(118, 108, higher_is_better=True) == "regressed"


def test_welch_is_scipys_where_there_is_no_floor():
    from scipy.stats import ttest_ind

    a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 9.0, 4.0])
    found = welch(a, b, floor=1e-9, prior_freedom=0.0)
    expected = ttest_ind(b, a, equal_var=False, alternative="greater")
    assert float(found.greater()) == pytest.approx(float(expected.pvalue))
    assert float(found.freedom) == pytest.approx(float(expected.df))


def test_rank_sums_of_five_and_five_that_do_not_mix_have_the_smallest_p():
    assert mann_whitney(np.arange(5.0), np.arange(5.0) + 10) == pytest.approx(2 / 252)


def test_holm_after_its_paper():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_after_its_paper():
    assert benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_tests_changes_no_corrected_p(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    for correct in (holm, benjamini_hochberg):
        assert correct(np.array(p)[order]).tolist() == pytest.approx(correct(np.array(p))[order].tolist())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrected_p_are_never_smaller(p):
    assert (holm(np.array(p)) >= np.array(p)).all()
    assert (benjamini_hochberg(np.array(p)) <= holm(np.array(p)) + 1e-12).all()


def test_swapping_the_sides_swaps_rise_and_fall():
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(0, 0.05, (40, 3, 4)), rng.lognormal(0.1, 0.05, (40, 3, 4))
    least = np.full(3, LEAST)
    assert (called(run_difference(a, b), least) == -called(run_difference(b, a), least)).all()


def test_a_scale_changes_nothing():
    rng = np.random.default_rng(2)
    a, b = rng.lognormal(0, 0.05, (40, 3, 4)), rng.lognormal(0.1, 0.05, (40, 3, 4))
    least = np.full(3, LEAST)
    assert (called(run_difference(a, b), least) == called(run_difference(1e9 * a, 1e9 * b), least)).all()
