"""One clock over ranks, with an error that says how fine it is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_traces import CUSTOM, EPOCH_NS, GEMM, collectives, recorded, trace, uneven
from runs import Draw, build

from analyzer.errors import MissingEvidenceError
from analyzer.ingest.load import load
from analyzer.matching.clock import clock
from analyzer.matching.collectives import match
from analyzer.measures.waits import waits
from analyzer.model.run import Run
from analyzer.model.trace import Origin

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
in_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the trace corpus is not at {CORPUS}")


def _two(clock_us=0.0, jitter_us=1.0, late_end_us=0.0, calls=100):
    """Two ranks; the second's clock is ahead and its ends come later by what is said."""
    latest = uneven(calls)
    rng = np.random.default_rng(2)
    early = latest - rng.uniform(0, 40, calls).round(3)
    ends = [latest + 12 + rng.normal(0, jitter_us, calls).round(3) + late_end_us * rank for rank in (0, 1)]
    records = recorded(range(calls), sequence=0)
    return Run(
        "two",
        (
            trace(0, collectives(early, end_us=ends[0]), records=records),
            trace(1, collectives(latest, end_us=ends[1]), records=records, clock_us=clock_us),
        ),
    )


def test_clocks_that_agree_within_what_ends_can_tell_are_left_alone():
    found = clock(_two())
    assert found.method == "shared clock, confirmed on collective ends"
    assert found.offset_ns.tolist() == [0.0, 0.0]


def test_a_clock_that_is_ahead_is_set_back_to_within_the_error():
    found = clock(_two(clock_us=500))
    assert found.method == "aligned on collective ends"
    assert abs(found.offset_ns[1] - 500_000) < found.error_ns


def test_the_error_is_twice_the_spread_of_two_ends():
    assert clock(_two(jitter_us=1)).error_ns == pytest.approx(2.83 * 1000, rel=0.25)
    assert clock(_two(jitter_us=4)).error_ns == pytest.approx(2.83 * 4000, rel=0.25)


def test_a_constant_skew_of_ends_is_the_clock():
    found = clock(_two(late_end_us=30))
    assert abs(found.offset_ns[1] - 30_000) < found.error_ns


def test_a_drift_of_fifty_parts_in_a_million_is_found():
    run, truth = build(Draw(np.random.default_rng(5), ranks=2, tp=2, calls=400, drift=50e-6))
    found = clock(run)
    assert found.drift[1] - found.drift[0] == pytest.approx(truth.drift[1] - truth.drift[0], abs=5e-6)


def test_one_collective_lets_clocks_stand_whose_ends_are_no_farther_apart_than_it_took():
    spans = [[(GEMM, 0, 30), (CUSTOM, 40 + rank, 20 + rank)] for rank in (0, 1)]
    run = Run("one call", tuple(trace(rank, spans[rank], records=recorded([1])) for rank in (0, 1)))
    found = clock(run)
    assert (found.method, found.error_ns) == ("shared clock, confirmed on collective ends", 2_000)


def test_one_collective_that_cannot_be_on_the_recorded_clocks_is_good_to_its_shortest_duration():
    run = Run(
        "one call",
        tuple(trace(rank, [(CUSTOM, 40, 20)], records=recorded([0]), clock_us=900 * rank) for rank in (0, 1)),
    )
    found = clock(run)
    assert (found.method, found.error_ns) == ("aligned on collective ends", 20_000)


def test_ranks_without_a_common_collective_are_not_merged():
    run, _ = build(Draw(np.random.default_rng(5), ranks=2, tp=2, engines=2, offset_s=10, told_by="placement"))
    found = clock(run)
    assert [len({found.island[at] for at in pair}) for pair in ((0, 1), (2, 3), (0, 2))] == [1, 1, 2]
    assert found.method == "aligned on collective ends; 2 sets of ranks without a common anchor, not merged"
    assert np.isnan(found.offset_ns[found.island.index(found.island[2])]) != np.isnan(found.offset_ns[0])


def test_a_rank_without_any_collective_is_left_out():
    run = _two()
    lone = trace(2, [(GEMM, 0, 10)])
    assert clock(replace(run, traces=(*run.traces, lone))).method.endswith("1 rank without any anchor")


def test_groups_that_share_ranks_join_all_clocks():
    run, _ = build(Draw(np.random.default_rng(5), ranks=8, tp=4, crossing=True, offset_s=10))
    assert len(set(clock(run).island)) == 1


def test_no_common_collective_is_missing_evidence():
    run = Run("apart", tuple(trace(rank, [(GEMM, 0, 10)]) for rank in (0, 1)))
    with pytest.raises(MissingEvidenceError, match="no collective is seen on two ranks"):
        clock(run)


def test_times_are_read_on_the_reference():
    found = clock(_two(clock_us=500))
    there = np.array([EPOCH_NS + 1_000_000], np.int64)
    assert found.to_reference(1, there + 500_000)[0] == pytest.approx(
        found.to_reference(0, there)[0], abs=found.error_ns
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(-(10**10), 10**10), st.integers(0, 3))
def test_shifting_all_times_of_a_rank_changes_no_wait_beyond_the_error(shift_ns, rank):
    run, _ = build(Draw(np.random.default_rng(8), ranks=4, tp=4, calls=60, recording="sequence"))
    moved = replace(run, traces=tuple(_shifted(one, shift_ns) if one.rank == rank else one for one in run.traces))
    before, after = waits(run), waits(moved)
    apart = max(int(np.abs(a - b).max()) for a, b in zip(before.wait_ns, after.wait_ns, strict=True))
    # Each of the two is within its own error of the truth.
    assert apart <= clock(run).error_ns + clock(moved).error_ns


def _shifted(one, shift_ns):
    activities = one.activities
    return replace(
        one,
        activities=replace(activities, start_ns=activities.start_ns + shift_ns, end_ns=activities.end_ns + shift_ns),
    )


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(4)))
def test_naming_the_ranks_otherwise_only_permutes_the_waits(order):
    run, _ = build(Draw(np.random.default_rng(9), ranks=4, tp=4, calls=60, recording="nothing"))
    renamed = sorted(
        (replace(one, rank=order[at], origin=Origin("", "cuda", recorded_rank=order[at], world_size=4))
         for at, one in enumerate(run.traces)),
        key=lambda one: one.rank,
    )  # fmt: skip
    before, after = waits(run), waits(Run("renamed", tuple(renamed)))
    apart = max(int(np.abs(before.wait_ns[at] - after.wait_ns[order[at]]).max()) for at in range(4))
    assert apart <= clock(run).error_ns
    assert match(run).share == match(Run("renamed", tuple(renamed))).share == 1.0


@pytest.mark.corpus
@in_corpus
def test_eight_ranks_of_one_host_agree_within_thirty_microseconds():
    found = clock(load(CORPUS / "lightllm_ep8_decode"))
    assert found.error_ns < 30_000
    assert np.abs(found.offset_ns).max() < found.error_ns
