"""Statistics of the product, held against `scipy.stats`, which no command imports."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.stats import draws, tests

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_traces"

finite = st.floats(-50, 50)


@given(st.integers(1, 3_000), st.data(), st.integers(2, 64))
def test_the_binomial_tail_is_that_of_scipy(trials, data, sides):
    successes = data.draw(st.integers(0, trials))
    told = scipy.stats.binomtest(successes, trials, 1 / sides, "greater").pvalue
    assert tests.binomial_tail(successes, trials, sides) == pytest.approx(told, rel=1e-7, abs=1e-200)


def test_few_trials_are_summed_exactly():
    # 13 or more heads in 16 throws: 560 + 120 + 16 + 1 of 65,536
    assert tests.binomial_tail(13, 16, 2) == 697 / 65_536
    assert tests.binomial_tail(1, 1, 8) == 0.125


@given(st.integers(1, 3_000), st.data())
def test_the_interval_of_a_share_is_that_of_scipy(trials, data):
    successes = data.draw(st.integers(0, trials))
    told = scipy.stats.binomtest(successes, trials).proportion_ci(0.95, "wilson")
    assert tests.wilson_interval(successes, trials) == (told.low, told.high)


@given(st.floats(0, 50), st.integers(1, 90), st.integers(1, 90))
def test_tails_of_squares_are_those_of_scipy(value, freedom, other):
    assert tests.f_tail(value, freedom, other) == scipy.stats.f.sf(value, freedom, other)
    assert tests.chi_squared_tail(value, freedom) == scipy.stats.chi2.sf(value, freedom)


@given(finite, st.floats(0.001, 0.999), st.one_of(st.floats(1, 60), st.just(np.inf)))
def test_students_t_is_that_of_scipy(value, probability, freedom):
    assert tests.student_tail(value, freedom) == scipy.stats.t.sf(value, freedom)
    assert tests.student_quantile(probability, freedom) == scipy.stats.t.ppf(probability, freedom)


@pytest.mark.parametrize("values", [st.integers(-6, 6).map(float), finite], ids=["ties", "without"])
def test_the_rank_sum_test_is_that_of_scipy(values):
    @given(st.lists(values, min_size=2, max_size=14), st.lists(values, min_size=2, max_size=14))
    def holds(first, second):
        if len({*first, *second}) == 1:
            assert tests.mann_whitney(np.array(first), np.array(second)) == 1.0
            return
        told = scipy.stats.mannwhitneyu(first, second, alternative="two-sided").pvalue
        assert tests.mann_whitney(np.array(first), np.array(second)) == pytest.approx(told, rel=1e-9)

    holds()


@given(st.lists(finite, min_size=6, max_size=30))
def test_the_trend_is_that_of_scipy(values):
    told = scipy.stats.theilslopes(values, np.arange(len(values)), 0.99)
    assert tests.theil_sen(np.array(values), 0.99) == pytest.approx((told[0], told[2], told[3]), abs=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 5, 128])
def test_points_are_those_of_scipy(columns):
    told = scipy.stats.qmc.Sobol(columns, seed=12).random(512)
    assert np.array_equal(draws.sobol(columns, 512, 12), told)


def test_more_degrees_than_the_table_holds_are_refused():
    with pytest.raises(UsageError, match="129 degrees in one series; at most 128 are compared at once"):
        draws.standard_draws(129, (8.0,) * 129)


COMMANDS = {
    "diagnose": ["diagnose", "recorded/tp4"],
    "compare": ["compare", "recorded/tp2", "recorded/tp4"],
    "repeats": [
        "compare",
        *[word for side in ("base", "head") for _ in range(5) for word in (f"--{side}", "recorded/tp2")],
    ],
    "sweep": ["sweep", "sweep_teaching.csv"],
    "what-if": ["sweep", "recorded/tp2", "--what-if", "tp=4", "--platform", "L40S"],
    "pd": ["pd", "--prefill", "recorded/pd1+1", "--decode", "recorded/pd1+1"],
    "routing": ["routing", "routing_sessions.jsonl", "--workers", "4"],
    "timeline": ["timeline", "recorded/tp2", "-o", "OUT/timeline.json"],
    "baseline": ["gate", "recorded/tp2", "--baseline", "OUT/baseline.json", "--update-baseline"],
}
GATE = ["gate", *["recorded/tp4"] * 3, "--baseline", "OUT/baseline.json", "--history", "OUT/history.jsonl"]
CODE = """
import sys
from analyzer.__main__ import shardscope
for words in {runs!r}:
    try:
        shardscope.main(words, standalone_mode=False)
    except SystemExit:
        pass
print(sorted(name for name in sys.modules if name == "scipy.stats" or name.startswith("scipy.stats.")), file=sys.stderr)
"""


@pytest.mark.parametrize("name", [*COMMANDS, "gate"])
def test_no_command_imports_all_of_scipys_statistics(name, tmp_path):
    """It costs 0.9 to 1.7 CPU seconds and 65 MB of every start."""
    places = [path.name for path in SAMPLES.iterdir()]
    runs = [COMMANDS["baseline"], *[GATE] * 6] if name == "gate" else [COMMANDS[name]]
    given_ = [
        [
            str(SAMPLES / word) if word.partition("/")[0] in places else word.replace("OUT", str(tmp_path))
            for word in words
        ]
        for words in runs
    ]
    code = CODE.format(runs=given_)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
