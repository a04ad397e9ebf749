"""How often the verdict is right: 827 published series, each measured again and again with run noise of a known size.

The published values count as the truth. A series of runs is drawn around them, the estimator sees only these runs.
"""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from analyzer.sweep.optimum import PAST_CONFIDENCE
from analyzer.sweep.posterior import best_shares, credible_set, estimates, past_shares, suspects

SERIES = Path(__file__).resolve().parents[2] / "shared" / "data" / "scaling_series.csv"
RUN_NOISE = 0.03
REPEATS = 10
TRULY_PAST = np.log(1.02)
AT_ONCE = 128

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SERIES.exists(), reason=f"{SERIES.name} is not at hand"),
]


@pytest.fixture(scope="module")
def truths():
    """Arrays of log values [series, degrees], one array a number of degrees."""
    series, suspicious = defaultdict(list), set()
    with SERIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["split_dim"], row["objective"]) == ("tp", "latency"):
                series[row["series_id"]].append((int(row["degree"]), float(row["value"])))
            if row["suspect"]:
                suspicious.add(row["series_id"])
    by_size = defaultdict(list)
    for name, points in series.items():
        if name not in suspicious:
            by_size[len(points)].append([value for _, value in sorted(points)])
    return [np.log(np.array(values)) for values in by_size.values()]


def measured_again(truth, runs, rng, steps):
    """Log values [series, degrees, runs]; with steps, each run is the median of so many, 8 % apart."""
    logs = truth[..., None] + rng.normal(0, RUN_NOISE, (*truth.shape, runs))
    return logs + np.median(rng.normal(0, 0.08, (*logs.shape, steps)), -1) if steps else logs


def judge(truth, logs, step_error):
    """What the verdicts on these series are worth, as counts."""
    known = estimates(logs, np.full(truth.shape, step_error))
    suspect = suspects(known)
    shares, past = np.empty(truth.shape), np.empty(truth.shape)
    for start in range(0, len(truth), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        draws = type(known)(known.log_value[part], known.error[part], known.freedom).draws()
        shares[part], past[part] = best_shares(draws), past_shares(draws, suspect[part])
    members, told = credible_set(shares), ~suspect.any(-1)
    holds = members[np.arange(len(truth)), truth.argmin(-1)]
    alone = (members.sum(-1) == 1) & told
    called = past >= PAST_CONFIDENCE
    truly = np.zeros(truth.shape, bool)
    truly[:, 1:] = truth[:, 1:] > np.minimum.accumulate(truth, -1)[:, :-1] + TRULY_PAST
    return Counter(
        series=len(truth),
        inside=int((holds | ~told).sum()),
        single=int(alone.sum()),
        wrong=int((alone & ~holds).sum()),
        false_past=int((called & ~truly).any(-1).sum()),
        reversals=int(truly[:, -1].sum()),
        found=int((called & truly)[:, -1].sum()),
    )


def calibration(truths, runs, steps=0):
    """Shares over all series and repeats, with a fixed seed."""
    rng = np.random.default_rng(2024)
    step_error = 1.25 * 0.08 / np.sqrt(steps) if steps else 0.0
    total = Counter()
    for _ in range(REPEATS):
        for truth in truths:
            total += judge(truth, measured_again(truth, runs, rng, steps), step_error)
    rates = {key: total[key] / total["series"] for key in ("inside", "single", "wrong", "false_past")}
    return {**rates, "found": total["found"] / total["reversals"], "series": total["series"] // REPEATS}


@pytest.fixture(scope="module")
def one_run(truths):
    return calibration(truths, runs=1)


@pytest.fixture(scope="module")
def three_runs(truths):
    return calibration(truths, runs=3)


def test_all_published_tp_latency_series_take_part(one_run):
    assert one_run["series"] == 827


def test_one_run_a_degree_holds_the_truth_and_finds_the_turns(one_run):
    assert one_run["inside"] >= 0.98
    assert one_run["wrong"] <= 0.003
    assert one_run["false_past"] <= 0.003
    assert one_run["found"] >= 0.63
    assert one_run["single"] >= 0.80


def test_three_runs_a_degree_find_more_turns(three_runs):
    assert three_runs["inside"] >= 0.98
    assert three_runs["wrong"] <= 0.003
    assert three_runs["false_past"] <= 0.003
    assert three_runs["found"] >= 0.70
    assert three_runs["single"] >= 0.80


def test_three_runs_of_fifty_steps_find_the_turns_too(truths):
    measured = calibration(truths, runs=3, steps=50)
    assert measured["wrong"] <= 0.003
    assert measured["found"] >= 0.70
