"""The interval algebra agrees with sets of integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intervals import Intervals

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def _make(pairs):
    start = np.array([start for start, _ in pairs], np.int64)
    return Intervals.from_arrays(start, start + np.array([length for _, length in pairs], np.int64))


def _instants(intervals):
    return {t for a, b in zip(intervals.start_ns, intervals.end_ns, strict=True) for t in range(a, b)}


def _points(pairs):
    return {t for start, length in pairs for t in range(start, start + length)}


@given(spans, spans)
def test_union_intersection_and_difference_are_those_of_sets(left, right):
    a, b = _make(left), _make(right)
    assert _instants(a | b) == _points(left) | _points(right)
    assert _instants(a & b) == _points(left) & _points(right)
    assert _instants(a - b) == _points(left) - _points(right)


@given(spans)
def test_the_length_is_the_number_of_instants(pairs):
    assert _make(pairs).total_ns == len(_points(pairs))


@given(spans)
def test_intervals_are_sorted_disjoint_and_not_empty(pairs):
    made = _make(pairs)
    assert (made.end_ns > made.start_ns).all()
    assert (made.start_ns[1:] > made.end_ns[:-1]).all()


@given(spans, spans)
def test_time_within_spans_is_the_length_of_each_intersection(pairs, windows):
    made = _make(pairs)
    start = np.array([start for start, _ in windows], np.int64)
    end = start + np.array([length for _, length in windows], np.int64)
    expected = [len(_points(pairs) & set(range(a, b))) for a, b in zip(start, end, strict=True)]
    assert made.within(start, end).tolist() == expected


def test_a_span_that_ends_before_it_starts_is_an_error():
    with pytest.raises(ValueError, match=r"span 1 ends before it starts: \[7, 5\) ns"):
        Intervals.from_arrays(np.array([1, 7]), np.array([2, 5]))
