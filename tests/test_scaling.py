"""The verdict on measured degrees: known answers, its vocabulary, its refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.stats import draws
from analyzer.sweep.capacity import capacity
from analyzer.sweep.curve import curve
from analyzer.sweep.optimum import Objective, ScalingVerdict, scaling
from analyzer.sweep.past_optimum import past_optimum
from analyzer.sweep.point import Exchange, Memory, Point, PointSeries
from analyzer.sweep.posterior import RUN_FLOOR, credible_set, estimates, past_shares


def verdict(values, objective=Objective.LATENCY, *, gpus=None, ordered=True):
    """Of {degree: value or values}."""
    points = [Point(degree, value if isinstance(value, tuple) else (value,)) for degree, value in values.items()]
    return scaling(tuple(points), objective, gpus=gpus, ordered=ordered)


def rates(values):
    """Values from {degree: tokens per second}."""
    return {degree: 1e9 / rate for degree, rate in values.items()}


TEACHING = {1: 100.0, 2: 60.0, 4: 50.0, 8: 62.5}


class TestKnownAnswers:
    """Published figures; each series names its source."""

    def test_the_teaching_series_turns_at_four(self):
        told = verdict(TEACHING)
        assert (told.kind, told.best, told.members, told.past) == (ScalingVerdict.OPTIMUM, 4, (4,), (8,))
        assert told.standing(8).cost == pytest.approx(0.25)
        assert told.standing(4).best_share == pytest.approx(0.999, abs=0.002)
        assert told.standing(8).cost_interval == pytest.approx((0.155, 0.354), abs=0.005)

    def test_vllm_issue_16300_still_improves_at_eight(self):
        one, sixteen = verdict({2: 5.50, 4: 3.91, 8: 3.15}), verdict({2: 6.07, 4: 4.77, 8: 4.25})
        assert (one.kind, one.best, one.past) == (ScalingVerdict.STILL_IMPROVING, 8, ())
        assert (sixteen.kind, sixteen.best, sixteen.past) == (ScalingVerdict.STILL_IMPROVING, 8, ())
        assert one.standing(8).efficiency == pytest.approx(0.62, abs=0.005)
        assert sixteen.standing(8).efficiency == pytest.approx(0.56, abs=0.005)

    def test_vllm_issue_22331_is_past_the_optimum_at_two(self):
        told = verdict(rates({1: 90, 2: 77.5, 4: 77.5}))
        assert (told.kind, told.best, told.past) == (ScalingVerdict.OPTIMUM, 1, (2, 4))
        assert 1 / (1 + told.standing(2).cost) - 1 == pytest.approx(-0.139, abs=0.001)

    def test_vllm_pr_25049_with_mtp_cannot_separate_four_from_eight(self):
        told = verdict(rates({1: 3038.71, 4: 3722.81, 8: 3600.58}))
        assert (told.kind, told.members) == (ScalingVerdict.NOT_SEPARABLE, (4, 8))
        assert told.standing(8).cost == pytest.approx(0.034, abs=0.001)

    def test_vllm_pr_25049_without_mtp_still_improves(self):
        told = verdict(rates({1: 2332.43, 4: 2983.08, 8: 3502.24}))
        assert (told.kind, told.best) == (ScalingVerdict.STILL_IMPROVING, 8)

    def test_trtllm_qwen_is_best_at_eight_in_all_and_at_one_per_gpu(self):
        series = rates({1: 28011, 2: 32646, 4: 36819, 8: 39490})
        total, per_gpu = verdict(series), verdict(series, Objective.PER_GPU)
        assert (total.kind, total.best) == (ScalingVerdict.STILL_IMPROVING, 8)
        assert total.standing(4).cost == pytest.approx(0.0725, abs=0.0005)
        assert (per_gpu.kind, per_gpu.best) == (ScalingVerdict.OPTIMUM, 1)

    def test_llm_inference_bench_pvc_is_past_the_optimum_at_four(self):
        told = verdict({1: 24.70682, 2: 7.20891, 4: 10.8934})
        assert (told.kind, told.best, told.past) == (ScalingVerdict.OPTIMUM, 2, (4,))
        assert told.standing(4).cost == pytest.approx(0.511, abs=0.001)

    def test_llmd_glm52_separates_one_prefill_instance_from_two_and_three(self):
        told = verdict(rates({1: 3867, 2: 4770, 3: 4913}))
        assert (told.kind, told.members, told.past) == (ScalingVerdict.NOT_SEPARABLE, (2, 3), ())

    def test_nemo_13b_holds_a_suspect_point(self):
        told = verdict({1: 198.5, 2: 320.0, 4: 102.3})
        assert (told.kind, told.best, told.past) == (ScalingVerdict.CANNOT_TELL, None, ())
        assert told.reason == "degree 2 lies above both 1 and 4, a suspect point; measure degree 2 again"


class TestVocabulary:
    def test_repeats_narrow_the_answer(self):
        once = verdict({4: 100.0, 8: 104.0})
        thrice = verdict({4: (100.0, 100.4, 99.6), 8: (104.0, 103.6, 104.4)})
        assert (once.kind, once.members) == (ScalingVerdict.NOT_SEPARABLE, (4, 8))
        assert (thrice.kind, thrice.members) == (ScalingVerdict.OPTIMUM, (4,))

    def test_degrees_within_three_percent_differ_in_no_practical_way(self):
        told = verdict({4: (100.0, 100.4, 99.6, 100.2, 99.8), 8: (100.5, 100.1, 100.9, 100.3, 100.7)})
        assert told.kind is ScalingVerdict.NO_DIFFERENCE

    def test_a_budget_is_filled_with_replicas(self):
        told = verdict(TEACHING, Objective.TOTAL, gpus=8)
        assert (told.best, told.standing(8).cost) == (1, pytest.approx(4.0))

    def test_a_budget_left_half_empty_costs_its_rest(self):
        # three GPUs hold three replicas of one rank, but only one of two: 60 ms a step against 100/3
        assert verdict({1: 100.0, 2: 60.0}, Objective.TOTAL, gpus=3).standing(2).cost == pytest.approx(0.8)

    def test_a_degree_beyond_the_budget_is_refused(self):
        with pytest.raises(UsageError, match="an instance of 8 GPUs does not fit into 4 GPUs"):
            verdict(TEACHING, Objective.TOTAL, gpus=4)

    def test_layouts_have_no_order_to_be_past(self):
        told = verdict({1: 100.0, 2: 320.0, 3: 90.0}, ordered=False)
        assert (told.kind, told.best, told.past) == (ScalingVerdict.OPTIMUM, 3, ())

    def test_a_turn_stands_whatever_a_suspect_point_in_between_is(self):
        told = verdict({1: 100.0, 2: 137.0, 4: 100.0, 8: 240.0})
        assert (told.kind, told.past) == (ScalingVerdict.CANNOT_TELL, (8,))

    def test_equal_input_gives_an_equal_verdict(self):
        assert verdict(TEACHING) == verdict(TEACHING)

    @settings(deadline=None, derandomize=True)
    @given(st.floats(1e-3, 1e12), st.permutations([50.0, 60.0, 62.5, 100.0]))
    def test_the_unit_of_the_values_does_not_matter(self, scale, values):
        plain = verdict(dict(zip((1, 2, 4, 8), values, strict=True)))
        scaled = verdict(dict(zip((1, 2, 4, 8), [value * scale for value in values], strict=True)))
        assert (plain.kind, plain.members, plain.past) == (scaled.kind, scaled.members, scaled.past)

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.floats(1, 1e6), min_size=2, max_size=5))
    def test_chances_of_being_best_sum_to_one(self, values):
        told = verdict(dict(enumerate(values, start=1)))
        assert sum(row.best_share for row in told.standings) == pytest.approx(1.0)


class TestRefusals:
    def test_one_degree_is_no_curve(self):
        told = verdict({4: 50.0})
        assert (told.kind, told.reason) == (
            ScalingVerdict.CANNOT_TELL,
            "only degree 4 was measured; measure at least one more",
        )

    def test_few_steps_in_a_single_run_are_refused(self):
        told = scaling((Point(1, (100.0,), steps=200), Point(2, (60.0,), steps=12)))
        assert told.reason == "degree 2 has 12 steady steps in a single run; record 20 or more, or more runs"

    def test_few_steps_in_several_runs_are_enough(self):
        told = scaling((Point(1, (100.0, 101.0), steps=12), Point(2, (60.0, 61.0), steps=12)))
        assert (told.kind, told.best) == (ScalingVerdict.STILL_IMPROVING, 2)

    def test_a_degree_known_to_ten_percent_only_is_refused(self):
        told = verdict({1: (100.0, 150.0), 2: (60.0, 40.0)})
        assert told.reason == "degree 1 is known to ±20.3 % only; measure 3 or more runs under equal conditions"

    def test_a_point_needs_positive_values(self):
        with pytest.raises(ValueError, match="positive"):
            Point(4, (0.0,))

    def test_a_series_needs_ascending_degrees(self):
        with pytest.raises(ValueError, match="ascending"):
            PointSeries("", (Point(4, (1.0,)), Point(2, (1.0,))))


class TestEstimates:
    def test_single_runs_get_the_floor_and_the_error_of_their_median(self):
        known = estimates(np.log([[100.0], [60.0]]), np.array([0.0, 0.04]))
        assert known.error == pytest.approx([0.03, 0.05])
        assert known.freedom == (8.0, 8.0)

    def test_three_runs_show_their_own_spread(self):
        known = estimates(np.log([[99.0, 100.0, 101.0], [59.4, 60.0, 60.6]]), np.zeros(2))
        assert known.error == pytest.approx([0.01 / math.sqrt(3)] * 2, rel=1e-3)
        assert known.freedom == (4.0, 4.0)

    def test_two_runs_far_apart_widen_the_floor(self):
        known = estimates(np.log([[90.0, 110.0]]), np.zeros(1))
        assert known.error[0] > RUN_FLOOR * 3

    def test_a_missing_run_is_no_run(self):
        known = estimates(np.log([[100.0, np.nan], [60.0, 60.0]]), np.zeros(2))
        assert known.error == pytest.approx([0.03, 0.03 / math.sqrt(2)])

    def test_the_credible_set_is_the_smallest(self):
        assert credible_set(np.array([0.06, 0.85, 0.09])).tolist() == [False, True, True]
        assert credible_set(np.array([0.05, 0.92, 0.03])).tolist() == [False, True, False]

    def test_a_suspect_point_is_neither_past_nor_a_reference(self):
        draws = np.log(np.array([[100.0, 150.0, 120.0]]))
        shares = past_shares(draws, np.array([False, True, False]))
        assert shares.tolist() == [0.0, 0.0, 1.0]


class TestStatistics:
    @pytest.mark.parametrize(("ranks", "spreads"), [(1, 0.0), (2, 0.56), (4, 1.03), (8, 1.42), (16, 1.77), (64, 2.34)])
    def test_the_latest_of_many_ranks_is_later(self, ranks, spreads):
        assert draws.expected_maximum(ranks) == pytest.approx(spreads, abs=0.006)

    def test_draws_follow_student_t(self):
        drawn = draws.standard_draws(3, (8.0, 8.0, 8.0))
        assert drawn.shape == (4096, 3)
        assert np.quantile(drawn, 0.95, axis=0) == pytest.approx([1.860] * 3, abs=0.02)


class TestCurve:
    def test_the_teaching_series_has_all_three_parts(self):
        fit = curve((1, 2, 4, 8), (100.0, 60.0, 50.0, 62.5))
        assert (fit.fixed_ns, fit.parallel_ns, fit.growing_ns) == pytest.approx((8.9, 90.8, 6.05), abs=0.05)
        assert fit.worst == pytest.approx(0.006, abs=0.001)

    def test_three_degrees_are_too_few(self):
        assert curve((1, 2, 4), (100.0, 60.0, 50.0)) is None

    def test_a_curve_that_only_falls_has_no_growing_part(self):
        assert curve((1, 2, 4, 8), (100.0, 55.0, 30.0, 14.0)).growing_ns == 0.0


def terms(compute, communication, movement=0.0, sync=0.0):
    return {"compute": compute, "communication": communication, "movement": movement, "sync": sync}


def measured(degree, *parts, **facts):
    split = terms(*parts)
    return Point(degree, (sum(split.values()),), split, **facts)


class TestWhatEatsTheGain:
    def test_communication_eats_the_teaching_series(self):
        loss = past_optimum(measured(4, 25.0, 25.0), measured(8, 12.5, 50.0))
        assert (loss.eaten_by, loss.compute_saved_ns, loss.lost_ns) == ("communication", 12.5, 12.5)
        assert loss.added_ns == {"communication": 25.0, "movement": 0.0, "sync": 0.0}
        assert loss.mechanism.startswith("communication grew 2.00x, a ring's bandwidth term only 1.17x")

    def test_without_terms_the_loss_is_unexplained(self):
        loss = past_optimum(Point(4, (50.0,)), Point(8, (62.5,)))
        assert (loss.eaten_by, loss.compute_saved_ns) == ("unexplained", None)
        assert loss.mechanism == "no terms were measured at both degrees; rerun with a profile of each"

    def test_terms_that_do_not_grow_leave_the_loss_unexplained(self):
        loss = past_optimum(Point(4, (50.0,), terms(25.0, 25.0)), Point(8, (62.5,), terms(12.5, 26.0)))
        assert loss.eaten_by == "unexplained"

    def test_terms_that_grow_alike_explain_the_loss_together(self):
        loss = past_optimum(Point(1, (3.0,), terms(2.0, 0.0)), Point(2, (20.0,), terms(8.5, 7.0)))
        assert (loss.eaten_by, loss.compute_saved_ns) == ("communication", -6.5)

    def test_a_slower_rung_is_named(self):
        before, after = Exchange(level="nvlink"), Exchange(level="rdma")
        loss = past_optimum(measured(8, 25.0, 25.0, exchange=before), measured(16, 12.5, 60.0, exchange=after))
        assert loss.mechanism == "slower rung: the group crosses rdma, at degree 8 it stays on nvlink"

    def test_small_messages_are_latency(self):
        small = Exchange(message_bytes=16384)
        loss = past_optimum(measured(4, 25.0, 25.0, exchange=small), measured(8, 12.5, 50.0, exchange=small))
        assert loss.mechanism.startswith("latency: messages of 16.0 KiB")

    def test_shrinking_messages_are_named(self):
        before, after = Exchange(message_bytes=4 << 20), Exchange(message_bytes=1 << 20)
        loss = past_optimum(measured(4, 25.0, 25.0, exchange=before), measured(8, 12.5, 50.0, exchange=after))
        assert loss.mechanism.startswith("smaller messages: 4.00 MiB became 1.00 MiB")

    def test_growth_that_a_bandwidth_term_allows_is_not_called_latency(self):
        loss = past_optimum(measured(2, 25.0, 20.0), measured(4, 24.0, 30.0))
        assert loss.mechanism == "communication grew 1.50x, as a bandwidth term does, while compute stopped shrinking"

    def test_waiting_is_laid_to_more_ranks(self):
        loss = past_optimum(measured(4, 25.0, 5.0, 0.0, 5.0), measured(8, 20.0, 5.0, 0.0, 20.0))
        assert (loss.eaten_by, loss.mechanism) == (
            "sync",
            "more stragglers: a step waits for the latest of 8 ranks, not of 4, 1.38x for random delays",
        )

    def test_a_host_that_cannot_keep_up_is_named(self):
        before = measured(4, 25.0, 5.0, 0.0, 5.0, host_ns=4.0)
        after = measured(8, 20.0, 5.0, 0.0, 20.0, host_ns=18.0)
        assert (
            past_optimum(before, after).mechanism == "fixed host cost: the device waits 18.0 ns of a step for launches"
        )

    def test_replicated_heads_are_named(self):
        loss = past_optimum(measured(8, 25.0, 5.0), measured(16, 35.0, 5.0), kv_heads=8)
        assert (loss.eaten_by, loss.mechanism.split(";")[0]) == (
            "compute",
            "replicated state: 8 KV heads over 16 ranks",
        )

    def test_kernels_that_do_not_shrink_are_named(self):
        loss = past_optimum(measured(4, 25.0, 5.0), measured(8, 30.0, 5.0))
        assert loss.mechanism == "fixed kernel cost: compute keeps 41.7 % of an ideal split"

    def test_a_gain_above_linear_is_memory_not_speed(self):
        before, after = Point(4, (100.0,), memory=Memory(37, 0.99)), Point(8, (40.0,), memory=Memory(0, 0.6))
        assert capacity(before, after, 1.25) == (
            "is faster than the ranks alone explain (125.0 % of linear): capacity or another load a step, not speed; "
            "preemptions fell from 37 to 0 and KV memory in use fell from 99.0 % to 60.0 %"
        )

    def test_a_gain_below_linear_needs_no_memory(self):
        assert capacity(Point(4, (100.0,)), Point(8, (60.0,)), 0.83) == ""
