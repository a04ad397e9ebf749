"""The second opinion without the one who gives it: the refusal, and the words."""

import importlib.metadata

import pytest

from analyzer.errors import UsageError
from analyzer.ingest import hta
from analyzer.ingest.load import load
from analyzer.render.second_opinion import hta_lines

ROW = {
    "rank": 0,
    "window_ns": 200_000,
    "compute_ns": 100_000,
    "non_compute_ns": 60_000,
    "idle_ns": 40_000,
    "device_entries": 90,
    "other_entries": 0,
    "entries_read": 90,
}
PATH = {
    "rank": 3,
    "annotation": "ProfilerStep#12",
    "length_ns": 50_000,
    "bound_ns": {"gpu_compute_bound": 10_000, "cpu_bound": 40_000},
    "longest": [{"name": "aten::mm", "time_ns": 30_000}],
}


def opinion(rows=(ROW,), path=PATH):
    return {"tool": "traceinsight 0.6.1", "breakdown": list(rows), "critical_path": path}


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch, tmp_path):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(hta, "version", absent)
    (tmp_path / "rank0.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2, '
        '"args": {"device": 0, "stream": 7, "correlation": 1}}]}'
    )
    with pytest.raises(UsageError) as error:
        hta.second_opinion(load(tmp_path))
    assert (
        str(error.value)
        == "--second-opinion hta: Holistic Trace Analysis is not installed; pip install 'shardscope[hta]'"
    )


def test_a_host_without_a_device_is_refused_before_it_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(hta, "version", lambda _: "0.6.1")
    (tmp_path / "rank0.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {}}]}'
    )
    reason = "a trace without device work: it reads kernels only"
    assert hta.second_opinion(load(tmp_path)) == {
        "tool": "traceinsight 0.6.1",
        "breakdown": [{"rank": 0, "unknown": reason, "entries_read": 1}],
        "critical_path": {"rank": 0, "annotation": "", "unknown": reason},
    }


def test_a_rank_is_one_line_of_its_three_terms():
    assert hta_lines(opinion())[2] == (
        "rank 0: window 200 µs, compute 100 µs (50.0 %), non-compute 60.0 µs (30.0 %), idle 40.0 µs (20.0 %)"
    )


def test_what_it_left_out_and_took_for_work_is_said():
    line = hta_lines(opinion([{**ROW, "entries_read": 1_000, "other_entries": 1}]))[2]
    assert line.endswith(
        "idle 40.0 µs (20.0 %); leaves out 910 of 1,000 device entries; takes 1 host operation or wait for work"
    )


def test_the_critical_path_names_what_bounds_it_most_first():
    assert hta_lines(opinion())[3:] == [
        "critical path of rank 3, ProfilerStep#12: 50.0 µs, bound by host 80.0 %, kernels 20.0 %",
        "most time on it: aten::mm 30.0 µs",
    ]


def test_what_it_cannot_do_is_unknown_with_the_reason():
    unknown = {"rank": 0, "unknown": "it stopped with IndexError: out of bounds"}
    lines = hta_lines(opinion([{**unknown, "entries_read": 5}], {**unknown, "annotation": ""}))
    assert lines[2:] == [
        "rank 0: unknown (it stopped with IndexError: out of bounds)",
        "critical path of rank 0, the whole trace: unknown (it stopped with IndexError: out of bounds)",
    ]


def test_many_ranks_are_shortened():
    lines = hta_lines(opinion([{**ROW, "rank": rank} for rank in range(10)]))
    assert lines[10] == "… and 2 more ranks (--format json has all)"
