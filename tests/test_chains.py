"""Chains are what a walk along each stream finds; what joining saves is each without its longest."""

from hypothesis import given
from hypothesis import strategies as st

from analyzer.measures.chains import beyond_the_longest, chains
from analyzer.model.kind import Kind
from analyzer.sketch import sketch

COLUMN_NS = sketch.COLUMN_NS


def _fits(activities, word):
    return activities.subclass.where(lambda value: value == word)


def _walk(cells, at_least, gap):
    """Runs of `E` cells in a row of one letter a cell, `.` for a pause, each cell an event of its own."""
    runs, current, pause = [], [], 0
    for at, letter in enumerate(cells):
        if letter == ".":
            pause += 1
            continue
        if letter != "E" or pause > gap:
            runs.append(current)
            current = []
        if letter == "E":
            current = [*current, at]
        pause = 0
    return [run for run in [*runs, current] if len(run) >= at_least]


@given(st.text("EG.", min_size=1, max_size=40), st.integers(1, 4), st.integers(0, 3))
def test_chains_are_what_a_walk_finds(cells, at_least, gap):
    drawing = "rank 0 stream 7   G" + "".join("." if cell == "." else f"|{cell}" for cell in cells)
    # Each event takes two columns, of which `|` is one; a pause takes one.
    trace = sketch.read(drawing).traces[0]
    found = chains(trace.activities, _fits(trace.activities, "elementwise"), at_least=at_least, gap_ns=gap * COLUMN_NS)
    expected = _walk(cells, at_least, gap)
    assert found.lengths.tolist() == [len(run) for run in expected]
    assert found.count == len(expected)


def test_a_chain_saves_all_but_its_longest():
    trace = sketch.read("rank 0 stream 7   GGE|EE|EGGEEGG").traces[0]
    found = chains(trace.activities, _fits(trace.activities, "elementwise"), at_least=3, gap_ns=0)
    # `E`, `|EE` and `|E`: one, three and two columns; the chain of one at the end is none.
    assert found.lengths.tolist() == [3]
    assert beyond_the_longest(trace, found, gaps=False, nearer=()).total_ns == 3 * COLUMN_NS


def test_pauses_count_where_asked_and_what_runs_beside_hides():
    trace = sketch.read("rank 0 stream 7   E.E.EE....\nrank 0 stream 9   .A........").traces[0]
    found = chains(trace.activities, _fits(trace.activities, "elementwise"), at_least=3, gap_ns=COLUMN_NS)
    assert beyond_the_longest(trace, found, gaps=False, nearer=()).total_ns == 2 * COLUMN_NS
    assert beyond_the_longest(trace, found, gaps=True, nearer=()).total_ns == 4 * COLUMN_NS
    assert beyond_the_longest(trace, found, gaps=True, nearer=(Kind.COMMUNICATION,)).total_ns == 3 * COLUMN_NS


def test_streams_do_not_break_each_others_chains():
    trace = sketch.read("rank 0 stream 7   E|E|E|E\nrank 0 stream 9   .GGGGGG").traces[0]
    found = chains(trace.activities, _fits(trace.activities, "elementwise"), at_least=4, gap_ns=0)
    assert found.lengths.tolist() == [4]
