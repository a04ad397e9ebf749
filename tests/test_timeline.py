"""The timeline file: held to the trace event format, to one clock, to the four terms."""

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rules
from analyzer.cli.commands.timeline import command
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import UsageError
from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.model.kind import Kind
from analyzer.plugins import offers
from analyzer.sketch import sketch
from analyzer.timeline.timeline import STREAMS, TERMS, TimeWindow, document, events, timeline
from analyzer.timeline.trace_events import packed

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
CORPUS = Path(__file__).resolve().parents[2] / "shared/traces"
LATE = """
    layout  tp=2
    message 65536
    rank 0 stream 7   GGAAAAAAGGAAAAAA
    rank 1 stream 7   GGGGGGAAGGGGGGAA
"""


def written(run, cut=None):
    report = diagnose(run, offers(rules, "check").values())
    return json.loads("".join(document(timeline(run, cut), report.findings))), report


def of(events, ph, **wanted):
    return [event for event in events if event["ph"] == ph and all(event.get(key) == wanted[key] for key in wanted)]


def nanoseconds(event, key="ts"):
    return round(event[key] * 1000)


def check_format(events):
    """What Perfetto's importer asks for: keys by phase, spans of a track that nest, arrows that start and end in one."""
    tracks = defaultdict(list)
    for event in events:
        assert {"ph", "pid", "tid", "name"} <= event.keys()
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            begin = nanoseconds(event)
            tracks[event["pid"], event["tid"]].append((begin, begin + nanoseconds(event, "dur")))
    for spans in tracks.values():
        ends = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or end <= ends[-1]
            ends.append(end)
    starts, finishes = of(events, "s"), of(events, "f")
    assert [event["id"] for event in starts] == [event["id"] for event in finishes]
    assert len({event["id"] for event in starts}) == len(starts)
    for event in starts + finishes:
        at = nanoseconds(event)
        assert any(begin <= at < end for begin, end in tracks[event["pid"], event["tid"]])
    for begin, finish in zip(starts, finishes, strict=True):
        assert begin["ts"] <= finish["ts"]
    named = {(event["pid"], event["tid"]) for event in of(events, "M", name="thread_name")}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xi"} <= named


@pytest.mark.parametrize("name", ["tp2", "ep4", "pp2", "cp2", "dp2", "pd1+1", "tp1"])
def test_a_recorded_run_is_written_in_the_format(name):
    run = load(SAMPLES / "recorded" / name)
    told, _ = written(run)
    check_format(told["traceEvents"])
    assert [event["args"]["sort_index"] for event in of(told["traceEvents"], "M", name="process_sort_index")] == list(
        run.ranks
    )


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the fetched trace corpus is not at hand")
@pytest.mark.parametrize("name", ["modded_nanogpt_8rank", "sglang_ep8_decode_run1", "torchrec_resnet18_2rank"])
def test_a_real_run_is_written_in_the_format_with_every_rank(name):
    run = load(CORPUS / name)
    told, report = written(run)
    check_format(told["traceEvents"])
    assert {event["pid"] for event in of(told["traceEvents"], "X")} == set(run.ranks)
    assert len(of(told["traceEvents"], "i")) == len(report.findings)


def test_ranks_whose_clocks_differ_stand_on_one():
    run = sketch.read(LATE)
    ahead = run.traces[1].activities
    np.add(ahead.start_ns, 5_000_000_000, out=ahead.start_ns)
    np.add(ahead.end_ns, 5_000_000_000, out=ahead.end_ns)
    told, _ = written(run)
    ends = {
        rank: [
            nanoseconds(event) + nanoseconds(event, "dur")
            for event in of(told["traceEvents"], "X", cat="all_reduce", pid=rank)
        ]
        for rank in (0, 1)
    }
    assert ends[0] == ends[1]
    assert "aligned on collective ends" in told["otherData"]["notes"][0]


def test_the_terms_are_those_of_the_breakdown_and_tile_the_window():
    run = load(SAMPLES / "recorded/tp2")
    told, _ = written(run)
    for part in breakdown(run):
        held = defaultdict(int)
        for event in of(told["traceEvents"], "X", cat="term", pid=part.rank):
            held[event["tid"] - TERMS] += nanoseconds(event, "dur")
        assert [held[place] for place in range(4)] == [
            part.term(kind).total_ns for kind in (Kind.COMPUTE, Kind.COMMUNICATION, Kind.MOVEMENT, Kind.SYNC)
        ]
        assert sum(held.values()) == part.window.total_ns


def test_an_arrow_leads_from_the_late_rank_to_the_one_that_waits():
    told, _ = written(sketch.read(LATE))
    arrows = [
        (begin["pid"], finish["pid"], nanoseconds(begin))
        for begin, finish in zip(of(told["traceEvents"], "s"), of(told["traceEvents"], "f"), strict=True)
    ]
    assert arrows == [(1, 0, 60_000), (1, 0, 140_000)]


def test_each_finding_has_a_mark_with_its_message_and_advice():
    told, report = written(load(SAMPLES / "drawn/tp2"))
    marks = of(told["traceEvents"], "i", cat="finding")
    assert [mark["name"] for mark in marks] == [f"{row.rule} {row.name}" for row in report.findings]
    assert [mark["args"]["message"] for mark in marks] == [row.message for row in report.findings]


def test_steps_have_a_track_with_their_kind_and_size():
    told, _ = written(load(SAMPLES / "drawn/healthy"))
    (first, *_) = of(told["traceEvents"], "X", cat="step", pid=0)
    assert (first["name"], first["args"]["requests"]) == ("decode", 8)


def test_a_cut_shows_the_ranks_and_the_time_asked_for():
    told, _ = written(sketch.read(LATE), TimeWindow((1,), 100_000, None))
    assert {event["pid"] for event in told["traceEvents"]} == {1}
    assert min(nanoseconds(event) + nanoseconds(event, "dur") for event in of(told["traceEvents"], "X")) > 100_000


def test_activities_that_overlap_on_a_stream_get_tracks_of_their_own():
    run = sketch.read("rank 0 stream 7   GGGGGG\nrank 0 stream 7   ..NNNNNN")
    told, _ = written(run)
    check_format(told["traceEvents"])
    work = [event for event in of(told["traceEvents"], "X") if event["tid"] >= STREAMS]
    assert sorted(event["tid"] - STREAMS for event in work) == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=25))
def test_no_two_spans_of_a_track_overlap(drawn):
    spans = np.array(sorted((start, start + length) for start, length in drawn), np.int64).reshape(-1, 2)
    places = packed(spans[:, 0], spans[:, 1])
    for place in np.unique(places):
        own = spans[places == place]
        assert np.all(own[1:, 0] >= own[:-1, 1])


def test_a_hostile_name_stays_a_name():
    label = '</script>"\\\ud800\x1b[2J'
    text = "".join(document(timeline(replace(sketch.read("rank 0 stream 7   GG"), label=label))))
    assert text.isascii()
    assert json.loads(text)["otherData"]["run"] == label


def test_the_command_writes_packed_and_plain(tmp_path):
    for name in ("t.json", "t.json.gz"):
        done = CliRunner().invoke(command, [str(SAMPLES / "recorded/tp2"), "-o", str(tmp_path / name)])
        assert done.exit_code == 0
        assert done.stderr.endswith("open it at ui.perfetto.dev\n")
    packed_text = gzip.decompress((tmp_path / "t.json.gz").read_bytes())
    assert packed_text == (tmp_path / "t.json").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ranks", "7"], "has no rank 7; its ranks are 0, 1"),
        (["--ranks", "a"], "numbers with commas"),
        (["--from", "2", "--to", "1"], "--to 1 is not after --from 2"),
    ],
)
def test_a_wrong_cut_is_one_sentence(tmp_path, options, message):
    arguments = [str(SAMPLES / "recorded/tp2"), "-o", str(tmp_path / "t.json"), *options]
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_a_file_that_is_there_is_kept(tmp_path):
    (tmp_path / "t.json").write_text("mine")
    with pytest.raises(UsageError, match="pass --force"):
        CliRunner().invoke(
            command, [str(SAMPLES / "recorded/tp2"), "-o", str(tmp_path / "t.json")], catch_exceptions=False
        )
    assert (tmp_path / "t.json").read_text() == "mine"


def test_many_spans_at_once_are_packed_in_time():
    start = np.arange(100_000, dtype=np.int64)
    places = packed(start, start + 1_000_000)
    assert places.tolist() == start.tolist()


def test_a_finding_of_the_whole_run_is_marked_on_the_first_rank_and_one_of_two_ranks_on_that_shown():
    run = load(SAMPLES / "drawn/tp2")
    first, *_ = diagnose(run, offers(rules, "check").values()).findings
    whole, both = (replace(first, evidence=replace(first.evidence, ranks=ranks, spans=[])) for ranks in ([], [0, 1]))
    told = {
        cut: [json.loads(text) for text in events(timeline(run, TimeWindow(cut)), [whole, both])] for cut in ((), (1,))
    }
    assert [mark["pid"] for mark in of(told[()], "i")] == [0, 0]
    assert [mark["pid"] for mark in of(told[1,], "i")] == [1, 1]


def test_a_finding_is_marked_in_the_cut_or_not_at_all():
    run = load(SAMPLES / "drawn/tp2")
    first, *_ = diagnose(run, offers(rules, "check").values()).findings
    row = replace(first, evidence=replace(first.evidence, ranks=[0], spans=[[0, 10], [50_000, 60_000]]))
    marks = [
        [nanoseconds(mark) for mark in of([json.loads(text) for text in events(timeline(run, cut), [row])], "i")]
        for cut in (TimeWindow(), TimeWindow(from_ns=40_000), TimeWindow(from_ns=60_000))
    ]
    assert marks == [[0], [50_000], []]


def test_a_cut_after_the_end_says_how_long_the_timeline_is():
    with pytest.raises(UsageError, match=r"nothing to show from 1.00 s on: the timeline of .* is 160 µs long"):
        timeline(sketch.read(LATE), TimeWindow(from_ns=1_000_000_000))
