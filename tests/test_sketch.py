"""Drawings become runs."""

import pytest

from analyzer.sketch import sketch


def test_equal_letters_are_one_event_and_a_bar_opens_a_new_one():
    (trace,) = sketch.read("rank 3 stream 7   GGG|GG.G").traces
    assert trace.rank == 3
    assert trace.activities.start_ns.tolist() == [0, 30_000, 70_000]
    assert trace.activities.end_ns.tolist() == [30_000, 60_000, 80_000]


def test_every_letter_of_a_stream_is_known_to_the_patterns_but_the_unknown_one():
    for letter in sketch.DEVICE:
        (trace,) = sketch.read(f"rank 0 stream 7   {letter}").traces
        assert (trace.activities.patterns[0] is None) == (letter == "U"), letter


def test_a_line_outside_the_notation_is_an_error():
    with pytest.raises(ValueError, match="not in the notation: 'rank zero'"):
        sketch.read("rank zero")


def test_a_letter_outside_the_notation_is_an_error():
    with pytest.raises(ValueError, match="letter 'z' is not one of"):
        sketch.read("rank 0 stream 7   GGzz")


def test_a_run_is_drawn_back():
    run = sketch.read("rank 0 stream 7   GGGG..AAHH")
    assert sketch.draw(run, 0, 100_000, columns=10) == "rank 0   GGGG..AAMM"
