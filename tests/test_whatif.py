"""One run at another degree: classes, ranges, refusals, bounds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.measures.ring import LL_BASE_NS, LL_HOP_NS, RingLink, ring_ns
from analyzer.schema.finding import Basis
from analyzer.whatif.ceilings import ceilings, marginal
from analyzer.whatif.expectation import expected_ns, what_if
from analyzer.whatif.limits import Facts, Refusal
from analyzer.whatif.time_classes import ClassTime, ScalingBehavior, Step

MS = 1e6
NVLINK = RingLink(LL_BASE_NS, LL_HOP_NS["nvlink"], 200e9)


def nvlink(operation, message_bytes, ranks):
    return ring_ns(NVLINK, operation, message_bytes, ranks)


def network(operation, message_bytes, ranks):
    return ring_ns(RingLink(LL_BASE_NS, LL_HOP_NS["network"], 20e9), operation, message_bytes, ranks)


def step(*classes, degree=4, reference=nvlink, **facts):
    return Step(degree, classes, reference, Facts(**facts))


GEMM = ClassTime("gemm", ScalingBehavior.GEMM, 30 * MS, 400)
ALL_REDUCE = ClassTime("all-reduce", ScalingBehavior.COLLECTIVE, 3 * MS, 160, message_bytes=1 << 20)


class TestClasses:
    def test_a_gemm_is_divided_above_its_floor(self):
        # 400 calls × 3 µs stay, the other 28.8 ms halve
        assert expected_ns(GEMM, step(GEMM), 8) == pytest.approx(15.6 * MS)

    def test_a_gemm_at_its_floor_gains_nothing(self):
        small = ClassTime("gemm", ScalingBehavior.GEMM, 0.9 * MS, 400)
        assert expected_ns(small, step(small), 8) == pytest.approx(0.9 * MS)

    def test_fewer_ranks_mean_more_compute_each(self):
        assert expected_ns(GEMM, step(GEMM), 2) == pytest.approx(58.8 * MS)

    def test_attention_stops_shrinking_where_heads_are_replicated(self):
        attention = ClassTime("attention", ScalingBehavior.ATTENTION, 10 * MS, 80, floor_ns=0.0)
        assert expected_ns(attention, step(attention, kv_heads=8), 8) == pytest.approx(5 * MS)
        assert expected_ns(attention, step(attention, kv_heads=4), 8) == pytest.approx(10 * MS)

    def test_short_attention_kernels_gain_nothing(self):
        attention = ClassTime("attention", ScalingBehavior.ATTENTION, 0.7 * MS, 80)
        assert expected_ns(attention, step(attention), 8) == pytest.approx(0.7 * MS)

    def test_a_collective_grows_as_its_reference_does(self):
        small = ClassTime("all-reduce", ScalingBehavior.COLLECTIVE, 1.632 * MS, 160, message_bytes=0)
        # base 6.6 µs; 6 hops at four ranks, 14 at eight: 10.2 µs → 15.0 µs
        assert expected_ns(small, step(small), 8) == pytest.approx(2.4 * MS)

    def test_what_sets_exchanges_up_goes_with_the_last_peer(self):
        setup = ClassTime("comm_setup", ScalingBehavior.SETUP, 2 * MS)
        assert [expected_ns(setup, step(setup), degree) for degree in (1, 2, 8)] == [0.0, 2 * MS, 2 * MS]

    def test_one_rank_needs_no_collective(self):
        assert expected_ns(ALL_REDUCE, step(ALL_REDUCE, degree=2), 1) == 0.0

    def test_random_waits_grow_and_a_late_rank_stays_late(self):
        random = ClassTime("waits", ScalingBehavior.WAIT, 2 * MS)
        late = ClassTime("waits", ScalingBehavior.WAIT, 2 * MS, persistent=True)
        assert expected_ns(random, step(random), 8) == pytest.approx(2.77 * MS, rel=0.01)
        assert expected_ns(late, step(late), 8) == 2 * MS

    def test_replicated_work_and_host_time_stay(self):
        for sort in (ScalingBehavior.REPLICATED, ScalingBehavior.HOST):
            part = ClassTime("rest", sort, 2 * MS)
            assert expected_ns(part, step(part), 8) == 2 * MS

    def test_sharded_state_moves_less(self):
        sharded, whole = (
            ClassTime("kv", ScalingBehavior.MOVEMENT, 2 * MS, sharded=True),
            ClassTime("kv", ScalingBehavior.MOVEMENT, 2 * MS),
        )
        assert expected_ns(sharded, step(sharded), 8) == 1 * MS
        assert expected_ns(whole, step(whole), 8) == 2 * MS


class TestRanges:
    def test_compute_that_dominates_is_expected_to_shrink(self):
        told = what_if(step(GEMM, ALL_REDUCE), 8)
        assert (told.direction, told.basis) == ("faster", Basis.MODEL)
        assert told.low_ns < 19.6 * MS < told.high_ns
        assert told.sentence("TP8") == "expected at TP8 from one run: 16.3 ms to 24.2 ms (now 33.0 ms); expected faster"

    def test_a_small_change_gets_no_direction(self):
        flat = ClassTime("norms", ScalingBehavior.REPLICATED, 30 * MS)
        told = what_if(step(flat, ALL_REDUCE), 8)
        assert told.direction == ""
        assert told.sentence("TP8").endswith("; no verdict")

    def test_a_slow_network_is_expected_to_cost(self):
        small = ClassTime("gemm", ScalingBehavior.GEMM, 5 * MS, 400)
        told = what_if(step(small, ALL_REDUCE, degree=8), 16, network)
        assert told.direction == "slower"

    def test_unknown_classes_widen_the_range(self):
        other = ClassTime("other", ScalingBehavior.UNKNOWN, 10 * MS)
        known = what_if(step(GEMM, ClassTime("norms", ScalingBehavior.REPLICATED, 10 * MS)), 8)
        told = what_if(step(GEMM, other), 8)
        assert told.high_ns - told.low_ns > known.high_ns - known.low_ns
        assert told.notes == ("10.0 ms of unknown classes may shrink with the degree or stay as they are",)

    def test_one_rank_adds_the_collectives_of_its_layers(self):
        told = what_if(step(GEMM, degree=1, added_calls=160, added_bytes=1 << 20), 2)
        bare = what_if(step(GEMM, degree=1, added_calls=0, added_bytes=1 << 20), 2)
        # 160 × (6.6 + 2 × 0.6 + 5.2) µs
        assert told.low_ns - bare.low_ns == pytest.approx(2.1 * MS, rel=0.3)

    def test_one_rank_shows_too_little_to_expect_a_gain(self):
        told = what_if(step(GEMM, degree=1, added_calls=8.0, added_bytes=1 << 16), 2)
        assert told.high_ns < 0.8 * told.now_ns
        assert told.direction == ""
        assert told.notes[0].startswith("a run at degree 1 shows no waiting for peers")

    def test_ranks_on_a_host_get_no_direction(self):
        told = what_if(step(GEMM, ALL_REDUCE, on_host=True), 8)
        assert (told.direction, what_if(step(GEMM, ALL_REDUCE), 8).direction) == ("", "faster")
        assert told.notes[0].startswith("the ranks compute on the cores of a host")

    def test_the_same_question_gets_the_same_range(self):
        assert what_if(step(GEMM, ALL_REDUCE), 8) == what_if(step(GEMM, ALL_REDUCE), 8)

    @settings(deadline=None, derandomize=True)
    @given(st.floats(0.1, 1e3), st.sampled_from([2, 8, 16]))
    def test_the_range_scales_with_the_step(self, scale, degree):
        part = ClassTime("gemm", ScalingBehavior.GEMM, 30 * MS * scale, 400, floor_ns=3000.0 * scale)
        whole = what_if(step(part), degree)
        plain = what_if(step(GEMM), degree)
        assert whole.low_ns == pytest.approx(plain.low_ns * scale)
        assert whole.direction == plain.direction


class TestRefusals:
    @pytest.mark.parametrize(
        ("asked", "degree", "reason"),
        [
            (
                step(GEMM, ClassTime("other", ScalingBehavior.UNKNOWN, 15 * MS)),
                8,
                "33.3 % of the step is in classes that nothing scales; at most 30 % may be",
            ),
            (
                step(ALL_REDUCE, ClassTime("all-reduce", ScalingBehavior.COLLECTIVE, 3 * MS)),
                8,
                "50.0 % of the step is in classes that nothing scales; at most 30 % may be",
            ),
            (
                step(GEMM, ClassTime("launches", ScalingBehavior.HOST, 30 * MS)),
                8,
                "the device waits for the host 50.0 % of the step; use CUDA graphs and record again",
            ),
            (step(GEMM, degree=2), 16, "degree 16 is more than four times away from 2; measure one in between"),
            (
                step(GEMM, degree=8, node_ranks=8),
                16,
                (
                    "degree 16 leaves the node of 8 ranks, and the network's figures are absent; "
                    "give a table of nccl-tests over two nodes"
                ),
            ),
            (step(GEMM, query_heads=28), 8, "28 query heads do not divide by 8"),
            (step(GEMM, query_heads=24, kv_heads=6), 8, "6 KV heads neither divide by 8 nor into it"),
            (step(GEMM, experts=60), 8, "60 experts do not divide by 8"),
            (
                step(GEMM, weights_bytes=140 << 30, kv_bytes=20 << 30, capacity_bytes=80 << 30),
                2,
                "degree 2 needs 121 GiB a device, which has 80.0 GiB",
            ),
            (
                step(GEMM, degree=1),
                2,
                "the run at degree 1 holds no collective to scale; state layers, tokens and hidden size of the step",
            ),
            (
                step(GEMM, ALL_REDUCE, reference=None),
                8,
                "nothing is known of the speed of the links; name a device that has like ones with --platform",
            ),
        ],
    )
    def test_a_limit_is_one_sentence(self, asked, degree, reason):
        assert what_if(asked, degree) == Refusal(degree, (reason,))

    def test_figures_of_the_network_lift_the_limit_of_the_node(self):
        assert not isinstance(what_if(step(GEMM, degree=8, node_ranks=8), 16, network), Refusal)

    def test_the_measured_degree_is_no_question(self):
        with pytest.raises(UsageError, match="is the one that was measured"):
            what_if(step(GEMM), 4)


class TestBounds:
    def test_a_doubling_saves_at_most_half_the_compute(self):
        told = marginal(step(GEMM, ALL_REDUCE))
        assert (told.degree, told.saves_ns) == (8, 15 * MS)
        # an all-reduce of 1 MiB: 10.2 + 7.9 µs at four ranks, 15.0 + 9.2 µs at eight
        assert told.adds_ns == pytest.approx(1.015 * MS, rel=0.001)
        assert told.floor_ns == pytest.approx(1.2 * MS)
        assert told.sentence("TP8") == (
            "doubling to TP8 saves at most 15.0 ms of compute, adds about 1.01 ms of communication and waiting; "
            "no degree goes below 1.20 ms"
        )

    def test_ceilings_come_largest_first_and_only_where_there_is_something_to_save(self):
        bounds = ceilings(
            step(
                GEMM,
                ALL_REDUCE,
                ClassTime("waits", ScalingBehavior.WAIT, 4 * MS),
                ClassTime("experts", ScalingBehavior.EXPERTS, 10 * MS, imbalance=1.25),
            )
        )
        assert [(bound.name, bound.basis) for bound in bounds] == [
            ("without waits", Basis.DERIVED),
            ("with balanced experts", Basis.DERIVED),
            ("with half the all-reduce latency", Basis.MODEL),
        ]
        assert [bound.saved_ns for bound in bounds] == pytest.approx([4 * MS, 2 * MS, 0.816 * MS])
        assert bounds[0].sentence == "without waits: at most 4.00 ms less (8.5 % of the step)"


class TestTheRing:
    @pytest.mark.parametrize(("ranks", "us"), [(1, 0.0), (2, 7.8), (4, 10.2), (8, 15.0)])
    def test_small_all_reduces_cost_what_nccl_says(self, ranks, us):
        assert nvlink("all_reduce", 0, ranks) == pytest.approx(us * 1000)

    def test_half_the_hops_gather(self):
        assert nvlink("all_gather", 0, 8) == pytest.approx(10_800)

    def test_a_send_has_no_hops(self):
        assert nvlink("send", 200_000, 8) == pytest.approx(7600)
