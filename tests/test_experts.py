"""Expert load, the bytes of its exchange, and pipelines: formulas with their known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.measures.experts import traffic
from analyzer.measures.experts.balance import ImbalanceCause, imbalance, load, random_imbalance, ranks_of, rebalanced
from analyzer.measures.experts.traffic import ExpertRouting
from analyzer.measures.pipeline import pipeline

EXPERTS, TOPK = 256, 8


def routed(tokens, popularity, *, steps=2, layers=4):
    """Counts [steps, layers, experts] of tokens that each go to eight distinct experts, by Zipf popularity."""
    random = np.random.default_rng(3)
    counts = np.zeros((steps, layers, EXPERTS), np.int64)
    for layer in range(layers):
        weight = -popularity * np.log(random.permutation(EXPERTS) + 1.0)
        for step in range(steps):
            keys = weight + random.gumbel(size=(tokens, EXPERTS))
            chosen = np.argpartition(-keys, TOPK, axis=1)[:, :TOPK]
            counts[step, layer] = np.bincount(chosen.ravel(), minlength=EXPERTS)
    return counts


class TestLoad:
    def test_imbalance_is_the_fullest_over_the_mean(self):
        assert imbalance(np.array([[10, 10, 20, 0], [10, 10, 10, 10]])) == pytest.approx(1.5)

    def test_a_layer_without_tokens_says_nothing(self):
        assert imbalance(np.array([[30, 10], [0, 0]])) == pytest.approx(1.5)

    def test_no_tokens_at_all_is_no_load(self):
        with pytest.raises(ValueError, match="no tokens"):
            imbalance(np.zeros((2, 4), np.int64))

    def test_experts_are_placed_in_order(self):
        assert ranks_of(np.array([[1, 2, 3, 4]]), 2).tolist() == [[3, 7]]

    def test_experts_that_do_not_divide_are_refused(self):
        with pytest.raises(UsageError, match="60 experts do not divide by 8 ranks"):
            ranks_of(np.ones((1, 60), np.int64), 8)

    @pytest.mark.parametrize(("tokens", "expected"), [(64, 1.36), (256, 1.18), (1024, 1.09)])
    def test_chance_alone_loads_ranks_unevenly(self, tokens, expected):
        assert random_imbalance(64, tokens) == pytest.approx(expected, abs=0.005)

    def test_chance_is_called_noise_and_falls_with_tokens(self):
        few, many = (load(ranks_of(routed(tokens, 0.0), 32)) for tokens in (256, 1024))
        assert (few.cause, many.cause) == (ImbalanceCause.NOISE, ImbalanceCause.NOISE)
        assert few.imbalance == pytest.approx(1.27, abs=0.03)
        assert many.imbalance == pytest.approx(1.13, abs=0.03)
        assert few.imbalance < few.random

    def test_popular_experts_are_called_skew_and_do_not_fall_with_tokens(self):
        few, many = (load(ranks_of(routed(tokens, 0.4), 32)) for tokens in (256, 1024))
        assert (few.cause, many.cause) == (ImbalanceCause.SKEW, ImbalanceCause.SKEW)
        assert few.lasting == pytest.approx(1.6, abs=0.15)
        assert many.lasting == pytest.approx(1.6, abs=0.15)

    def test_large_steps_of_random_tokens_are_balanced(self):
        assert load(ranks_of(routed(2048, 0.0), 8)).cause is ImbalanceCause.BALANCED

    def test_the_mean_rank_waits_for_the_fullest(self):
        told = load(np.array([[[100, 100, 100, 200]]]))
        assert told.imbalance == pytest.approx(1.6)
        assert told.advice[0][-1] == "Rebalance with redundant experts."

    def test_redundant_experts_take_skew_away(self):
        counts = routed(1024, 0.4).sum(0)
        before = imbalance(ranks_of(counts, 32))
        placed, doubled = rebalanced(counts, 32), rebalanced(counts, 32, redundant=32)
        assert before > placed > doubled
        assert doubled == pytest.approx(1.0, abs=0.02)

    def test_one_expert_that_has_all_tokens_needs_copies(self):
        counts = np.array([[80, 0, 0, 0]])
        assert rebalanced(counts, 4) == pytest.approx(4.0)
        # five copies of 16 tokens on four ranks: one rank holds two of them, the mean is 20
        assert rebalanced(counts, 4, redundant=4) == pytest.approx(1.6)

    def test_copies_that_do_not_divide_are_refused(self):
        with pytest.raises(UsageError, match="257 copies"):
            rebalanced(np.ones((1, 256), np.int64), 8, redundant=1)

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 1000), min_size=8, max_size=8).filter(any))
    def test_a_placement_never_beats_an_even_load(self, tokens):
        assert rebalanced(np.array([tokens]), 4) >= 1.0 - 1e-9


class TestExchange:
    def test_deepep_low_latency_sends_one_message_an_expert(self):
        assert traffic.low_latency_bytes(ExpertRouting(1, 7168, 8, 256, 64)) == 59_264
        assert traffic.combine_bytes(ExpertRouting(1, 7168, 8, 256, 64)) == pytest.approx(114_688 * 63 / 64)

    @pytest.mark.parametrize(("nodes", "others"), [(2, 1.0), (4, 2.7), (8, 4.6)])
    def test_tokens_reach_most_of_a_few_nodes(self, nodes, others):
        assert traffic.remote_nodes(256, 8, nodes) == pytest.approx(others, abs=0.05)

    def test_direct_dispatch_sends_a_copy_an_expert(self):
        # 128 tokens × 8 experts × (7168 + 224) bytes, 7 of 8 to other ranks
        assert traffic.dispatch_bytes(ExpertRouting(128, 7168, 8, 256, 8)) == 6_623_232

    def test_one_copy_a_node_is_less_than_one_an_expert(self):
        layer = ExpertRouting(128, 7168, 8, 256, 16, nodes=2)
        assert traffic.network_bytes(layer) == pytest.approx(128 * 0.9965 * 7392, rel=1e-3)
        assert traffic.network_bytes(layer) < traffic.dispatch_bytes(layer)

    def test_movement_grows_as_locality_falls(self):
        sent = [traffic.dispatch_bytes(ExpertRouting(128, 7168, 8, 256, ranks)) for ranks in (1, 2, 8, 64)]
        assert sent == pytest.approx([0.0, 3_784_704, 6_623_232, 7_451_136])

    @pytest.mark.parametrize(
        ("layer", "name"),
        [
            (ExpertRouting(64, 7168, 8, 256, 4), "allgather_reducescatter"),
            (ExpertRouting(64, 7168, 8, 256, 32, nodes=4), "deepep_low_latency"),
            (ExpertRouting(4096, 7168, 8, 256, 32, nodes=4), "deepep_high_throughput"),
        ],
    )
    def test_the_sizes_speak_for_an_exchange(self, layer, name):
        assert traffic.backend(layer) == name


class TestPipelines:
    def test_the_published_stage_table(self):
        told = pipeline((3.153, *[3.150] * 6, 3.901))
        assert told.cycle_ns == 3.901
        assert told.slowest == 7
        assert told.balance == pytest.approx(0.832, abs=0.0005)
        assert told.speedup == pytest.approx(6.65, abs=0.005)

    def test_the_slow_stage_is_not_the_bubble(self):
        told = pipeline((3.153e6, *[3.150e6] * 6, 3.901e6))
        assert told.sentence == (
            "6.65x from 8 stages: not the bubble (0.0 %) but the slowest stage (16.8 %): "
            "stage 7 takes 3.90 ms, the mean 3.24 ms"
        )

    def test_equal_stages_lose_the_bubble_only(self):
        told = pipeline((5.0,) * 4, micro_batches=8)
        assert (told.bubble_share, told.imbalance_share) == (pytest.approx(3 / 11), pytest.approx(0.0))
        assert told.sentence.startswith("4.00x from 4 stages: the bubble takes 27.3 % with 8 micro-batches")

    def test_one_micro_batch_uses_one_stage_at_a_time(self):
        told = pipeline((5.0,) * 4, micro_batches=1)
        assert told.bubble_share == pytest.approx(0.75)

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9), st.integers(1, 100))
    def test_what_is_not_lost_is_work(self, stages, batches):
        told = pipeline(tuple(stages), batches)
        whole = sum(stages) + (batches - 1) * max(stages)
        work = batches * sum(stages) / (len(stages) * whole)
        assert told.bubble_share + told.imbalance_share == pytest.approx(1 - work, abs=1e-9)

    def test_a_stage_takes_time(self):
        with pytest.raises(ValueError, match="stages take time"):
            pipeline((3.0, 0.0))
