"""Who waits for whom, in cases with known answers."""

from dataclasses import replace

import numpy as np
import pytest

from analyzer.classify import classify
from analyzer.errors import MissingEvidenceError
from analyzer.matching.clock import clock
from analyzer.matching.collectives import match
from analyzer.measures.breakdown import breakdown
from analyzer.measures.skew import late_ranks, wait_matrix
from analyzer.measures.waits import WaitVerdict, is_told, waits
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.kind import Cause
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, Origin, ProcessGroup, Trace

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
CUSTOM = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)"
GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
EPOCH_NS = 1_780_000_000_000_000_000


def _trace(rank, spans, world=2, clock_ns=0):
    """A trace of (name, start_us, duration_us, correlation) spans."""
    spans = sorted(spans, key=lambda span: span[1])
    names = Labels.of(span[0] for span in spans)
    start = np.array([round(span[1] * 1000) for span in spans], np.int64) + EPOCH_NS + clock_ns
    length = np.array([round(span[2] * 1000) for span in spans], np.int64)
    n, blank = len(spans), np.zeros(len(spans), np.int64)
    correlation = np.array([span[3] if len(span) > 3 else ABSENT for span in spans], np.int64)
    activities = Activities(
        names,
        start,
        start + length,
        blank + rank,
        blank + 7,
        correlation,
        classify(names.values),
        np.full(n, ABSENT, np.int64),
    )
    none = Events(Labels.of(()), *[np.zeros(0, np.int64)] * 5)
    origin = Origin(f"rank{rank}.json", "cuda", recorded_rank=rank, world_size=world, host="one")
    return Trace(rank, origin, activities, none, none, none, CollectiveRecords.none())


def _steps(late_us, calls=200, first=0):
    """A product and a reduction each 120 µs; the product takes `late_us` longer, the reduction ends for all alike."""
    rng = np.random.default_rng(7)
    spans = []
    for call in range(calls):
        begin = 120.0 * call
        jitter = float(rng.integers(0, 3))
        if call >= first:
            spans += [(GEMM, begin, 40.0 + late_us), (REDUCE, begin + 40 + late_us, 50.0 + jitter - late_us)]
    return spans


def _two(clock_ns=0, first=0):
    return Run("two", (_trace(0, _steps(0), clock_ns=clock_ns), _trace(1, _steps(30, first=first))))


def _waited_us(run):
    return [int(column.sum()) / 1000 for column in waits(run).wait_ns]


def test_m13_the_late_rank_makes_the_other_wait():
    run = _two()
    assert _waited_us(run) == [6000.0, 0.0]
    (late,) = late_ranks(run)
    assert (late.rank, late.last_share, late.is_persistent, late.median_late_ns) == (1, 1.0, True, 30_000)
    assert late.does[0] == ("compute", 30_000)
    assert wait_matrix(run).tolist() == [[0, 6_000_000], [0, 0]]


def test_m13_waiting_leaves_communication_and_joins_sync():
    first, second = breakdown(_two())
    assert first.causes[Cause.PEER_WAIT].total_ns == 6_000_000
    assert second.causes[Cause.PEER_WAIT].total_ns == 0
    assert first.communication.total_ns == second.communication.total_ns


def test_m14_a_clock_that_is_ahead_changes_no_wait_and_is_reported():
    run = _two(clock_ns=500_000)
    assert _waited_us(run) == [6000.0, 0.0]
    assert late_ranks(run)[0].rank == 1
    offsets = clock(run).offset_ns
    assert abs(offsets[0] - offsets[1]) == 500_000


def test_m15_a_window_that_starts_one_call_later_is_shifted_into_place():
    run = _two(first=1)
    (group,) = match(run).groups
    assert group.shift == (0, 1)
    assert _waited_us(run) == [5970.0, 0.0]
    assert late_ranks(run)[0].median_late_ns == 30_000


ARRIVALS = [
    (10059.675, 10.519, 106.553),
    (10058.178, 11.359, 108.191),
    (10041.112, 31.159, 92.352),
    (9996.036, 72.160, 86.312),
    (10058.924, 11.359, 112.311),
    (10047.108, 22.640, 104.432),
    (10049.015, 21.439, 104.633),
    (10060.203, 12.119, 105.032),
]
"""One all-reduce over 8 ranks on a common clock: start, duration, and the product before it, µs."""


def _recorded(trace):
    """The trace with the metadata of its one reduction."""
    text, one = Labels.of, np.array([1], np.int64)
    records = CollectiveRecords(
        one,
        text(["all_reduce"]),
        text(["0"]),
        text(["default_pg"]),
        text([str(list(range(8)))]),
        one * 8,
        text(["BFloat16"]),
        one * 8192,
        one * 8192,
        one * 17,
        one * ABSENT,
        text([""]),
    )
    return replace(
        trace,
        collectives=records,
        origin=replace(trace.origin, groups=(ProcessGroup("0", "default_pg", 8, tuple(range(8))),)),
    )


def test_f1_more_than_half_of_an_all_reduce_is_waiting_for_the_latest_rank():
    traces = [
        _trace(rank, [(GEMM, start - product - 1, product), (REDUCE, start, length)], world=8)
        for rank, (start, length, product) in enumerate(ARRIVALS)
    ]
    run = Run("f1", tuple(_recorded(trace) for trace in traces))
    (part,) = waits(run).groups
    assert part.is_by_arrival
    assert part.wait_ns.tolist() == [[528, 2_025, 19_091, 64_167, 1_279, 13_095, 11_188, 0]]
    assert (int(part.wait_ns.sum()), int(part.duration_ns.sum())) == (111_373, 192_754)
    assert f"{part.share:.3f}" == "0.578"
    assert clock(run).error_ns <= 4_126
    assert late_ranks(run)[0].rank == 7
    assert float(np.median((part.duration_ns - part.wait_ns) / 1000)) == pytest.approx(10.0355)
    assert int(part.duration_ns.min()) == 10_519


def test_f2_two_thirds_of_an_all_reduce_are_waiting():
    def spans(product_us):
        begins = [51_400.0 * call for call in range(20)]
        products = [(GEMM, begin, product_us) for begin in begins]
        return [*products, *((REDUCE, begin + product_us, 51_340.0 - product_us) for begin in begins)]

    run = Run("f2", (_trace(0, spans(100.0)), _trace(1, spans(34_690.0))))
    assert _waited_us(run) == [20 * 34_590.0, 0.0]
    (part,) = waits(run).groups
    assert f"{part.wait_ns[:, 0].sum() / part.duration_ns[:, 0].sum():.3f}" == "0.675"
    assert [rank.communication.total_ns for rank in breakdown(run)] == [20 * 16_650_000] * 2


def test_f7_one_stalled_collective_among_equals_is_no_transfer():
    def spans(stalls):
        found, at = [], 0.0
        for call in range(60):
            length = 1_051_000.0 if call == 30 and stalls else 900.0
            begin = at if stalls or call != 30 else at + 1_050_100.0
            found.append((REDUCE, begin, length))
            at += (1_051_000.0 if call == 30 else 900.0) + 100.0
        return found

    run = Run("f7", (_trace(0, spans(stalls=True)), _trace(1, spans(stalls=False))))
    assert _waited_us(run) == [1_050_100.0, 0.0]


def test_f22_reductions_of_a_graph_replay_are_matched_by_order():
    def spans(early_us):
        return [(CUSTOM, 1000.0 * call + (31.578 - early_us), 10 + early_us, 5) for call in range(87)]

    run = Run("f22", (_trace(0, spans(31.578)), _trace(1, spans(0.0))))
    assert len(match(run)) == 87
    assert _waited_us(run)[0] == pytest.approx(2747.286)
    (part,) = waits(run).groups
    assert part.verdict is WaitVerdict.SKEW


def test_one_rank_alone_cannot_tell():
    run = Run("one", (_trace(0, _steps(0)),))
    with pytest.raises(MissingEvidenceError, match="one rank's trace alone cannot tell waiting from transfer"):
        waits(run)
    assert breakdown(run)[0].causes[Cause.PEER_WAIT].total_ns == 0


def test_equal_ranks_do_not_wait_and_nobody_is_late():
    run = Run("equal", (_trace(0, _steps(0)), _trace(1, _steps(0))))
    assert _waited_us(run) == [0.0, 0.0]
    (part,) = waits(run).groups
    assert part.verdict is WaitVerdict.TRANSFER


def test_waiting_that_is_not_told_is_never_called_measured():
    assert is_told(_two(), "all_reduce")
    assert not is_told(_two(), "dispatch")
    assert not is_told(Run("one", (_trace(0, _steps(0)),)), "all_reduce")
