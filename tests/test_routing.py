import pytest
from routing_logs import asked, cpu_recipe, hit_rates, log_of, outcomes

from analyzer.routing.policies import ReplaySetup
from analyzer.routing.routing import routing
from analyzer.routing.service import Service
from analyzer.schema.finding import Basis


def test_round_robin_over_two_servers_finds_what_vllm_counted():
    found = outcomes(cpu_recipe(), 2, block_tokens=32)["round_robin"]
    assert found.hit_rate == pytest.approx(0.4333, abs=0.0001)
    assert found.requests == (10, 10)


def test_sticky_sessions_find_what_vllm_counted_under_a_consistent_hash():
    assert outcomes(cpu_recipe(), 2, block_tokens=32)["session_sticky"].hit_rate == 0.7


def test_the_ceiling_is_the_best_possible_rate_of_the_cpu_comparison():
    assert routing(log_of(cpu_recipe(), block_tokens=32), ReplaySetup(2)).ceiling == 0.7


def test_the_tokens_that_round_robin_computes_twice_are_those_the_other_server_had():
    # 21 blocks of 30 in a session were there before, 13 on the server that got the request: 8 × 32 tokens × 5.
    assert outcomes(cpu_recipe(), 2, block_tokens=32)["round_robin"].recomputed_tokens == 1280


def test_the_ceiling_is_exact_where_the_shared_prefix_is_known():
    # 40 prompts of 10 blocks, the first 6 the same in all: 39 × 6 of 400.
    prompts = [(*range(6), *range(100 + 4 * at, 104 + 4 * at)) for at in range(40)]
    assert routing(log_of(asked(*prompts)), ReplaySetup(4)).ceiling == 0.585


def test_a_hit_ends_at_the_first_missing_block():
    # One worker holds 2 blocks: of 1, 2, 3 it keeps 1, 2, so the same prompt again finds two.
    assert hit_rates(asked((1, 2, 3), (1, 2, 3)), 1, capacity=2)["round_robin"] == pytest.approx(2 / 6)


def test_one_block_of_capacity_keeps_only_the_first_of_a_prompt():
    assert hit_rates(asked((1, 2, 3), (1, 2, 3)), 1, capacity=1)["round_robin"] == pytest.approx(1 / 6)


def test_one_block_of_capacity_serves_one_prompt_asked_again_and_again():
    assert hit_rates(asked((1,), (1,), (1,), (1,)), 1, capacity=1)["round_robin"] == 0.75


def test_one_block_of_capacity_finds_nothing_where_two_prompts_alternate():
    assert hit_rates(asked((1,), (2,), (1,), (2,)), 1, capacity=1)["round_robin"] == 0


def test_the_least_recently_used_prompt_goes_first():
    # Capacity 2 after 1, 2, 1, 3: prompt 2 has gone, 1 and 3 are there.
    assert hit_rates(asked((1,), (2,), (1,), (3,), (1,), (3,)), 1, capacity=2)["round_robin"] == 0.5


def test_the_end_of_a_prompt_goes_before_its_beginning():
    # Capacity 4: 1 2 3 4, then 9 drops block 4, so the first prompt finds 3 of its 4.
    assert hit_rates(asked((1, 2, 3, 4), (9,), (1, 2, 3, 4)), 1, capacity=4)["round_robin"] == pytest.approx(3 / 9)


def test_kv_aware_routing_follows_the_prefix_while_its_worker_is_idle():
    found = outcomes(asked((1, 2), (3, 4), (1, 2), (3, 4), (1, 2)), 2)["kv_aware"]
    assert found.hit_rate == 0.6
    assert found.requests == (3, 2)


def test_kv_aware_routing_leaves_the_prefix_when_the_queue_costs_more_than_the_prefill():
    # At 1 block of 10 ns and 1 generated token of 100 ns the holder is busy for 110 ns: recomputing 10 ns is cheaper.
    found = outcomes(asked((1,), (1,), step_ms=0, output_length=1), 2)["kv_aware"]
    assert found.hit_rate == 0
    assert found.requests == (1, 1)


def test_kv_aware_routing_queues_behind_the_prefix_when_the_prefill_costs_more():
    # 20 blocks hold a worker for 200 ns. Half of that later the holder is to be waited for 100 ns, the other worker
    # would compute for 200 ns.
    found = outcomes(asked(range(20), range(20), step_ms=1e-4), 2)["kv_aware"]
    assert found.requests == (2, 0)


def test_recomputing_costs_the_linear_and_the_square_term_of_its_tokens():
    # Round robin sends the same 4 tokens to both workers: 4 × 10 ns + 4² × 0.5 ns.
    found = outcomes(asked((1, 2, 3, 4), (1, 2, 3, 4)), 2, service=Service(10, 0.5, 0))["round_robin"]
    assert (found.recomputed_tokens, found.recompute_time_ns) == (4, 48)


def test_tokens_of_a_partly_filled_last_block_are_counted_once():
    requests = asked((1, 2), (1, 2), input_length=700)
    assert outcomes(requests, 2, block_tokens=512)["round_robin"].recomputed_tokens == 700


def test_a_request_waits_for_those_before_it_on_its_worker():
    # Three prompts of 10 ns at one instant on one worker: first tokens after 10, 20 and 30 ns.
    assert outcomes(asked((1,), (2,), (3,), step_ms=0), 1)["round_robin"].ttft_p50_ns == 20


def test_least_loaded_prefers_an_idle_worker():
    # The first request holds worker 0 for 1 s; the others find worker 1 idle.
    requests = [
        {"timestamp": 0, "hash_ids": [1], "output_length": 10_000_000},
        {"timestamp": 1, "hash_ids": [2], "output_length": 1},
        {"timestamp": 2, "hash_ids": [3], "output_length": 1},
    ]
    assert outcomes(requests, 2)["least_loaded"].requests == (1, 2)


def test_balance_is_the_busiest_worker_over_the_mean():
    # One session of three prompts of 10 ns and one of a single prompt: 30 ns and 10 ns, mean 20 ns.
    requests = asked((1,), (2,), (3,), (4,))
    for request, session in zip(requests, "aaab", strict=True):
        request["session_id"] = session
    found = outcomes(requests, 2)["session_sticky"]
    assert found.busy_ns == (30, 10)
    assert found.balance == 1.5
    assert found.busiest_share == 0.75


def test_conversations_without_ids_are_told_apart_behind_the_prefix_they_share():
    # Three conversations behind one system prompt, two turns each.
    prompts = [(0, 10), (0, 20), (0, 30), (0, 10, 11), (0, 20, 21), (0, 30, 31)]
    found = routing(log_of(asked(*prompts)), ReplaySetup(2))
    assert (found.sessions, found.sessions_basis) == (3, Basis.DERIVED)


def test_sessions_of_the_log_are_taken_as_they_are():
    found = routing(log_of(cpu_recipe()), ReplaySetup(2))
    assert (found.sessions, found.sessions_basis) == (5, Basis.MEASURED)


def test_what_the_engines_found_is_measured_in_tokens():
    requests = asked((1, 2), (1, 2), input_length=1000)
    requests[0]["cached_tokens"], requests[1]["cached_tokens"] = 0, 500
    achieved = routing(log_of(requests), ReplaySetup(2)).achieved
    assert (achieved.hit_rate, achieved.basis, achieved.recomputed_tokens) == (0.25, Basis.MEASURED, 500)


def test_the_rate_of_a_log_that_only_names_workers_is_derived_by_a_replay_on_them():
    requests = asked((1,), (1,), (1,), (1,))
    for request, worker in zip(requests, "xxyx", strict=True):
        request["worker"] = worker
    achieved = routing(log_of(requests), ReplaySetup(1)).achieved
    assert (achieved.hit_rate, achieved.basis, achieved.requests) == (0.5, Basis.DERIVED, (3, 1))


def test_a_log_that_says_nothing_of_its_service_has_achieved_something_unknown():
    assert routing(log_of(asked((1,), (1,))), ReplaySetup(1)).achieved is None


def test_ids_that_are_no_prefixes_leave_the_ceiling_as_the_log_counts_it():
    # 2 and 3 come twice, behind 1 and behind 4: seen before, but no prefix cache can reuse them.
    found = routing(log_of(asked((1, 2, 3), (4, 2, 3))), ReplaySetup(1))
    assert found.ceiling == pytest.approx(2 / 6)
    assert [each.hit_rate for each in found.outcomes] == [0, 0, 0, 0]


def test_a_log_that_asks_for_more_than_the_workers_can_do_is_said_to():
    found = routing(log_of(asked((1,), (2,), (3,), step_ms=1, output_length=1000)), ReplaySetup(1))
    assert any("queues grow through the log" in note.text for note in found.notes)


def test_missing_output_lengths_are_said_to_count_as_no_time():
    notes = routing(log_of(asked((1,), (2,))), ReplaySetup(1)).notes
    assert any(note.text.startswith("2 requests name no output length") for note in notes)
