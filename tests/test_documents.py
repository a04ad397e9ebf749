import json
import tempfile
from pathlib import Path

import pytest
import trace_text as text
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.kineto.documents import Documents
from analyzer.ingest.kineto.head import read_head
from analyzer.ingest.kineto.kineto import read
from analyzer.ingest.kineto.problems import Problems
from analyzer.ingest.kineto.stream import Stream

SMALL = (1, 7, 40, 133, 1777)

names = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            '},{"ph":"X"',
            '}, {"ph": "X", "cat": "cpu_op"',
            "]}",
            "aten::add",
            "aten::item",
            "[memory]",
            "{",
            "}}",
            "\\",
            'a"b',
        ]
    ),
)
nested = st.lists(
    st.fixed_dictionaries({"id": names}) | st.fixed_dictionaries({"name": names, "x": st.integers()}) | st.just({}),
    max_size=4,
)
events = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from("XXXXXsfiMBC"),
            "cat": st.sampled_from(
                ["kernel", "cpu_op", "python_function", "cuda_runtime", "ac2g", "cpu_instant_event"]
            ),
            "name": names,
            "pid": st.integers(0, 9) | st.sampled_from(["Spans", ""]),
            "tid": st.integers(-3, 9),
            "ts": st.integers(0, 10**9).map(lambda ns: ns / 1000),
            "dur": st.integers(0, 10**6).map(lambda ns: ns / 1000),
        },
        optional={
            "args": st.fixed_dictionaries(
                {}, optional={"stream": st.integers(0, 9), "list": nested, "bytes": st.sampled_from([4, "8", None])}
            )
        },
    ),
    max_size=14,
)
keys = st.fixed_dictionaries(
    {},
    optional={
        "schemaVersion": st.just(1),
        "deviceProperties": st.lists(st.just({"id": 0, "name": "}, {"}), max_size=3),
        "traceName": names,
    },
)
layouts = st.sampled_from(
    [{"separators": (",", ":")}, {}, {"indent": 1}, {"indent": 2}, {"indent": 4, "separators": (" ,", " : ")}]
)


@settings(deadline=None, max_examples=100)
@given(events, keys, keys, layouts, st.sampled_from(Detail), st.integers(1, 300), st.booleans())
def test_blocks_of_any_size_give_the_same_events_in_any_layout(
    given_events, head, tail, layout, detail, block_bytes, is_list
):
    tail = {key: value for key, value in tail.items() if key not in head}
    value = given_events if is_list else {**head, "traceEvents": given_events, **tail, "baseTimeNanoseconds": 5}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(json.dumps(value, ensure_ascii=False, **layout), encoding="utf-8", errors="surrogatepass")
        whole, cut = read(path, detail), read(path, detail, block_bytes=block_bytes)
    assert text.content(cut) == text.content(whole)
    assert whole.name.tolist() == [event["name"] for event in given_events if is_wanted(event, detail)]
    assert whole.metadata == ({} if is_list else {**head, **tail, "baseTimeNanoseconds": 5})


def is_wanted(event, detail):
    if event["ph"] == "i":
        return (
            detail is Detail.ALL
            and event["cat"] not in ("cpu_instant_event", "python_function")
            and event["name"] != "[memory]"
        )
    if event["ph"] != "X" or event["cat"] in ("cpu_instant_event", "python_function"):
        return False
    if event["cat"] != "cpu_op" or detail is Detail.ALL:
        return True
    return detail is Detail.DEVICE and (not event["name"].startswith("aten::") or event["name"] == "aten::item")


@pytest.mark.parametrize("block_bytes", [*SMALL, 1 << 19])
def test_every_document_is_json_by_itself(tmp_path, block_bytes):
    path = tmp_path / "trace.json"
    path.write_bytes(
        text.kineto([text.host(0), text.flow(1), *text.kernels(6), text.host(8, "python_function", "f.py(3): f")])
    )
    with Stream(path) as stream:
        documents = Documents(stream, read_head(stream, Problems()), Detail.DEVICE, block_bytes)
        values = [json.loads(documents.text(each.pieces, is_last=each.is_last)) for each in documents]
    assert [
        event["name"] for value in values for event in value["traceEvents"] if event["name"].startswith("kernel")
    ] == [f"kernel_{i}" for i in range(6)]


def test_bulk_is_left_out_by_its_first_bytes(tmp_path):
    path = tmp_path / "trace.json"
    bulk = [
        text.host(0),
        text.flow(1),
        text.host(2, "python_function", "f.py(3): f"),
        text.host(3, "cpu_op", "aten::item"),
        text.host(4),
    ]
    path.write_bytes(text.kineto([*bulk, text.kernel(5)]))
    with Stream(path) as stream:
        documents = Documents(stream, read_head(stream, Problems()), Detail.DEVICE)
        assert (len(list(documents)), documents.left_out) == (2, 4)


@pytest.mark.parametrize("block_bytes", SMALL)
def test_metadata_events_before_the_first_operation_do_not_switch_the_filter_off(tmp_path, block_bytes):
    path = tmp_path / "trace.json"
    described = '  {\n    "name": "process_name", "ph": "M", "ts": 0.0, "pid": 44, "tid": 0,\n    "args": {\n      "name": "python3"\n    }\n  }'
    path.write_bytes(text.kineto([described, described, *(text.host(at) for at in range(5)), text.kernel(9)]))
    with Stream(path) as stream:
        documents = Documents(stream, read_head(stream, Problems()), Detail.DEVICE, block_bytes)
        list(documents)
        assert documents.left_out == 5


@pytest.mark.parametrize("block_bytes", [*SMALL, 1 << 19])
@pytest.mark.parametrize(
    "last",
    [text.kernel(3), text.host(3, "python_function", "f.py(3): f"), text.flow(3)],
    ids=["kernel", "bulk", "flow"],
)
def test_keys_behind_the_events_are_read_though_they_hold_objects_in_the_same_layout(last, block_bytes):
    tail = '\n  ],\n  "deviceProperties": [\n  {\n    "id": 0\n  },\n  {\n    "id": 1\n  },\n  {\n    "id": 2\n  }\n  ],\n  "host_name": "a"\n}\n'
    trace = text.read_text(
        text.kineto([text.kernel(0), text.kernel(1), last], head='{\n  "traceEvents": [\n', tail=tail),
        Detail.DEVICE,
        block_bytes=block_bytes,
    )
    assert (trace.metadata, trace.problems) == (
        {"deviceProperties": [{"id": 0}, {"id": 1}, {"id": 2}], "host_name": "a"},
        (),
    )


@pytest.mark.parametrize("block_bytes", [*SMALL, 1 << 19])
def test_a_list_of_the_same_name_inside_a_key_before_the_events_is_no_list_of_events(block_bytes):
    head = '{"note": "\\"traceEvents\\": [{", "saved": {"traceEvents": [{"ph": "X", "name": "decoy", "ts": 1, "dur": 1}, {"ph": "X", "name": "decoy", "ts": 1, "dur": 1}]}, "traceEvents": [\n'
    assert text.read_text(text.kineto(text.kernels(3), head=head), block_bytes=block_bytes).name.tolist() == [
        "kernel_0",
        "kernel_1",
        "kernel_2",
    ]


@pytest.mark.parametrize("block_bytes", [*SMALL, 1 << 19])
def test_an_event_with_a_list_of_seventy_objects_is_one_event(block_bytes):
    compact = {"separators": (",", ":")}
    rows = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": f"k{i}",
            "ts": i,
            "dur": 1,
            "args": {"stream": i, "list": [{"name": "}"}] * 40},
        }
        for i in range(5)
    ]
    trace = text.read_text(json.dumps({"traceEvents": rows}, **compact), block_bytes=block_bytes)
    assert (trace.name.tolist(), trace.integer("stream").tolist(), trace.problems) == (
        ["k0", "k1", "k2", "k3", "k4"],
        [0, 1, 2, 3, 4],
        (),
    )
