"""What must not change a diagnosis: where clocks begin, the order of files and events, and how ranks are numbered."""

import json
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import document
from rank_traces import GEMM, REDUCE, recorded, trace
from runs import Draw, build

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.matching.clock import clock
from analyzer.matching.collectives import match
from analyzer.measures.skew import late_rank, late_ranks
from analyzer.measures.waits import waits
from analyzer.model.run import Run
from analyzer.plugins import offers

TIMED = ("activities", "calls", "ops", "annotations")
AT_MOST_NS = 10**17
"""Three years."""


@cache
def _report(run):
    return diagnose(run, offers(rules, "check").values())


def _moved(one, shift_ns):
    """A trace all of whose times are later."""
    columns = {name: getattr(one, name) for name in TIMED}
    return replace(
        one,
        **{
            name: replace(column, start_ns=column.start_ns + shift_ns, end_ns=column.end_ns + shift_ns)
            for name, column in columns.items()
        },
    )


@cache
def _random_run(recording):
    return build(
        Draw(
            np.random.default_rng(6),
            ranks=4,
            tp=4,
            calls=60,
            recording=recording,
            late=2,
            offset_s=0.01,
            shifted=3,
        )
    )[0]


@pytest.mark.parametrize("recording", ["sequence", "nothing"])
@settings(max_examples=3, deadline=None)
@given(shift_ns=st.integers(-AT_MOST_NS, AT_MOST_NS))
def test_a_report_does_not_know_when_the_run_was(recording, shift_ns):
    run = _random_run(recording)
    moved = replace(run, traces=tuple(_moved(one, shift_ns) for one in run.traces))
    assert msgspec.to_builtins(_report(moved)) == msgspec.to_builtins(_report(run))


def _renamed(run, number):
    """The run with other rank numbers, in their order, without lists of ranks."""
    traces = [
        replace(one, rank=number[at], origin=replace(one.origin, recorded_rank=number[at]))
        for at, one in enumerate(run.traces)
    ]
    return replace(run, traces=tuple(sorted(traces, key=lambda one: one.rank)))


@settings(max_examples=4, deadline=None)
@given(number=st.permutations(range(4)))
def test_numbering_ranks_otherwise_renames_the_late_rank_and_moves_no_wait_beyond_the_error(number):
    run = _random_run("nothing")
    other = _renamed(run, number)
    assert match(other).matched == tuple(match(run).matched[number.index(rank)] for rank in range(4))
    assert late_rank(other).rank == number[late_rank(run).rank]
    (before,), (after,) = late_ranks(run), late_ranks(other)
    error_ns = clock(run).error_ns + clock(other).error_ns
    assert abs(before.median_late_ns - after.median_late_ns) <= error_ns
    for at, column in enumerate(waits(run).wait_ns):
        assert int(np.abs(column - waits(other).wait_ns[number[at]]).max()) <= error_ns


@settings(max_examples=4, deadline=None)
@given(shift_ns=st.lists(st.integers(-(10**10), 10**10), min_size=4, max_size=4))
def test_clocks_apart_by_seconds_change_neither_the_matching_nor_the_late_rank(shift_ns):
    run = _random_run("sequence")
    moved = replace(run, traces=tuple(_moved(one, by) for one, by in zip(run.traces, shift_ns, strict=True)))
    for group, same in zip(match(run).groups, match(moved).groups, strict=True):
        np.testing.assert_array_equal(group.row, same.row)
    assert late_rank(moved).rank == late_rank(run).rank == 2


def _recorded_run():
    """Two ranks of which the second comes late to every reduction."""
    traces = []
    for rank in (0, 1):
        spans = []
        for call in range(30):
            begin, product = 120.0 * call, 40.0 + 30 * rank
            spans += [(GEMM, begin, product), (REDUCE, begin + product, 100 - product)]
        one = trace(rank, spans, records=recorded(range(1, 60, 2)))
        traces.append(_moved(one, -int(one.activities.start_ns[0])))
    return Run("two", tuple(traces))


def _write(run, folder, order):
    """Kineto files whose events are in an order, as places of the events in their file."""
    folder.mkdir(exist_ok=True)
    for one in run.traces:
        text = document(one, 2)
        rows = text["traceEvents"]
        text["traceEvents"] = [rows[at] for at in order]
        (folder / f"rank{one.rank}.pt.trace.json").write_text(json.dumps(text))
    return sorted(folder.iterdir())


@settings(max_examples=4, deadline=None)
@given(order=st.permutations(range(60)), files=st.permutations(range(2)))
def test_neither_the_order_of_events_nor_that_of_files_changes_a_report(tmp_path_factory, order, files):
    run = _recorded_run()
    folder = tmp_path_factory.mktemp("run")
    plain = load(*_write(run, folder, range(60)))
    first = msgspec.to_builtins(_report(plain))
    paths = _write(run, folder, order)
    second = msgspec.to_builtins(_report(load(*(paths[at] for at in files))))
    for report in (first, second):
        report["run"].pop("label")
    assert second == first
    assert late_rank(plain).rank == 1
