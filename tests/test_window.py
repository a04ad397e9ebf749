"""The window begins and ends with recorded work that belongs to it; one stuck call is told with its place.

The inputs are redrawn after runs of others: each states what it is, and the right value is written out.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from step_traces import US, Recorder

from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.measures.records.stuck import stuck
from analyzer.measures.window import windowed
from analyzer.model.events import ABSENT, Labels
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, ProcessGroup
from analyzer.schema.report import from_json, to_json
from analyzer.sketch import sketch
from analyzer.steps.steps import steps

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"


def _run(*recorders):
    return Run("drawn", tuple(recorder.trace(rank) for rank, recorder in enumerate(recorders)))


def _window_ns(run):
    return [rank_split.window.total_ns for rank_split in breakdown(run)]


def _cut(us, why, end="begins", side="later"):
    return f"the window {end} {us} {side} than the recording: {why}; it is in no figure and in no step"


LOST = "work that is not recorded ran there"
WARM_UP = "it is outside the marked steps and longer than several of them"


def _decode(recorder, kernels, us, late, call):
    """A crumb at once, one that starts `late` µs after its launch, then a graph: one marked step."""

    def work():
        recorder.launch("norm", us=4, stream=3)
        recorder.launch("norm", us=4, stream=3, late=late)
        recorder.catch_up()
        recorder.launch(*["gemm"] * kernels, us=us, stream=3, call=call, late=10)

    recorder.annotate("step[DECODE bs=32]", work)
    return recorder


@pytest.mark.parametrize(
    ("device", "call", "kernels", "us", "late", "said", "step_us"),
    [
        ("rocm", "hipGraphLaunch", 544, 18, 463_000, "463 ms", 4 + 1 + 10 + 544 * 18),
        ("cuda", "cudaGraphLaunch", 90, 100, 464_000, "464 ms", 4 + 1 + 10 + 90 * 100),
        ("npu", "aclmdlRIExecuteAsync", 20, 1000, 70_000, "70.0 ms", 4 + 1 + 10 + 20 * 1000),
    ],
    ids=["SGLang on an MI300X", "the same on an H100", "an Ascend"],
)
def test_a_head_of_work_that_was_not_recorded_is_cut_off(device, call, kernels, us, late, said, step_us):
    run = _run(_decode(Recorder(device), kernels, us, late, call))
    cut = windowed(run)
    assert [note.text for note in cut.notes] == [_cut(said, LOST)]
    assert _window_ns(cut) == [step_us * US]
    assert steps(cut)[0].span_ns.tolist() == [step_us * US]
    assert len(cut.traces[0].calls) == 2  # the launch of the crumb went with it
    assert windowed(cut) is cut
    assert run.traces[0].window.total_ns > _window_ns(cut)[0]


def test_a_tail_of_work_that_was_not_recorded_is_cut_off():
    recorder = Recorder()
    for _ in range(100):
        recorder.launch("gemm", us=50)
    recorder.catch_up().launch("norm", late=30_000, us=3)
    cut = windowed(_run(recorder))
    assert [note.text for note in cut.notes] == [_cut("30.0 ms", LOST, "ends", "earlier")]
    assert _window_ns(cut) == [100 * 50 * US]


def test_a_short_late_start_stays_in_the_window_with_its_cause():
    recorder = Recorder()
    for _ in range(100):
        recorder.launch("gemm", us=500)
    recorder.catch_up().launch("norm", late=160).catch_up()
    for _ in range(100):
        recorder.launch("gemm", us=500)
    run = _run(recorder)
    assert windowed(run) is run
    assert breakdown(run)[0].causes[Cause.UNRECORDED].total_ns == 150 * US


@pytest.mark.parametrize(
    ("late", "call", "cause"),
    [
        (2_400, None, Cause.UNRECORDED),
        (1_600, None, Cause.UNRECORDED),
        (90, None, Cause.STREAM_WAIT),
        (2_400, "cudaStreamWaitEvent", Cause.STREAM_WAIT),
        (2_400, "hipStreamWaitValue32", Cause.STREAM_WAIT),
        (2_400, "cudaLaunchHostFunc", Cause.STREAM_WAIT),
        (2_400, "cudaEventQuery", Cause.UNRECORDED),
    ],
)
def test_what_is_launched_and_does_not_start_is_unrecorded_where_nothing_holds_it_back(late, call, cause):
    """A shared V100 gives each process 2.4 ms by turns; an MI300X takes up to 86 µs to start a kernel."""
    recorder = Recorder()
    for _ in range(24):
        recorder.launch("gemm", us=30).catch_up()
        if call:
            recorder.launch(call=call)
        recorder.launch("gemm", us=30, late=late).catch_up()
    run = _run(recorder)
    causes = breakdown(run)[0].causes
    other = Cause.STREAM_WAIT if cause is Cause.UNRECORDED else Cause.UNRECORDED
    assert causes[cause].total_ns == 24 * (late - 10) * US
    assert causes[other].total_ns == 0
    assert windowed(run) is run  # nowhere and everywhere is no head


def test_a_wait_inside_a_graph_is_the_graphs_own():
    (part,) = breakdown(sketch.read("column 100 µs\nrank 0 stream 7   GG....GG\nrank 0 host       g......."))
    assert part.causes[Cause.STREAM_WAIT].total_ns == 400_000
    assert part.causes[Cause.UNRECORDED].total_ns == 0


@pytest.mark.parametrize(
    ("device", "mark", "warm_ups", "launched", "said"),
    [
        ("rocm", "ProfilerStep#{}", 3000, False, "45.0 s"),
        ("cuda", "execute_context_0(0)_generation_8(8)", 10, True, "150 ms"),
    ],
    ids=["ProfilerStep on an MI210, launches not recorded", "vLLM, launches recorded"],
)
def test_warm_up_outside_the_marked_steps_is_cut_off(device, mark, warm_ups, launched, said):
    recorder = Recorder(device)
    for _ in range(warm_ups):
        recorder.launch("gemm", us=9_000).catch_up().wait(5_999)
    before = len(recorder.calls)
    if not launched:
        del recorder.calls[:]
    for number in range(5):
        recorder.annotate(mark.format(number), lambda: [recorder.launch("gemm", us=340) for _ in range(20)]).catch_up()
    run = _run(recorder)
    cut = windowed(run)
    assert [note.text for note in cut.notes] == [_cut(said, WARM_UP)]
    (part,) = breakdown(cut)
    assert part.compute.total_ns == 5 * 20 * 340 * US
    assert part.compute.total_ns / part.window.total_ns > 0.97
    assert len(steps(cut)[0]) == 5
    assert len(cut.traces[0].calls) == 100 < before + 100


def test_a_step_that_still_ran_when_the_recording_began_stays():
    """Up to 3.2 steps are queued in recorded runs; here two."""
    recorder = Recorder()
    for _ in range(40):
        recorder.launch("gemm", us=340)
    del recorder.calls[:]
    for number in range(5):
        recorder.annotate(f"ProfilerStep#{number}", lambda: [recorder.launch("gemm", us=340) for _ in range(20)])
    run = _run(recorder)
    assert windowed(run) is run


AR = "reduce"


def _reducing(x, ends, computes_us, device="cuda", sizes=1 << 23):
    """Ranks that begin at `x[rank]`, compute, and reduce until the common end of each call."""
    traces = []
    for rank, begin in enumerate(x):
        recorder, at = Recorder(device, groups=(ProcessGroup("3", "tp", len(x), tuple(range(len(x)))),)), begin
        for end in ends:
            for name, start, stop in (("gemm", at, at + computes_us), (AR, at + computes_us, end)):
                if stop <= start:
                    continue
                recorder.correlation += 1
                recorder.spans.append((name, start, stop, 0, 7, recorder.correlation))
                recorder.calls.append(("cudaLaunchKernel", at - 100, at - 95, 100, 1, recorder.correlation))
            at = end + 2
        trace = recorder.trace(rank)
        rows = np.flatnonzero(trace.activities.kind == Kind.COMMUNICATION)
        traces.append(replace(trace, collectives=_records(rows, len(x), sizes)))
    return Run("drawn", tuple(traces))


def _records(rows, world, sizes):
    n = rows.size
    text = {name: Labels.of([value] * n) for name, value in (("op", "all_reduce"), ("pg", "3"), ("d", "tp"), ("", ""))}
    whole = np.full(n, sizes, np.int64)
    return CollectiveRecords(
        rows, text["op"], text["pg"], text["d"], Labels.of([str(list(range(world)))] * n), np.full(n, world, np.int64),
        Labels.of(["BFloat16"] * n), whole, whole, np.arange(n, dtype=np.int64), np.full(n, ABSENT, np.int64), text[""],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("x", "device", "most", "in_all"),
    [
        ((1_000, 301_000, 151_000, 226_000), "cuda", "300 ms", "526 ms"),
        ((1_000, 41_000), "rocm", "40.2 ms", "40.4 ms"),
    ],
    ids=["four ranks that leave warm-up up to 300 ms apart", "two of another maker"],
)
def test_the_profilers_own_start_is_cut_off(x, device, most, in_all):
    ends = [max(x) + 215 + call * 217 for call in range(300)]
    cut = windowed(_reducing(x, ends, 200, device))
    (note,) = cut.notes
    assert note.text == (
        f"the window begins {most} later than the recording at most, {in_all} in all on ranks 0-{len(x) - 1}: others wait "
        "there in their first collective for a rank whose recording began later; it is in no figure and in no step"
    )
    assert _window_ns(cut) == [(15 + 299 * 217) * US] * len(x)
    for part in breakdown(cut):
        assert part.causes[Cause.PEER_WAIT].total_ns == 0
        assert part.communication.total_ns == 300 * 15 * US


def test_ranks_that_begin_together_wait_in_their_window():
    ends = [1_000 + 215 + 40_000 * (call == 0) + call * 50_217 for call in range(30)]
    run = _reducing((1_000, 1_050), ends, 200)
    assert windowed(run) is run


def _copying(longest_us, usual_us, n=40, at=20, size=1 << 20):
    recorder = Recorder()
    for number in range(n):
        recorder.launch("HtoD", us=longest_us if number == at else usual_us).catch_up()
    trace = recorder.trace()
    sizes = np.full(len(trace.activities), size, np.int64)
    return Run("drawn", (replace(trace, activities=replace(trace.activities, size_bytes=sizes)),))


def test_one_stuck_copy_among_equals_is_told_with_its_place():
    (note,) = stuck(_copying(264_000, 20))
    assert note.text == (
        "one call was stuck: HtoD of 1.00 MiB on rank 0, 520 µs into the window, took 264 ms; the median of 39 others "
        "alike is 20.0 µs"
    )
    assert note.text in diagnose(_copying(264_000, 20), ()).run.warnings


@pytest.mark.parametrize(
    "run",
    [_copying(180, 20), _copying(264_000, 20, n=15), _copying(264_000, 20, at=0), _copying(20, 20)],
    ids=["less than a millisecond", "of fifteen", "the first", "all alike"],
)
def test_what_is_no_stuck_call_is_not_told(run):
    assert stuck(run) == ()


def _host(calls):
    """A trace of one kernel, a host that calls, and a kernel again."""
    recorder = Recorder()
    recorder.launch("gemm")
    for name, us in calls:
        recorder.calls.append((name, recorder.host, recorder.host + us, 100, 1, ABSENT))
        recorder.host += us
    recorder.launch("gemm")
    return _run(recorder)


def test_one_stuck_call_of_the_host_is_told_where_the_device_does_nothing():
    calls = [("cudaMalloc", 4_000)] * 10 + [("cudaMalloc", 106_000)] + [("cudaMalloc", 4_000)] * 10
    (note,) = stuck(_host(calls))
    assert note.text == (
        "one call was stuck: cudaMalloc on rank 0, 40.0 ms into the window, took 106 ms; the median of 20 others alike is "
        "4.00 ms"
    )
    assert stuck(_host([("hipFree", 15_000)] * 60)) == ()  # the host is blocked all along: no single call
    assert stuck(_host([*calls[:11], ("cudaMalloc", 60_000), *calls[11:]])) == ()  # two long ones


def test_one_stuck_collective_is_told_without_its_waiting():
    ends = [1_215 + call * 217 + 50_000 * (call >= 20) for call in range(40)]
    (note,) = stuck(_reducing((1_000, 1_000), ends, 200))
    assert note.text == (
        "one call was stuck: reduce of 8.00 MiB on rank 0, 4.54 ms into the window, took 50.0 ms; the median of 39 others "
        "alike is 15.0 µs; so on 1 other rank (1)"
    )


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the checkout")
def test_the_corpus_is_cut_where_its_records_are():
    prefill = windowed(load(CORPUS / "tracelens_sglang_prefilldecode"))
    assert [note.text for note in prefill.notes[:1]] == [_cut("493 ms", LOST)]
    assert [round(span / 1e6) for span in steps(prefill)[0].span_ns] == [494]
    for folder in ("modded_nanogpt_8rank", "sglang_ep8_decode_run1", "lightllm_ep8_decode", "amd_hpctraining"):
        run = load(CORPUS / folder)
        assert windowed(run) is run, folder
    (shared,) = breakdown(load(CORPUS / "switch_transformers"))
    assert shared.causes[Cause.UNRECORDED].total_ns / shared.window.total_ns == pytest.approx(0.051, abs=0.001)
    (stuck_malloc,) = stuck(load(CORPUS / "torchrec_a2a_qcomm_4rank"))
    assert "cudaMalloc on rank 3, 392 ms into the window, took 94.8 ms; the median of 23 others" in stuck_malloc.text


def test_reports_that_do_not_know_unrecorded_time_are_read():
    text = to_json(diagnose(_copying(20, 20), ()))
    cause = '"unrecorded_ns": 0'
    assert cause in text
    old = re.sub(r',\s*"unrecorded_ns": 0', "", text)
    assert cause not in old
    assert from_json(old, "old").breakdown.per_rank[0].sync_causes.unrecorded_ns == 0
