"""Which calls of several ranks are one collective."""

from pathlib import Path

import numpy as np
import pytest
from rank_traces import CUSTOM, EXCHANGE, GATHER, GEMM, REDUCE, collectives, process_groups, recorded, trace, uneven

from analyzer.ingest.load import load
from analyzer.matching.collectives import Method, match
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.model.trace import Origin

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
in_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the trace corpus is not at {CORPUS}")


def _early(latest, seed):
    """Starts up to 40 µs before the last rank's, whole nanoseconds."""
    return latest - np.random.default_rng(seed).uniform(0, 40, latest.size).round(3)


def _run(calls=60, first=(0, 0), drop=((), ()), name=REDUCE, **more):
    """Two ranks of one group, the second late; each rank's window starts at a call of its own."""
    latest, traces = uneven(calls), []
    for rank in (0, 1):
        starts = latest if rank else _early(latest, 1)
        kept = [at for at in range(first[rank], calls) if at not in drop[rank]]
        spans = collectives(starts[kept], end_us=latest[kept] + 12, name=name)
        traces.append(trace(rank, spans, **{key: value(rank, kept) for key, value in more.items()}))
    return Run("two", tuple(traces))


def _pairs(run):
    """(row of the first rank, row of the second) of every collective."""
    (group,) = match(run).groups
    return [tuple(row) for row in group.row.tolist()]


def test_calls_of_one_sequence_number_are_one_collective():
    run = _run(first=(0, 5), records=lambda rank, kept: recorded(range(len(kept)), sequence=100 + 5 * rank))
    (group,) = match(run).groups
    assert group.method is Method.SEQUENCE
    assert _pairs(run) == [(at + 5, at) for at in range(55)]


def test_windows_that_start_some_calls_apart_are_shifted_into_place():
    run = _run(first=(0, 7), records=lambda _, kept: recorded(range(len(kept))))
    (group,) = match(run).groups
    assert (group.method, group.shift) == (Method.ORDER, (0, 7))
    assert match(run).method == "process group and order; windows start up to 7 calls apart"


def test_a_call_that_is_missing_on_one_rank_leaves_the_others_matched():
    run = _run(drop=((20, 41), (33,)), records=lambda _, kept: recorded(range(len(kept))))
    assert match(run).matched == (57, 57)
    assert match(run).calls == (58, 59)


def test_a_call_that_no_other_rank_shows_is_in_no_collective():
    run = _run(drop=((), (33,)), records=lambda _, kept: recorded(range(len(kept))))
    assert match(run).collective[0][33] == ABSENT
    assert match(run).collective[0][34] == match(run).collective[1][33] != ABSENT


def test_equal_sizes_tell_calls_apart_where_ends_do_not():
    latest = np.arange(60) * 100.0
    sizes = np.array([4096, 8192, 8192, 4096, 16384] * 12)
    traces = [
        trace(
            rank,
            collectives(latest[first:] - 10, end_us=latest[first:] + 12),
            records=recorded(range(60 - first), n_bytes=sizes[first:]),
            clock_us=5_000.0 * rank,
        )
        for rank, first in ((0, 0), (1, 1))
    ]
    (group,) = match(Run("regular", tuple(traces))).groups
    assert group.shift[1] % 5 == 1


def test_kernels_of_a_graph_replay_are_matched_without_metadata():
    run = _run(name=CUSTOM)
    (group,) = match(run).groups
    assert (group.method, len(group), group.kinds) == (Method.ENDS, 60, ("all_reduce",))
    assert match(run).share == 1.0


def test_kernels_launched_before_the_window_join_the_group_of_their_stream():
    run = _run(records=lambda _, kept: recorded(range(9, len(kept))))
    (group,) = match(run).groups
    assert (group.name, len(group)) == ("0", 60)


def _twins(**origins):
    """Two engines of two ranks, equal in everything but what `origins` says, a microsecond apart."""
    traces = []
    for rank in range(4):
        engine, local = divmod(rank, 2)
        latest = uneven(60, seed=engine) + engine
        starts = latest if local else _early(latest, engine)
        told = {key: value(engine) for key, value in origins.items()}
        path = told.pop("path", f"rank{local}.json")
        traces.append(
            trace(
                rank,
                collectives(starts, end_us=latest + 12),
                records=recorded(range(60), sequence=0),
                origin=Origin(path, "cuda", recorded_rank=local, world_size=2, groups=process_groups((0, 1)), **told),
            )
        )
    return Run("twins", tuple(traces))


@pytest.mark.parametrize(
    ("origins", "told_by"),
    [
        ({"host": "node-{}".format}, "host"),
        ({"placement": lambda engine: {"dp": engine}}, "data-parallel replica"),
        ({"processes": lambda engine: (f"VLLM::Worker_DP{engine}_TP0",)}, "data-parallel replica"),
        ({"path": "engine{}/rank.json".format}, "folder"),
        ({}, "times of collectives"),
    ],
)
def test_two_engines_with_equal_group_names_are_never_one(origins, told_by):
    found = match(_twins(**origins))
    assert sorted(group.ranks for group in found.groups) == [(0, 1), (2, 3)]
    assert found.told_by == told_by


def test_ranks_without_a_trace_are_named():
    latest = uneven(40)
    traces = [
        trace(
            rank,
            collectives(_early(latest, rank), end_us=latest + 12),
            records=recorded(range(40), members=(0, 1, 2, 3)),
            origin=Origin("", "cuda", recorded_rank=rank, world_size=4),
        )
        for rank in (0, 2)
    ]
    found = match(Run("half", tuple(traces)))
    assert found.groups[0].absent == (1, 3)
    assert found.method.endswith("ranks without a trace: 1, 3")


def test_a_member_list_that_is_cut_short_names_nobody_absent():
    run = _run(records=lambda _, kept: recorded(range(len(kept)), members="[0, 1, ..., 7]"))
    (group,) = match(run).groups
    assert (group.ranks, group.absent) == ((0, 1), ())


def test_without_metadata_the_known_rank_group_whose_ends_keep_together_is_taken():
    groups = process_groups((0, 1, 2, 3), (0, 1), (2, 3))
    traces = []
    for rank in range(4):
        latest = uneven(60, seed=rank // 2)
        origin = Origin(
            "", "cuda", recorded_rank=rank, world_size=4, groups=tuple(one for one in groups if rank in one.ranks)
        )
        traces.append(
            trace(rank, collectives(_early(latest, rank + 5), end_us=latest + 12, name=CUSTOM), origin=origin)
        )
    assert sorted(group.ranks for group in match(Run("tp2", tuple(traces))).groups) == [(0, 1), (2, 3)]


def test_a_send_is_matched_with_the_receive_of_its_peer():
    latest = uneven(30)
    traces = [
        trace(
            rank,
            collectives(_early(latest, rank), end_us=latest + 12 + 5 * rank, name=EXCHANGE),
            records=recorded(range(30), members=(0, 1, 2), operation=way, peer=peer),
        )
        for rank, way, peer in ((0, "send", 2), (2, "recv", 0))
    ]
    (group,) = match(Run("stages", tuple(traces))).groups
    assert (group.ranks, group.kinds, len(group)) == ((0, 2), ("send_recv",), 30)


def test_collectives_of_several_kinds_of_one_group_are_in_order():
    latest = uneven(40)
    spans = [
        (REDUCE if at % 2 else GATHER, start, end - start, 7)
        for at, (start, end) in enumerate(zip(_early(latest, 1), latest + 12, strict=True))
    ]
    traces = [
        trace(rank, spans, records=recorded(range(40), operation=["all_gather", "all_reduce"] * 20)) for rank in (0, 1)
    ]
    (group,) = match(Run("kinds", tuple(traces))).groups
    assert group.kind[:4] == ("all_gather", "all_reduce", "all_gather", "all_reduce")


def test_the_posting_of_a_collective_is_not_the_collective():
    latest = uneven(30)
    spans = [("c10d::allreduce_", at - 30, 0.1, 1) for at in latest]
    spans += [("gloo:all_reduce", at - 20, 30, 2) for at in latest]
    run = Run("gloo", tuple(trace(rank, spans) for rank in (0, 1)))
    assert match(run).calls == (30, 30)


def test_a_run_without_collectives_has_none():
    found = match(Run("one", (trace(0, [(GEMM, 0, 10)]),)))
    assert (len(found), found.share, found.method) == (0, 0.0, "none")


@pytest.mark.corpus
@in_corpus
def test_all_calls_of_a_training_job_whose_windows_differ_are_matched():
    found = match(load(CORPUS / "modded_nanogpt_8rank"))
    (group,) = found.groups
    assert found.matched == found.calls == (76, 76, 76, 76, 81, 84, 84, 84)
    assert group.shift == (8, 8, 8, 8, 3, 0, 0, 0)


@pytest.mark.corpus
@in_corpus
def test_dispatch_and_combine_in_a_graph_are_matched_over_eight_ranks():
    found = match(load(CORPUS / "lightllm_ep8_decode"))
    (group,) = found.groups
    assert (group.ranks, len(group), found.share) == (tuple(range(8)), 116, 1.0)


@pytest.mark.corpus
@in_corpus
def test_a_rank_whose_window_starts_one_call_later_is_shifted():
    (group,) = match(load(CORPUS / "torchrec_a2a_optimizer2_4rank")).groups
    assert group.shift == (0, 0, 1, 0)
