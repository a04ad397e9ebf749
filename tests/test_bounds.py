"""Upper bounds stand in the report, with their basis, and nowhere where there is nothing to save."""

from pathlib import Path

import pytest

from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.sketch import sketch

DRAWN = Path(__file__).resolve().parents[1] / "sample_traces/drawn"

LATE_AND_COPIES = """
    layout  tp=2
    rank 0 stream 7   GGAAA.HHGGAAA.HHGGAAA.HH
    rank 0 host       ll....l.ll....l.ll....l.
    rank 0 steps      DDDDDDDD|DDDDDDD|DDDDDDD
    rank 1 stream 7   GGGGA.HHGGGGA.HHGGGGA.HH
    rank 1 host       ll....l.ll....l.ll....l.
    rank 1 steps      DDDDDDDD|DDDDDDD|DDDDDDD
"""


def test_waits_and_copies_of_a_step_are_bounds():
    bounds = diagnose(sketch.read(LATE_AND_COPIES), ()).scaling.bounds
    # Of 80 µs a step copies take 20; one of the two ranks waits 20, the mean is 10.
    assert [(row.kind, row.name, row.saved_ns, row.step_ns, row.basis) for row in bounds] == [
        ("decode", "without exposed copies", 20_000, 80_000, "derived"),
        ("decode", "without waits", 10_000, 80_000, "derived"),
    ]


def test_a_bound_says_that_it_is_one():
    sentences = diagnose(sketch.read(LATE_AND_COPIES), ()).scaling.sentences
    assert sentences[0] == (
        "upper bound: decode steps without exposed copies: at most 20.0 µs less (25.0 % of the step) (derived)"
    )


@pytest.mark.parametrize(
    ("sample", "names"),
    [
        ("healthy", []),
        ("ep2", ["without waits", "with balanced experts"]),
        ("host_copies", ["without exposed copies"]),
    ],
)
def test_samples_are_bounded_by_what_was_drawn_into_them(sample, names):
    assert [row.name for row in diagnose(load(DRAWN / sample), ()).scaling.bounds] == names


def test_a_run_whose_waiting_is_unknown_has_no_bounds():
    alone = "\n".join(line for line in LATE_AND_COPIES.splitlines() if "rank 1" not in line)
    assert diagnose(sketch.read(alone), ()).scaling.bounds == []


def test_counters_of_the_engine_reach_the_report():
    counted = 'metrics vllm:num_preemptions_total{engine="0"}=3 vllm:prefix_cache_queries_total=90'
    memory = diagnose(sketch.read(f"    {counted}\n{LATE_AND_COPIES}"), ()).run.memory
    assert memory == {"preemptions": 3, "queried_tokens": 90, "cached_tokens": 0}
