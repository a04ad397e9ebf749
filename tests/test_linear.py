"""Matching, clocks, waits and late ranks take time in proportion to the number of collectives.

The figures for 1,000, 10,000 and 100,000 collectives are printed by `pytest -m slow tests/test_linear.py -s`.
"""

import time

import numpy as np
import pytest
from runs import Draw, build

from analyzer.measures.skew import late_ranks

RECORDINGS = ("sequence", "nothing")
TIMES_AS_LONG = 15.0
"""For ten times the collectives; a quadratic step would make it a hundred."""


def cpu_s(calls, recording):
    """Least of two, so that what else runs on the machine is left out."""
    taken = []
    for _ in range(2):
        run, truth = build(
            Draw(np.random.default_rng(3), ranks=8, tp=8, recording=recording, calls=calls, late=3, offset_s=1.0)
        )
        begin = time.process_time()
        assert late_ranks(run)[0].rank == truth.late_rank
        taken.append(time.process_time() - begin)
    return min(taken)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_ten_times_the_collectives_take_about_ten_times_as_long(recording):
    assert cpu_s(6_000, recording) < TIMES_AS_LONG * cpu_s(600, recording)


@pytest.mark.slow
@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_hundred_thousand_collectives_are_as_linear(recording):
    taken = {calls: cpu_s(calls, recording) for calls in (1_000, 10_000, 100_000)}
    print(recording, {calls: f"{seconds:.2f} s" for calls, seconds in taken.items()})  # noqa: T201
    assert taken[100_000] < TIMES_AS_LONG * taken[10_000]
