import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
import trace_text as text
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceFormatError
from analyzer.ingest.kineto import problems
from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.kineto.kineto import read
from analyzer.ingest.kineto.stamps import FAR_NS

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the trace corpus is not beside the repository")

EIGHT = [f"kernel_{at}" for at in range(8)]
REPAIRED, LOST = problems.REPAIRED, problems.LOST


def sound(**changes):
    return text.kineto(text.kernels(**changes))


def cut(at):
    return sound()[: sound().index(at)]


def arguments(more):
    return f'"External id": 5, "stream": 7, {more}'


# What is damaged; the file; the names of the kernels that can be had; what is said.
SURVIVED = {
    "nothing": (sound(), EIGHT, {}),
    "cut inside an event": (cut(b'"tid": 7,\n    "ts": 1050'), EIGHT[:5], {problems.INCOMPLETE: 1, problems.ENDS_EARLY: 1}),
    "cut inside a name": (cut(b'_5"'), EIGHT[:5], {problems.INCOMPLETE: 1, problems.ENDS_EARLY: 1}),
    "cut between events": (cut(b'  {\n    "ph": "X", "cat": "kernel", "name": "kernel_5"'), EIGHT[:5], {problems.ENDS_EARLY: 1}),
    "cut behind an event": (cut(b',\n  {\n    "ph": "X", "cat": "kernel", "name": "kernel_5"'), EIGHT[:5], {problems.ENDS_EARLY: 1}),
    "cut behind the list": (cut(b'\n  "traceName"'), EIGHT, {problems.TAIL_CUT: 1}),
    "cut in the last keys": (cut(b'"ms",'), EIGHT, {problems.TAIL_CUT: 1}),
    "invalid UTF-8": (sound(k5="@").replace(b"@", text.kernel(5, "kernel_\udcff5").encode("utf-8", "surrogateescape")), [*EIGHT[:5], "kernel_\ufffd5", *EIGHT[6:]], {REPAIRED: 1}),
    "unescaped backslash": (sound(k5=text.kernel(5, "C:\\Users\\kernel_5")), [*EIGHT[:5], "C:\\Users\\kernel_5", *EIGHT[6:]], {REPAIRED: 1}),
    "unescaped quotes": (sound(k5=text.kernel(5, 'the "fast" kernel_5')), [*EIGHT[:5], 'the "fast" kernel_5', *EIGHT[6:]], {REPAIRED: 1}),
    "raw newline": (sound(k5=text.kernel(5, "kernel\n5")), [*EIGHT[:5], "kernel\n5", *EIGHT[6:]], {REPAIRED: 1}),
    "control character": (sound(k5=text.kernel(5, "kernel\x015")), [*EIGHT[:5], "kernel\x015", *EIGHT[6:]], {REPAIRED: 1}),
    "lone surrogate": (sound(k5=text.kernel(5, "kernel_\\ud8005")), [*EIGHT[:5], "kernel_\ufffd5", *EIGHT[6:]], {REPAIRED: 1}),
    "last event damaged": (sound(k7=text.kernel(7, "kernel\x017")), [*EIGHT[:7], "kernel\x017"], {REPAIRED: 1}),
    "first event damaged": (sound(k0=text.kernel(0, "kernel\\0")), ["kernel\\0", *EIGHT[1:]], {REPAIRED: 1}),
    "beyond repair": (sound(k5=text.kernel(5, args='"stream": 7 7')), [*EIGHT[:5], *EIGHT[6:]], {LOST: 1}),
    "comma lost between two events": (text.kineto([*text.kernels(4), text.kernel(4) + "\n" + text.kernel(5), *text.kernels(8)[6:]]), EIGHT, {problems.GLUED: 1}),
    "comma lost before the last event": (text.kineto([*text.kernels(6), text.kernel(6) + "\n" + text.kernel(7)]), EIGHT, {problems.GLUED: 1}),
    "a wrong byte between two events": (text.kineto([*text.kernels(4), text.kernel(4) + "\x00\n" + text.kernel(5), *text.kernels(8)[6:]]), EIGHT, {problems.GLUED: 1}),
    "trailing comma in the list": (text.kineto(text.kernels(), tail="," + text.TAIL), EIGHT, {problems.COMMA: 1}),
    "NaN in an argument": (sound(k5=text.kernel(5, args=arguments('"warps per SM": NaN'))), EIGHT, {REPAIRED: 1}),
    "C's nan in an argument": (sound(k5=text.kernel(5, args=arguments('"warps per SM": -nan'))), EIGHT, {REPAIRED: 1}),
    "C's inf in an argument": (sound(k5=text.kernel(5, args=arguments('"warps per SM": inf'))), EIGHT, {REPAIRED: 1}),
    "trailing comma in arguments": (sound(k5=text.kernel(5, args='"stream": 7,')), EIGHT, {REPAIRED: 1}),
    "NaN duration": (sound(k5=text.kernel(5, dur="NaN")), [*EIGHT[:5], *EIGHT[6:]], {REPAIRED: 1, problems.ODD_DURATION: 1}),
    "Infinity duration": (sound(k5=text.kernel(5, dur="Infinity")), [*EIGHT[:5], *EIGHT[6:]], {REPAIRED: 1, problems.ODD_DURATION: 1}),
    "C's nan duration": (sound(k5=text.kernel(5, dur="nan")), [*EIGHT[:5], *EIGHT[6:]], {REPAIRED: 1, problems.ODD_DURATION: 1}),
    "duration beyond all range": (sound(k5=text.kernel(5, dur="1e300")), [*EIGHT[:5], *EIGHT[6:]], {problems.ODD_DURATION: 1}),
    "duration is a word": (sound(k5=text.kernel(5, dur='"long"')), [*EIGHT[:5], *EIGHT[6:]], {problems.ODD_DURATION: 1}),
    "negative duration": (sound(k5=text.kernel(5, dur="-2.5")), [*EIGHT[:5], *EIGHT[6:]], {problems.NEGATIVE: 1}),
    "no duration": (sound(k5=text.kernel(5, dur="")), [*EIGHT[:5], *EIGHT[6:]], {problems.NO_DURATION: 1}),
    "null duration": (sound(k5=text.kernel(5, dur="null")), [*EIGHT[:5], *EIGHT[6:]], {problems.NO_DURATION: 1}),
    "no start": (sound(k5=text.kernel(5, ts="")), [*EIGHT[:5], *EIGHT[6:]], {problems.NO_START: 1}),
    "start is a word": (sound(k5=text.kernel(5, ts='"soon"')), [*EIGHT[:5], *EIGHT[6:]], {problems.ODD_START: 1}),
    "start is a string": (sound(k5=text.kernel(5, ts='"1050.125"')), EIGHT, {}),
    "start with an exponent": (sound(k5=text.kernel(5, ts="1.050125e3")), EIGHT, {}),
    "duplicate key": (sound(k5=text.kernel(5, args='"stream": "x", "stream": 7')), EIGHT, {}),
    "a name of 2 MB": (sound(k5=text.kernel(5, "k" * 2_000_000)), [*EIGHT[:5], "k" * 2_000_000, *EIGHT[6:]], {}),
    "nested objects in arguments": (sound(k5=text.kernel(5, args=arguments('"occupancy": {"a": [{"b": 1}, {"b": 2}]}'))), EIGHT, {}),
    "unknown type of an argument": (sound(k5=text.kernel(5, args='"stream": [7]')), EIGHT, {problems.ODD_TYPES: 1}),
    "arguments are null": (sound(k5=text.kernel(5).split('"args"')[0] + '"args": null\n  }'), EIGHT, {}),
    "arguments are a list": (sound(k5=text.kernel(5).split('"args"')[0] + '"args": [1]\n  }'), EIGHT, {problems.ODD_TYPES: 1}),
    "name is null": (sound(k5=text.kernel(5).replace('"kernel_5"', "null")), [*EIGHT[:5], "", *EIGHT[6:]], {}),
    "name is a number": (sound(k5=text.kernel(5).replace('"kernel_5"', "5")), [*EIGHT[:5], "5", *EIGHT[6:]], {}),
    "an object without a phase": (sound(k5='  {\n    "cat": "kernel", "ts": 1\n  }'), [*EIGHT[:5], *EIGHT[6:]], {problems.NO_PHASE: 1}),
    "an empty object": (sound(k5="  {\n  }"), [*EIGHT[:5], *EIGHT[6:]], {problems.NO_PHASE: 1}),
    "begin and end": (sound(k5='  {\n    "ph": "B", "name": "b", "ts": 1\n  },\n  {\n    "ph": "E", "name": "b", "ts": 2\n  }'), [*EIGHT[:5], *EIGHT[6:]], {problems.PAIRS: 2}),
    "byte order mark": (b"\xef\xbb\xbf" + sound(), EIGHT, {problems.BYTE_ORDER_MARK: 1}),
    "a bare list": (text.kineto(text.kernels(), "[\n", "\n]\n"), EIGHT, {problems.BARE_LIST: 1}),
    "a bare list, unclosed": (text.kineto(text.kernels(), "[\n", ""), EIGHT, {problems.BARE_LIST: 1, problems.ENDS_EARLY: 1}),
    "a second trace behind it": (sound() + sound(), EIGHT, {problems.MORE_TEXT: 1}),
    "zero bytes behind it": (sound() + bytes(100), EIGHT, {}),
    "damaged JSON before the events": (sound().replace(b'"schemaVersion": 1', b'"schemaVersion": 1 1'), EIGHT, {problems.DAMAGED_HEAD: 1}),
    "a backslash before the events": (sound().replace(b'"schemaVersion": 1', b'"host": "\\x"'), EIGHT, {problems.DAMAGED_HEAD: 1}),
    "a backslash behind the events": (sound().replace(b"/tmp/x", b"C:\\x"), EIGHT, {problems.DAMAGED_TAIL: 1}),
    "carriage returns": (sound().replace(b"\n", b"\r\n"), EIGHT, {}),
    "one event": (text.kineto(text.kernels(1)), EIGHT[:1], {}),
    "only metadata": (text.kineto(['  {\n    "name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "python"}\n  }']), [], {}),
    "no event": (text.kineto([]), [], {problems.NO_EVENTS: 1}),
    "no event, unclosed": (text.kineto([], tail=""), [], {problems.ENDS_EARLY: 1, problems.NO_EVENTS: 1}),
    "events behind a key that holds such objects": (sound().replace(b'"schemaVersion": 1', b'"saved": [{"ph": "X"}, {"ph": "X"}]'), EIGHT, {}),
}  # fmt: skip


@pytest.mark.parametrize("block_bytes", [64, 1 << 19])
@pytest.mark.parametrize("damage", SURVIVED)
def test_damage_leaves_what_is_whole_and_is_counted(damage, block_bytes):
    content, names, said = SURVIVED[damage]
    trace = text.read_text(content, block_bytes=block_bytes)
    assert (trace.name.tolist(), text.notes(trace)) == (names, said)


@pytest.mark.parametrize("damage", SURVIVED)
def test_no_damage_bends_a_number(damage):
    trace = text.read_text(SURVIVED[damage][0])
    rows = [at for at in range(len(trace)) if trace.name[at] in EIGHT]
    base_ns = trace.metadata.get("baseTimeNanoseconds", 0)
    expected = [(base_ns + 1_000_125 + 10_000 * int(trace.name[at][-1]), 2500) for at in rows]
    assert [(int(trace.start_ns[at]), int(trace.duration_ns[at])) for at in rows] == expected


@pytest.mark.parametrize("damage", ["a backslash before the events", "a backslash behind the events"])
def test_keys_around_the_events_are_repaired(damage):
    trace = text.read_text(SURVIVED[damage][0])
    assert (trace.metadata["distributedInfo"]["rank"], trace.metadata["baseTimeNanoseconds"]) == (3, text.BASE_NS)


def test_a_cut_gzip_file_gives_every_complete_event(tmp_path):
    path = tmp_path / "trace.json.gz"
    packed = gzip.compress(text.kineto(text.kernels(5000)))
    path.write_bytes(packed[: len(packed) // 2])
    trace = read(path, Detail.DEVICE)
    assert trace.name.tolist() == [f"kernel_{at}" for at in range(len(trace))]
    assert len(trace) > 2000
    assert [note.text.split(",")[0] for note in trace.problems] == [
        problems.INCOMPLETE.split(",")[0],
        problems.ENDS_EARLY,
        "the gzip data ends early",
    ]


REFUSED = {
    "an empty file": (b"", r"empty file \(0 bytes\); record or copy the trace again"),
    "blanks": (b" \n\n", "nothing but blanks; record or copy the trace again"),
    "an HTML page": (b"<!DOCTYPE html><html>", "an HTML or XML page; download the trace again"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer, not the file it points to; run git lfs pull"),
    "zero bytes": (bytes(64), "zero bytes, never written; record or copy the trace again"),
    "prose": (b"hello", "starts with 'hello', which is no JSON; pass a trace that torch.profiler exported"),
    "JSON without events": (b'{"a": 1, "b": {"traceEvents": []}}', "JSON that has the keys 'a', 'b'; no list of traceEvents in 34 bytes; pass a trace"),
    "events that are no list": (b'{"traceEvents": 3}', "JSON that has the keys 'traceEvents'; no list of traceEvents in 18 bytes; pass a trace"),
    "cut before the events": (text.HEAD[:60].encode(), "JSON that breaks off or is damaged after the keys 'schemaVersion', 'deviceProperties'; no list of traceEvents in 60 bytes; pass a trace"),
    "a list of other objects": (b'[{"a": 1}, {"a": 2}]', r"a list of 2 objects, none of which is a trace event \(no 'ph'\)"),
    "an execution trace": (b'{"schema": "1.1.1", "pid": 3, "nodes": [{"id": 2}]}', "a PyTorch execution trace .*, not a profiler trace"),
    "an execution trace of 3 MB": (b'{"schema": "1.1.1", "pid": 3, "nodes": [' + b'{"id": 2}, ' * 300_000, "a PyTorch execution trace .*, not a profiler trace"),
    "communication.json": (b'{"step5": {"p2p": {}}, "step6": {"p2p": {}}}', "Ascend's communication.json .*; pass the trace_view.json beside it"),
    "a memory snapshot": (b'{"segments": [], "device_traces": []}', "a CUDA memory snapshot, not a profiler trace"),
    "JAX": (b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"M","pid":3,"name":"process_name","args":{"name":"/device:TPU:0"}}]}', "a JAX/XLA profiler trace"),
    "rocprof": (b'{ "traceEvents":[{}\n,{"ph":"X","name":"k","args":{"BeginNs":"1","EndNs":"2"}}]}', "a rocprof trace"),
    "rocmProfileData": (b'[ {}\n,{"name":"thread_name","ph":"M","pid":"1","tid":"1","args":{"name":"Hip 1087077"}}\n]', "a rocmProfileData trace"),
    "BytePS": (b'[{"ph": "B", "pid": 0, "ts": 8974675, "name": "PUSH_PULLQUEUE"}, ', "a BytePS timeline"),
    "Horovod": (b'[{"ph": "B", "pid": 0, "ts": 8974675, "name": "NEGOTIATE_ALLREDUCE"}, ', "a Horovod timeline"),
    "Composer": (b'[{"name": "callback/Timer/event/init", "cat": "init,Timer", "ph": "B", "ts": 1}]', "a Composer callback trace"),
    "VizTracer": (b'{"traceEvents":[{"ph":"X","cat":"fee","name":"f","ts":1,"dur":1}]}', "a VizTracer trace"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_trace_is_refused_in_one_line_that_says_what_it_is(tmp_path, what):
    content, says = REFUSED[what]
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=f"^{re.escape(str(path))}: (?:{says}).*$"):
        read(path, Detail.ALL)


DAMAGE = st.one_of(
    st.tuples(st.just("byte"), st.integers(0), st.integers(0, 255)),
    st.tuples(st.just("cut"), st.integers(0), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0), st.integers(1, 900)),
    st.tuples(st.just("insert"), st.integers(0), st.sampled_from(list(b'"{}[],:\\ '))),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(DAMAGE, max_size=6), st.booleans(), st.sampled_from(Detail))
def test_whatever_is_damaged_there_is_a_trace_or_one_line(damages, is_packed, detail):
    content = bytearray(gzip.compress(MIXED_TEXT) if is_packed else MIXED_TEXT)
    for how, place, value in damages:
        at = place % (len(content) or 1)
        content[at : {"byte": at + 1, "cut": len(content), "delete": at + value, "insert": at}[how]] = (
            bytes([value]) if how in ("byte", "insert") else b""
        )
    try:
        trace = text.read_text(bytes(content), detail)
    except TraceFormatError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert bool((trace.duration_ns >= 0).all())


# Times


def _within_an_hour(first_ns, last_ns):
    """Starts of one recording: what lies further from the others is left out."""
    offsets = st.lists(st.integers(0, FAR_NS), min_size=1, max_size=50)
    return st.builds(
        lambda begin, after: [begin + ns for ns in after], st.integers(first_ns, last_ns - FAR_NS), offsets
    )


@settings(deadline=None)
@given(_within_an_hour(0, 2**43 * 1000 - 1))
def test_starts_below_2_to_the_43_microseconds_are_exact(starts_ns):
    rows = [text.kernel(at, ts=f"{ns // 1000}.{ns % 1000:03}") for at, ns in enumerate(starts_ns)]
    assert text.read_text(text.kineto(rows, tail="\n]}")).start_ns.tolist() == starts_ns


@settings(deadline=None)
@given(_within_an_hour(1_600_000_000_000_000_000, 1_900_000_000_000_000_000), st.booleans())
def test_absolute_starts_with_nanoseconds_are_exact(starts_ns, are_strings):
    quote = '"' if are_strings else ""
    rows = [text.kernel(at, ts=f"{quote}{ns // 1000}.{ns % 1000:03}{quote}") for at, ns in enumerate(starts_ns)]
    assert text.read_text(text.kineto(rows, tail="\n]}")).start_ns.tolist() == starts_ns


def test_absolute_whole_microseconds_are_exact():
    trace = text.read_text(text.kineto([text.kernel(0, ts="1698955894942173", dur="41")], tail="\n]}"))
    assert (trace.start_ns.tolist(), trace.duration_ns.tolist()) == ([1_698_955_894_942_173_000], [41_000])


def test_the_clock_base_is_added_though_it_stands_behind_the_events():
    assert text.read_text(sound()).start_ns[0] == 1_735_632_360_001_000_125


def test_a_clock_base_is_not_added_to_absolute_starts():
    trace = text.read_text(text.kineto([text.kernel(0, ts="1698955894942173")]))
    assert (trace.start_ns.tolist(), text.notes(trace)) == ([1_698_955_894_942_173_000], {problems.BASE_TWICE: 1})


def test_a_clock_base_that_is_no_number_is_told():
    trace = text.read_text(text.kineto([text.kernel(0)], tail='\n],\n"baseTimeNanoseconds": "soon"}'))
    assert (trace.start_ns.tolist(), text.notes(trace)) == ([1_000_125], {problems.ODD_BASE: 1})


def test_a_late_start_with_nanoseconds_in_a_file_that_began_without_is_told_as_rounded():
    rows = [text.kernel(at) for at in range(9000)] + [text.kernel(9000, ts="1712195495406752.797")]
    assert text.notes(text.read_text(text.kineto(rows, tail="\n]}"))) == {problems.ROUNDED: 1, problems.FAR: 1}


@pytest.mark.parametrize("base", ["NaN", "Infinity", "-1", "1e400", "[]", "true"])
def test_an_odd_clock_base_is_told(base):
    trace = text.read_text(
        text.kineto([text.kernel(0)], head=f'{{"baseTimeNanoseconds": {base}, "traceEvents": [\n', tail="\n]}")
    )
    assert (trace.start_ns.tolist(), text.notes(trace)) == ([1_000_125], {problems.ODD_BASE: 1})


def test_metadata_nested_beyond_reason_is_cut_off():
    head = '{"deep": ' + "[" * 400 + "]" * 400 + ', "traceEvents": [\n'
    assert text.read_text(text.kineto(text.kernels(), head=head)).name.tolist() == EIGHT


# What is kept


MIXED = [
    text.kernel(0),
    text.host(1),
    text.host(2, "cpu_op", "aten::item"),
    text.host(3, "cpu_op", "aten::_local_scalar_dense"),
    text.host(4, "cpu_op", "aten::nonzero"),
    text.host(5, "cpu_op", "aten::nonzero_numpy"),
    text.host(6, "cpu_op", "record_param_comms"),
    text.host(7, "cpu_op", "vllm::all_reduce"),
    text.host(8, "python_function", "f.py(3): f"),
    text.host(9, "cuda_runtime", "cudaLaunchKernel"),
    text.host(10, "user_annotation", "ProfilerStep#3"),
    text.host(11, "no_such_category", "new"),
    text.flow(12),
    '  {\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",\n    "pid": 44, "tid": 45,\n    "ts": 5, "args": {"Bytes": 512}\n  }',
    '  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n    "pid": "", "tid": "", "ts": 2000.5\n  }',
    '  {\n    "ph": "C", "name": "sclk", "pid": 44, "ts": 5, "args": {"sclk": 800}\n  }',
]
MIXED_TEXT = text.kineto(MIXED)
BREAKDOWN = ["kernel_0", "cudaLaunchKernel", "ProfilerStep#3", "new"]
DEVICE = [
    "kernel_0",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "record_param_comms",
    "vllm::all_reduce",
    *BREAKDOWN[1:],
]
ALL = [
    "kernel_0",
    "aten::add",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::nonzero_numpy",
    *DEVICE[4:],
    "Record Window End",
]


@pytest.mark.parametrize(
    ("detail", "names"), [(Detail.BREAKDOWN, BREAKDOWN), (Detail.DEVICE, DEVICE), (Detail.ALL, ALL)]
)
@pytest.mark.parametrize("layout", ["kineto", "name first"])
def test_detail_says_which_events_are_kept(detail, names, layout):
    content = text.kineto(MIXED)
    if layout == "name first":
        value = json.loads(content)
        value["traceEvents"] = [dict(sorted(event.items(), reverse=True)) for event in value["traceEvents"]]
        content = json.dumps(value)
    trace = text.read_text(content, detail)
    assert (trace.name.tolist(), trace.problems) == (names, ())


@pytest.mark.parametrize("category", ["Operator", "cpu_op"])
def test_host_operations_are_left_out_under_their_old_category_too(category):
    assert text.read_text(text.kineto([text.kernel(0), text.host(1, category)]), Detail.DEVICE).name.tolist() == [
        "kernel_0"
    ]


def test_a_mark_has_no_duration():
    trace = text.read_text(text.kineto(MIXED))
    assert (trace.phase[len(trace) - 1], int(trace.duration_ns[-1])) == ("i", 0)


def test_metadata_events_describe_processes_and_threads():
    def described(key, pid, tid, args):
        return json.dumps({"name": key, "ph": "M", "ts": 0.0, "pid": pid, "tid": tid, "args": args})

    rows = [
        described("process_name", 44, 0, {"name": "sglang::scheduler"}),
        described("process_labels", 0, 0, {"labels": "GPU 0"}),
        described("thread_name", 0, 7, {"name": "stream 7 "}),
        described("thread_sort_index", 0, 7, {"sort_index": 7}),
        described("process_name", 44, 0, {"name": "sglang::scheduler"}),
    ]
    table = text.read_text(text.kineto([*rows, text.kernel(0)])).descriptions
    assert [
        (int(table.process[at]), int(table.thread[at]), table.key[at], table.text[at]) for at in range(len(table))
    ] == [(44, 0, "process_name", "sglang::scheduler"), (0, 0, "process_labels", "GPU 0"), (0, 7, "thread_name", "stream 7 ")]  # fmt: skip


def test_the_files_own_keys_are_kept_on_both_sides_of_the_events():
    assert text.read_text(sound()).metadata == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA H200"}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "traceName": "/tmp/x.json",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_735_632_360_000_000_000,
    }


# Numbers and words


@pytest.mark.parametrize(
    ("given_stream", "stream"),
    [
        ("7", 7),
        ('"7"', 7),
        ("7.0", 7),
        ('"0x0"', -1),
        ('"0x55d8564ba340"', -1),
        ("-1", -1),
        ("4294967295", -1),
        ("18446744073709551615", -1),
        ("9223372036854775807", 9223372036854775807),
        ("null", -1),
        ("7.5", -1),
        ('"stream 7"', -1),
    ],
)
def test_a_stream_is_a_decimal_number_or_none(given_stream, stream):
    trace = text.read_text(text.kineto([text.kernel(0, args=f'"stream": {given_stream}'), text.kernel(1)]))
    assert trace.integer("stream").tolist() == [stream, 7]


def test_one_column_holds_bytes_under_all_its_names():
    rows = [
        text.kernel(at, args=args)
        for at, args in enumerate(
            ['"bytes": 4096', '"size": "256"', '"bytes": "8", "size": "9"', '"size(Byte)": 1', ""]
        )
    ]
    assert text.read_text(text.kineto(rows)).integer("bytes").tolist() == [4096, 256, 8, 1, -1]


def test_joins_of_different_kinds_are_not_mixed():
    rows = [
        text.kernel(0, args='"correlation": 5'),
        text.kernel(1, args='"correlation_id": 5'),
        text.kernel(2, args='"connection_id": 5'),
    ]
    trace = text.read_text(text.kineto(rows))
    assert [trace.integer(key).tolist() for key in ("correlation", "correlation_id", "connection_id")] == [
        [5, -1, -1],
        [-1, 5, -1],
        [-1, -1, 5],
    ]


def test_collective_metadata_is_kept_as_it_stands():
    args = (
        '"Collective name": "allreduce", "In msg nelems": 96, "Out msg nelems": 12, "Group size": 8, "dtype": "BFloat16", "In split size": "[]", '
        '"Out split size": "[4, 4]", "Process Group Name": "13", "Process Group Description": "mesh_tp", "Process Group Ranks": "[0, 1, ..., 63]", '
        '"Seq": 178, "Rank": 3, "Src Rank": 1, "Dst Rank": 2'
    )
    trace = text.read_text(text.kineto([text.kernel(0, args=args)]))
    words = (
        "Collective name",
        "dtype",
        "In split size",
        "Out split size",
        "Process Group Name",
        "Process Group Description",
        "Process Group Ranks",
    )
    numbers = ("In msg nelems", "Out msg nelems", "Group size", "Seq", "Rank", "Src Rank", "Dst Rank")
    assert [trace.text(key)[0] for key in words] == [
        "allreduce",
        "BFloat16",
        "[]",
        "[4, 4]",
        "13",
        "mesh_tp",
        "[0, 1, ..., 63]",
    ]
    assert [int(trace.integer(key)[0]) for key in numbers] == [96, 12, 8, 178, 3, 1, 2]


def test_the_group_number_of_early_2024_is_the_groups_name():
    rows = [text.kernel(0, args='"Process Group ID": 0'), text.kernel(1, args='"Process Group Name": "1"')]
    assert text.read_text(text.kineto(rows)).text("Process Group Name").tolist() == ["0", "1"]


def test_shapes_are_kept_as_json_text():
    trace = text.read_text(text.kineto([text.host(0), text.kernel(1)]))
    assert trace.text("Input Dims").tolist() == ["[[0, 2], []]", ""]


def test_process_and_thread_ids_may_be_words_and_negative():
    rows = [
        text.kernel(0).replace('"pid": 0, "tid": 7', '"pid": "Spans", "tid": "PyTorch Profiler"'),
        text.kernel(1).replace('"pid": 0, "tid": 7', '"pid": -1, "tid": -1342617'),
        text.kernel(2).replace('"pid": 0, "tid": 7', '"pid": "1087077", "tid": "stream 7"'),
        text.kernel(3).replace('"pid": 0, "tid": 7', '"pid": "Spans", "tid": ""'),
    ]
    trace = text.read_text(text.kineto(rows))
    assert [trace.word(int(number)) for number in (*trace.process, *trace.thread)] == [
        "Spans",
        None,
        None,
        "Spans",
        "PyTorch Profiler",
        None,
        None,
        "",
    ]
    assert (trace.process[1:3].tolist(), trace.thread[1:3].tolist()) == ([-1, 1087077], [-1342617, 7])


def test_minified_json_states_its_rank():
    compact = json.dumps(json.loads(sound()), separators=(",", ":"))
    trace = text.read_text(compact)
    assert (trace.metadata["distributedInfo"]["rank"], trace.name.tolist()) == (3, EIGHT)


# The corpus

SOUND_FILES = [
    "hta_small/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "hta_small/inference_rank_1_uppercase_cats.json.gz",
    "hta_small/event_sync_trace.json.gz",
    "hta_trace_compare/base.json.gz",
    "kineto_h100_sync/before_fix_trace.json",
    "kineto_tb_samples/gpu_metrics_input.json",
    "ao_vit_cudagraph/vit_quant.json.gz",
    "amd_hpctraining/merged_nccl_only.json.gz",
    "cambricon_mlu/mlu_metrics_input.json",
    "tracelens_torch_compile_triton/trace.json.gz",
    "rl_insight_mstx/actor_update/trace_view.json",
    "mindspore_910_2device/device_0/msprof_0_2_1.json",
]


@corpus
@pytest.mark.corpus
@pytest.mark.parametrize("detail", [Detail.DEVICE, Detail.ALL])
@pytest.mark.parametrize("name", SOUND_FILES)
def test_real_traces_read_as_a_plain_json_reader_reads_them(name, detail):
    events, metadata = text.parsed(CORPUS / name)
    trace = read(CORPUS / name, detail)
    base_ns = metadata.get("baseTimeNanoseconds", 0)
    wanted = [event for event in events if _is_wanted(event, detail)]
    assert trace.metadata == metadata
    assert trace.name.tolist() == [str(event["name"]) for event in wanted]
    assert trace.category.tolist() == [event.get("cat", "") for event in wanted]
    assert trace.start_ns.tolist() == [base_ns + _nanoseconds(event["ts"]) for event in wanted]
    assert trace.duration_ns.tolist() == [_nanoseconds(event.get("dur", 0)) for event in wanted]
    for key in ("device", "correlation", "Group size", "In msg nelems", "wait_on_stream"):
        given_numbers = [(event.get("args") or {}).get(key, -1) for event in wanted]
        assert trace.integer(key).tolist() == given_numbers
    for key in ("Collective name", "dtype", "Process Group Ranks", "Task Type", "direction"):
        assert trace.text(key).tolist() == [(event.get("args") or {}).get(key, "") for event in wanted]


def _nanoseconds(microseconds):
    return int((Decimal(str(microseconds)) * 1000).to_integral_value())


def _is_wanted(event, detail):
    if event["ph"] == "i":
        return detail is Detail.ALL and event["name"] != "[memory]"
    if event["ph"] != "X" or event.get("cat") == "python_function":
        return False
    is_aten = event.get("cat") in ("cpu_op", "Operator") and event["name"].startswith("aten::")
    return (
        detail is Detail.ALL
        or not is_aten
        or event["name"] in ("aten::item", "aten::_local_scalar_dense", "aten::nonzero")
    )


@corpus
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("byteps_timeline_unterminated.json", "a BytePS timeline"),
        ("composer_rank_0.trace.json", "a Composer callback trace"),
        ("execution_trace_pytorch_et_0.json.gz", "a PyTorch execution trace"),
        ("jax_tpu.trace.json.gz", "a JAX/XLA profiler trace"),
        ("matmul_result.json", "a rocmProfileData trace"),
        ("rocprof_profiling_output_duplicate_keys.json", "a rocprof trace"),
    ],
)
def test_other_tools_traces_are_called_by_their_name(name, says):
    with pytest.raises(TraceFormatError, match=says):
        read(CORPUS / "other_not_kineto" / name, Detail.DEVICE)
