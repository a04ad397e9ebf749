import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_logs import PLAIN, cpu_recipe, log_of

from analyzer.routing import policies
from analyzer.routing.policies import POLICIES, ReplaySetup
from analyzer.routing.routing import routing


def _path(draw_from):
    return st.lists(st.sampled_from(draw_from), min_size=1, max_size=7).map(tuple)


@st.composite
def _requests(draw):
    """Prompts that are prefixes of a small tree, at few instants, so that ties are common."""
    names = {}
    drawn = []
    for choices in draw(st.lists(_path((0, 0, 1)), min_size=1, max_size=25)):
        blocks = [names.setdefault(choices[: end + 1], len(names)) for end in range(len(choices))]
        at, output = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        drawn.append({"timestamp": at, "hash_ids": blocks, "output_length": output})
    return drawn


@settings(deadline=None, max_examples=60)
@given(_requests(), st.integers(1, 4), st.integers(0, 9))
def test_no_policy_finds_more_than_the_ceiling(requests, workers, capacity):
    found = routing(log_of(requests), ReplaySetup(workers, capacity))
    assert all(each.hit_rate <= found.ceiling + 1e-12 for each in found.outcomes)


@settings(deadline=None, max_examples=60)
@given(_requests())
def test_one_worker_without_limit_reaches_the_ceiling(requests):
    found = routing(log_of(requests), ReplaySetup(1))
    assert all(each.hit_rate == pytest.approx(found.ceiling) for each in found.outcomes)


@settings(deadline=None, max_examples=60)
@given(_requests(), st.integers(1, 4), st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_order_of_equal_timestamps_in_the_file_changes_nothing(requests, workers, capacity, shuffle):
    mixed = list(requests)
    shuffle.shuffle(mixed)
    mixed.sort(key=lambda request: request["timestamp"])
    setup = ReplaySetup(workers, capacity)
    one, other = routing(log_of(requests), setup), routing(log_of(mixed), setup)
    assert one.outcomes == other.outcomes
    assert one.ceiling == other.ceiling


def _block_by_block(log, setup, policy, sessions):
    """Hits of a replay that knows nothing of segments: each worker a list of blocks, the oldest first."""
    held = [[] for _ in range(setup.workers)]
    free_ns, served, hits = [0] * setup.workers, [0] * setup.workers, 0
    every = range(setup.workers)
    for at in range(len(log)):
        now = int(log.arrival_ns[at])
        blocks = log.block[log.first_block[at] : log.first_block[at + 1]].tolist()
        found = [next((n for n, block in enumerate(blocks) if block not in held[w]), len(blocks)) for w in every]
        miss_ns = [10 * (len(blocks) - found[w]) for w in every]
        wait_ns = [max(free_ns[w] - now, 0) for w in every]
        worker = {
            "round_robin": at % setup.workers,
            "session_sticky": sessions[at] % setup.workers,
            "least_loaded": min(every, key=lambda w: (wait_ns[w], served[w], w)),
            "kv_aware": min(every, key=lambda w: (wait_ns[w] + miss_ns[w], served[w], w)),
        }[policy]
        for block in reversed(blocks):
            if block in held[worker]:
                held[worker].remove(block)
            held[worker].append(block)
        if setup.capacity_blocks:
            del held[worker][: -setup.capacity_blocks]
        free_ns[worker] = now + wait_ns[worker] + miss_ns[worker] + 100 * int(log.output_tokens[at])
        served[worker] += 1
        hits += found[worker]
    return hits / log.block.size


@settings(deadline=None, max_examples=150)
@given(_requests(), st.integers(1, 4), st.integers(0, 9), st.sampled_from(tuple(POLICIES)))
def test_a_replay_over_segments_finds_what_one_over_blocks_finds(requests, workers, capacity, policy):
    names = [str(request["hash_ids"][0]) for request in requests]
    for request, name in zip(requests, names, strict=True):
        request["timestamp"] /= 1e5  # tens of nanoseconds apart, so that queues form
        request["session_id"] = name
    log = log_of(requests, block_tokens=1)
    order = {}
    sessions = [order.setdefault(session, len(order)) for session in log.session.tolist()]
    setup = ReplaySetup(workers, capacity, (policy,), PLAIN)
    (found,) = routing(log, setup).outcomes
    assert found.hit_rate == pytest.approx(_block_by_block(log, setup, policy, sessions))


def _lines_run(requests):
    """Lines of Python that a replay under all policies runs, a measure of work that no clock disturbs."""
    log, count = log_of(requests), 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        routing(log, ReplaySetup(4, 200))
    finally:
        sys.settrace(before)
    return count


def test_work_grows_with_the_number_of_requests_and_no_faster():
    def chats(number):
        drawn = random.Random(1)
        prompts = {}
        for at in range(number):
            user = drawn.randrange(20 + at // 20)
            prompts[user] = [*prompts.get(user, []), 10 * at, 10 * at + 1][-12:] if user in prompts else [10 * at]
            yield {"timestamp": at, "hash_ids": list(prompts[user])}

    assert _lines_run(list(chats(1600))) < 4.6 * _lines_run(list(chats(400)))


def test_several_processes_find_what_one_finds(monkeypatch):
    log, setup = log_of(cpu_recipe()), ReplaySetup(2, 20)
    alone = routing(log, setup)
    monkeypatch.setattr(policies, "WORTH_A_PROCESS_REQUESTS", 1)
    monkeypatch.setattr(policies, "cpu_count", lambda: 2)
    assert routing(log, setup) == alone
