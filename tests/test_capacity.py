"""Room for KV cache is told apart from speed."""

import pytest

from analyzer.sweep.capacity import capacity, memory_notes
from analyzer.sweep.point import Memory, Point


def at(degree, **memory):
    return Point(degree, (100.0,), memory=Memory(**memory))


@pytest.mark.parametrize(
    ("before", "after", "efficiency", "told"),
    [
        (at(4), at(8), 0.83, ""),
        (at(4), at(8), 1.25, "preemptions and KV use at both degrees would tell"),
        (at(4, preemptions=0), at(8, preemptions=0), 0.6, ""),
        (
            at(4, preemptions=37),
            at(8, preemptions=2),
            0.83,
            "gains room too: preemptions fell from 37 to 2; its 83.0 %",
        ),
        (at(4, kv_use=0.5), at(8, kv_use=0.2), 0.83, ""),
        (at(4, kv_use=0.95), at(8, kv_use=0.5), 0.83, "KV memory in use fell from 95.0 % to 50.0 %"),
        (at(4, hit_rate=0.2), at(8, hit_rate=0.6), 1.2, "not speed; cache hits rose from 20.0 % to 60.0 %"),
        (at(4, hit_rate=0.2), at(8, hit_rate=0.23), 0.9, ""),
        (at(4, preemptions=0), at(8, preemptions=9), 0.4, "has less room: preemptions rose from 0 to 9; that part"),
        (at(4, preemptions=0), at(8, preemptions=9), 0.6, ""),
        (at(4, hit_rate=0.6), at(8, hit_rate=0.2), 0.4, "cache hits fell from 60.0 % to 20.0 %"),
    ],
)
def test_what_memory_explains(before, after, efficiency, told):
    found = capacity(before, after, efficiency)
    assert told in found
    assert bool(told) == bool(found)


def test_a_gain_that_ends_where_memory_suffices_is_a_knee_of_memory():
    points = (at(2, preemptions=90), at(4, preemptions=0), at(8, preemptions=0))
    assert memory_notes(points, (1.4, 0.55))[-1] == (
        "degree 4 is a knee of memory: up to it each step also added room, beyond it 55.0 % of linear is what the "
        "ranks alone give"
    )


def test_a_gain_that_goes_on_has_no_knee():
    points = (at(2, preemptions=90), at(4, preemptions=0), at(8, preemptions=0))
    assert len(memory_notes(points, (1.4, 0.97))) == 1
