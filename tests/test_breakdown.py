"""The four terms tile the window, whatever runs when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.classify import classify
from analyzer.intervals import Intervals
from analyzer.measures.breakdown import breakdown
from analyzer.measures.window import windowed
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, Origin, Trace
from analyzer.sketch import sketch

NAMES = list(sketch.DEVICE.values())
spans = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 300), st.integers(0, 60), st.integers(7, 9), st.integers(-1, 20)),
    min_size=1,
    max_size=30,
)
host = st.lists(
    st.tuples(
        st.sampled_from(list(sketch.HOST.values())),
        st.integers(0, 300),
        st.integers(0, 60),
        st.integers(1, 2),
        st.integers(-1, 20),
    ),
    max_size=20,
)
marks = st.lists(
    st.tuples(
        st.sampled_from(list(sketch.STEPS.values())), st.integers(0, 300), st.integers(0, 60), st.just(1), st.just(-1)
    ),
    max_size=5,
)


def _columns(rows, shift_ns=0, process=0):
    rows = sorted(rows, key=lambda row: row[1])
    names = Labels.of(row[0] for row in rows)
    start, length, lane, correlation = (np.array([row[at] for row in rows], np.int64) for at in (1, 2, 3, 4))
    start = start + shift_ns
    return names, start, start + length, np.full(len(rows), process, np.int64), lane, correlation


def _trace(device, calls=(), steps=(), *, rank=0, shift_ns=0):
    columns = _columns(device, shift_ns)
    activities = Activities(*columns, classify(columns[0].values), np.full(len(device), ABSENT, np.int64))
    host_events = Events(*_columns(calls, shift_ns, 1))
    marked = Events(*_columns(steps, shift_ns, 1))
    nothing = Events(*_columns([], 0, 1))
    return Trace(rank, Origin("drawn", "cuda"), activities, host_events, nothing, marked, CollectiveRecords.none())


def _totals(run):
    return [
        (
            {kind: part.term(kind).total_ns for kind in Kind},
            {cause: time.total_ns for cause, time in part.causes.items()},
            part.hidden_communication_ns,
            part.hidden_movement_ns,
            part.subclass_ns,
        )
        for part in breakdown(run)
    ]


@given(spans, host, marks)
def test_the_terms_tile_the_window_and_the_causes_tile_the_idle(device, calls, steps):
    (part,) = breakdown(Run("drawn", (_trace(device, calls, steps),)))
    assert sum(part.term(kind).total_ns for kind in Kind) == part.window.total_ns
    assert part.compute | part.communication | part.movement | part.sync == part.window
    assert sum(time.total_ns for time in part.causes.values()) == part.sync.total_ns


def _slower(rows, times):
    return [(name, start * times, length * times, lane, correlation) for name, start, length, lane, correlation in rows]


@given(spans, host, marks, st.integers(1, 20_000))
def test_every_cause_and_a_cut_window_tile_it_on_any_scale(device, calls, steps, times):
    """Launches a few ns to milliseconds ahead, so that starts are late on an empty device."""
    run = Run("drawn", (_trace(*(_slower(rows, times) for rows in (device, calls, steps))),))
    (whole,) = breakdown(run)
    for part in (whole, *breakdown(windowed(run))):
        assert sum(part.term(kind).total_ns for kind in Kind) == part.window.total_ns
        assert set(part.causes) == set(Cause)
        assert sum(time.total_ns for time in part.causes.values()) == part.sync.total_ns
        union = Intervals.empty()
        for time in part.causes.values():
            union |= time
        assert union == part.sync
        assert part.window - whole.window == Intervals.empty()
    assert windowed(windowed(run)) is windowed(run)


@given(spans, host, marks)
def test_subclasses_sum_to_their_term(device, calls, steps):
    (part,) = breakdown(Run("drawn", (_trace(device, calls, steps),)))
    for kind in (Kind.COMPUTE, Kind.COMMUNICATION, Kind.MOVEMENT):
        assert sum(ns for (term, _), ns in part.subclass_ns.items() if term is kind) == part.term(kind).total_ns


@given(spans, host, marks, st.integers(-(10**15), 10**15))
def test_shifting_the_clock_changes_nothing(device, calls, steps, shift_ns):
    assert _totals(Run("a", (_trace(device, calls, steps),))) == _totals(
        Run("b", (_trace(device, calls, steps, shift_ns=shift_ns),))
    )


@given(st.data(), spans)
def test_the_order_of_events_in_the_file_changes_no_term(data, device):
    shuffled = data.draw(st.permutations(device))
    for kind in Kind:
        assert [part.term(kind) for part in breakdown(Run("a", (_trace(device),)))] == [
            part.term(kind) for part in breakdown(Run("b", (_trace(shuffled),)))
        ]


@given(spans, spans, st.integers(1, 50))
def test_relabelling_ranks_changes_no_rank(first, second, up):
    plain = _totals(Run("a", (_trace(first, rank=0), _trace(second, rank=1))))
    renamed = _totals(Run("b", (_trace(first, rank=up), _trace(second, rank=up + 1))))
    assert plain == renamed


def _only(drawing):
    (part,) = breakdown(sketch.read(drawing))
    return part


def test_the_nearest_class_wins_an_instant():
    part = _only("""
        rank 0 stream 7   GGGG....HHHH....
        rank 0 stream 20  ..AAAAAA........
        rank 0 stream 22  ......KKKKKK..GG
    """)
    assert part.compute.total_ns == 60_000
    assert part.communication.total_ns == 40_000
    assert part.movement.total_ns == 40_000
    assert part.sync.total_ns == 20_000
    assert part.hidden_communication_ns == 20_000
    assert part.hidden_movement_ns == 20_000


def test_kernels_that_overlap_on_one_stream_are_not_counted_twice():
    part = _only("""
        rank 0 stream 7   GGGG
        rank 0 stream 7   ..GGGG
    """)
    assert part.compute.total_ns == part.window.total_ns == 60_000


def test_what_no_pattern_knows_is_compute_and_is_counted():
    part = _only("rank 0 stream 7   GGUUUU")
    assert part.compute.total_ns == 60_000
    assert part.unclassified_ns == 40_000


@pytest.mark.parametrize(
    ("drawing", "cause", "idle_ns"),
    [
        ("rank 0 stream 7   GG....GG\nrank 0 host       l....l..", Cause.HOST_LAUNCH, 40_000),
        ("rank 0 stream 7   GG....GG\nrank 0 host       lSSSSl..", Cause.HOST_SYNC, 30_000),
        ("rank 0 stream 7   GG....GG\nrank 0 host       ll......", Cause.STREAM_WAIT, 30_000),
        ("rank 0 stream 7   GG....GG\nrank 0 host       l....l..\nrank 0 steps      DD...DDD", Cause.QUEUE, 30_000),
        ("rank 0 stream 7   GG....GG", Cause.UNKNOWN, 40_000),
        ("rank 0 stream 7   GG....GG\nrank 0 host       g.......", Cause.STREAM_WAIT, 40_000),
    ],
    ids=["launched late", "host blocked", "launched ahead", "between steps", "no launches recorded", "inside a graph"],
)
def test_idle_time_has_its_cause(drawing, cause, idle_ns):
    assert _only(drawing).causes[cause].total_ns == idle_ns
