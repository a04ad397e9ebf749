"""What lies in a directory becomes one run, or one clear line."""

import gzip
import json

import pytest
from kineto_files import BASE_NS, document, write

from analyzer.errors import RunNotFoundError, TraceFormatError
from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.measures.traffic import traffic
from analyzer.model.kind import Kind
from analyzer.sketch import sketch

TWO_RANKS = """
    layout tp=2
    message 65536
    rank 0 stream 7   GGGG....GGGG..HH
    rank 0 stream 20  ....AAAA........
    rank 0 host       l...l...l.....l.
    rank 1 stream 7   GGGG....GGGG..HH
    rank 1 stream 20  ....AAAA........
    rank 1 host       l...l...l.....l.
"""


def test_a_drawing_survives_the_way_through_files(tmp_path):
    drawn = sketch.read(TWO_RANKS)
    loaded = load(write(drawn, tmp_path))
    assert loaded.ranks == (0, 1)
    for before, after in zip(breakdown(drawn), breakdown(loaded), strict=True):
        assert {kind: before.term(kind).total_ns for kind in Kind} == {kind: after.term(kind).total_ns for kind in Kind}
        assert {cause: time.total_ns for cause, time in before.causes.items()} == {
            cause: time.total_ns for cause, time in after.causes.items()
        }
    assert [(row.kind, row.count, row.message_bytes, row.group) for row in traffic(loaded)] == [
        ("all_reduce", 1, 65536, (0, 1))
    ]


def test_plain_and_gzip_read_alike_whatever_the_extension(tmp_path):
    plain = write(sketch.read(TWO_RANKS), tmp_path / "plain")
    packed = tmp_path / "packed"
    packed.mkdir()
    for path in plain.iterdir():
        (packed / path.name).write_bytes(gzip.compress(path.read_bytes()))
    assert (
        [part.compute.total_ns for part in breakdown(load(plain))]
        == [part.compute.total_ns for part in breakdown(load(packed))]
        == [80_000, 80_000]
    )


def test_a_glob_a_file_and_several_paths_name_a_run(tmp_path):
    folder = write(sketch.read(TWO_RANKS), tmp_path)
    files = sorted(folder.iterdir())
    assert load(folder / "rank*.json").ranks == (0, 1)
    assert load(files[1]).ranks == (1,)
    assert load(*files).ranks == (0, 1)


def test_other_files_in_the_directory_are_left_out_and_said(tmp_path):
    folder = write(sketch.read(TWO_RANKS), tmp_path)
    (folder / "notes.json").write_text('{"a": 1}')
    (folder / "README.md").write_text("hello")
    (folder / "execution_trace.json").write_text('{"schema": "1.0.1", "nodes": []}')
    run = load(folder)
    assert run.ranks == (0, 1)
    assert any("notes.json" in note.text for note in run.notes)


def test_a_directory_without_traces_is_one_clear_line(tmp_path):
    (tmp_path / "README.md").write_text("hello")
    with pytest.raises(RunNotFoundError, match=r"no trace among 1 file \(README.md\); traces end in"):
        load(tmp_path)


def test_a_place_that_is_not_there_is_one_clear_line(tmp_path):
    with pytest.raises(RunNotFoundError, match="no such file or directory"):
        load(tmp_path / "nowhere")


def test_the_one_file_named_says_why_it_is_no_trace(tmp_path):
    path = tmp_path / "page.json"
    path.write_text("<html>404</html>")
    with pytest.raises(TraceFormatError, match=r"page\.json"):
        load(path)


def _drawn_file(folder, name, rank=0, world=1, shift_us=0.0, host=None):
    (trace,) = sketch.read(f"rank {rank} stream 7   GGGG..GGGG").traces
    file = document(trace, world)
    for event in file["traceEvents"]:
        event["ts"] += shift_us
    if host:
        file["host_name"] = host
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(file))


def test_of_repeated_profiles_the_latest_is_read_and_the_rest_said(tmp_path):
    _drawn_file(tmp_path, f"rank0.{BASE_NS}.pt.trace.json")
    _drawn_file(tmp_path, f"rank0.{BASE_NS + 10**9}.pt.trace.json", shift_us=10_000_000.0)
    run = load(tmp_path)
    assert [trace.origin.path for trace in run.traces] == [str(tmp_path / f"rank0.{BASE_NS + 10**9}.pt.trace.json")]
    assert any(note.text.startswith("2 profiles of the same ranks") for note in run.notes)


def test_replicas_that_all_are_rank_0_of_1_are_numbered_and_said(tmp_path):
    _drawn_file(tmp_path, "a_10.1782967788000000001.pt.trace.json", host="a")
    _drawn_file(tmp_path, "b_11.1782967788000000002.pt.trace.json", host="b", shift_us=3.0)
    run = load(tmp_path)
    assert run.ranks == (0, 1)
    assert [trace.origin.host for trace in run.traces] == ["a", "b"]
    assert any("call themselves rank 0 of 1" in note.text for note in run.notes)


def test_two_files_that_claim_one_rank_at_one_time_are_both_kept_and_said(tmp_path):
    _drawn_file(tmp_path, "first.json", rank=1, world=2)
    _drawn_file(tmp_path, "second.json", rank=1, world=2, shift_us=2.0)
    run = load(tmp_path)
    assert len(run.traces) == 2
    assert any("claim rank 1" in note.text for note in run.notes)


def test_run_json_declares_layout_nodes_and_engine(tmp_path):
    folder = write(sketch.read(TWO_RANKS), tmp_path)
    (folder / "run.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "engine": "vllm",
                "role": "decode",
                "layout": {"tp": 2},
                "groups": {"tp": [[0, 1]]},
                "topology": {"nodes": {"0": "a", "1": "b"}},
                "model": {"hidden_size": 4096},
            }
        )
    )
    run = load(folder)
    assert (run.workload.engine, run.workload.role, run.layout.sizes["tp"], run.topology.nodes((0, 1))) == (
        "vllm",
        "decode",
        2,
        ("a", "b"),
    )


def test_run_json_tells_what_the_engine_counted(tmp_path):
    folder = write(sketch.read(TWO_RANKS), tmp_path)
    told = {"memory": {"preemptions": 3, "kv_use": 0.9}, "prefix_cache": {"queried_tokens": 90, "cached_tokens": 40}}
    (folder / "run.json").write_text(json.dumps(told))
    assert load(folder).workload.memory == {**told["memory"], **told["prefix_cache"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "run.json: Input data was truncated"),
        ('{"layout": {"xp": 2}}', "no such axis: xp; the axes are tp, pp, dp, ep, cp, dcp"),
        ('{"layout": {"tp": "two"}}', "Expected `int`, got `str`"),
        ('{"layout": {"tp": 0}}', "a degree below 1"),
        ('{"schema": 7}', "schema 7, this version reads schema 1"),
        ('{"topology": {"nodes": {"first": "a"}}}', "'first' is no rank"),
    ],
)
def test_a_wrong_run_json_is_one_clear_line(tmp_path, text, words):
    folder = write(sketch.read(TWO_RANKS), tmp_path)
    (folder / "run.json").write_text(text)
    with pytest.raises(TraceFormatError) as fault:
        load(folder)
    assert words in str(fault.value)
    assert "\n" not in str(fault.value)


def _merged(folder):
    run = sketch.read(TWO_RANKS)
    files = [document(trace, 2) for trace in run.traces]
    for rank, file in enumerate(files):
        for event in file["traceEvents"]:
            event["pid"] = f"[TP{rank:02d}] {event['pid']}"
    (folder / "merged-1700000000.5.trace.json.gz").write_bytes(
        gzip.compress(
            json.dumps({**files[0], "traceEvents": files[0]["traceEvents"] + files[1]["traceEvents"]}).encode()
        )
    )
    return run


def test_a_merged_file_is_taken_apart_into_its_ranks(tmp_path):
    drawn = _merged(tmp_path)
    loaded = load(tmp_path)
    assert loaded.ranks == (0, 1)
    assert [trace.origin.placement for trace in loaded.traces] == [{"tp": 0}, {"tp": 1}]
    for before, after in zip(breakdown(drawn), breakdown(loaded), strict=True):
        assert {cause: time.total_ns for cause, time in before.causes.items()} == {
            cause: time.total_ns for cause, time in after.causes.items()
        }


def test_a_merged_file_beside_those_of_its_ranks_is_left_out(tmp_path):
    write(_merged(tmp_path), tmp_path)
    run = load(tmp_path)
    assert run.ranks == (0, 1)
    assert any("merged trace" in note.text for note in run.notes)


def test_tasks_that_mindspore_writes_twice_are_read_once(tmp_path):
    tasks = [
        {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "ts": 0, "args": {"name": "Ascend Hardware"}},
        {"ph": "X", "name": "MatMul", "pid": 5, "tid": 2, "ts": 10.0, "dur": 4.0, "args": {"Task Type": "AI_CORE"}},
    ]
    for name in ("msprof_0_1.json", "task_time_0_1.json"):
        (tmp_path / name).write_text(json.dumps(tasks))
    run = load(tmp_path)
    assert len(run.traces) == 1
    assert any("repeat what the msprof files beside them hold" in note.text for note in run.notes)
