"""Faults of a recording are counted before any figure is given, each with what follows from it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from step_traces import US, Recorder

from analyzer.diagnose.tables import warnings
from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.measures.records.plausible import faults, slowed
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.workload import Workload
from analyzer.steps.steps import steps

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"


def _recorded(calls=100):
    recorder = Recorder()
    for _ in range(calls):
        recorder.launch("gemm")
    return recorder.trace()


def _without(trace, *, kernels=(), calls=()):
    """The trace without the kernels, or the calls, of some launches."""
    kept = ~np.isin(np.arange(len(trace.activities)), kernels)
    called = ~np.isin(np.arange(len(trace.calls)), calls)
    return replace(trace, activities=trace.activities.take(kept), calls=trace.calls.take(called))


def _said(trace):
    return [(note.text, note.count) for note in faults(trace)]


LAUNCH = "launch without a kernel: what it ran is missing from every sum and reads as idle time"
ORPHAN = "device entry without its launch: why the device was idle before it is unknown, and it may be in no step"


def test_a_whole_recording_has_no_fault():
    assert _said(_recorded()) == []


def test_single_launches_without_a_kernel_are_counted():
    assert _said(_without(_recorded(), kernels=[10, 40, 41])) == [(LAUNCH, 3)]


def test_a_lost_buffer_is_a_stretch_of_launches_in_a_row_without_a_kernel():
    said = (
        "1 stretch of 50.0 µs in all in which 50 launches in a row have no kernel, a lost buffer of the profiler: what "
        "ran there reads as idle time"
    )
    assert _said(_without(_recorded(), kernels=range(20, 70))) == [(said, 1)]
    assert _said(_without(_recorded(), kernels=[5, *range(20, 70)])) == [(said, 1), (LAUNCH, 1)]


def test_work_that_was_queued_when_the_profiler_stopped_is_no_fault():
    assert _said(_without(_recorded(), kernels=range(60, 100))) == []


def test_work_that_was_launched_before_the_window_is_no_fault():
    assert _said(_without(_recorded(), calls=range(40))) == []


def test_kernels_without_a_launch_behind_launched_ones_are_counted():
    assert _said(_without(_recorded(), calls=[50, 51, 77])) == [(ORPHAN, 3)]


def test_launches_inside_a_capture_run_later_and_are_no_fault():
    recorder = Recorder()
    recorder.launch("gemm").launch(call="cudaStreamBeginCapture_v10000")
    for _ in range(64):
        recorder.launch()
    recorder.launch(call="cudaStreamEndCapture_v10000").graph(*["gemm"] * 64)
    assert _said(recorder.trace()) == []


def test_a_host_function_is_no_launch_of_a_kernel():
    recorder = Recorder().launch("gemm").launch(call="cudaLaunchHostFunc").launch("gemm")
    assert _said(recorder.trace()) == []


def test_branches_of_a_graph_on_one_stream_are_counted_and_add_up_once():
    trace = Recorder().graph("gemm", "gemm", us=100).trace()
    start = trace.activities.start_ns - np.array([0, 60 * US])
    trace = replace(trace, activities=replace(trace.activities, start_ns=start, end_ns=start + 100 * US))
    (note,) = faults(trace)
    assert note.text.startswith("entries of one graph overlap on one stream, 60.0 µs in all")
    assert breakdown(Run("one", (trace,)))[0].compute.total_ns == 140 * US


def _decoding(period_us, counters=(), **reference):
    recorder = Recorder()
    for _ in range(20):
        recorder.annotate(
            "execute_context_0(0)_generation_8(8)", lambda: recorder.graph("gemm", us=period_us)
        ).catch_up()
    return Run("decode", (recorder.trace(),), workload=Workload(reference=reference, counters=dict(counters)))


def test_steps_slower_than_the_engines_own_time_per_token_are_said_with_the_factor():
    run = _decoding(994, itl_median_ns=800 * US)
    (note,) = slowed(run)
    assert note.text == (
        "decode steps start every 1.00 ms in the trace, the engine gave a token every 800 µs without the profiler, "
        "1.25x less: idle time and what the host does are overstated by it"
    )
    assert note.text in list(warnings(run))


def test_without_a_reference_the_engines_metrics_tell_its_time_per_token():
    name = "vllm:inter_token_latency_seconds"
    counters = {
        f'{name}_sum{{engine="0"}}': 0.4,
        f'{name}_sum{{engine="1"}}': 0.1,
        f'{name}_count{{engine="0"}}': 800,
        f'{name}_count{{engine="1"}}': 200,
    }
    (note,) = slowed(_decoding(994, counters))
    assert note.text == (
        "decode steps start every 1.00 ms in the trace, the engine gave a token every 500 µs over the whole load, by its "
        "metrics, 2.00x less: idle time and what the host does are overstated by it"
    )
    assert slowed(_decoding(994, counters, itl_median_ns=950 * US)) == ()


@pytest.mark.parametrize("reference", [{}, {"itl_median_ns": 950 * US}, {"tpot_median_ns": 1_100 * US}])
def test_steps_as_fast_as_the_engines_own_time_per_token_are_no_fault(reference):
    assert slowed(_decoding(994, **reference)) == ()


def test_f2_classes_never_exceed_the_step_whatever_kernels_sum_to():
    recorder = Recorder()
    for at, name in enumerate(("gemm", "reduce", "HtoD")):
        recorder.busy = 0
        recorder.launch(name, us=17_080, stream=7 + at, late=0)
    trace = recorder.trace()
    (part,) = breakdown(Run("three streams", (trace,)))
    assert int(trace.activities.duration_ns.sum()) == 51_240 * US
    assert part.window.total_ns < 17_253 * US
    assert sum(part.term(kind).total_ns for kind in Kind) == part.window.total_ns
    assert sum(part.subclass_ns.values()) <= part.window.total_ns


def _two_streams(first_us, second_us, apart_us):
    """One kernel of each length, the second so much after the first has begun."""
    recorder = Recorder()
    recorder.launch("gemm", us=first_us, late=0)
    begin = recorder.busy - first_us
    recorder.busy = begin + apart_us
    recorder.launch("norm", us=second_us, stream=8, late=0)
    return recorder.trace()


@pytest.mark.parametrize(
    ("first_us", "second_us", "rest_us", "span_us", "union_us", "sum_us"),
    [(7_000, 5_944, 1_500, 12_049, 11_204, 14_444), (7_000, 5_884, 1_000, 9_399, 9_349, 13_884)],
)
def test_f4_span_union_and_sum_are_three_figures(first_us, second_us, rest_us, span_us, union_us, sum_us):
    trace = _two_streams(first_us, second_us, union_us - rest_us - second_us)
    late = Recorder()
    late.busy = int(trace.activities.start_ns[0]) // US + span_us - rest_us
    late.launch("attn", us=rest_us, late=0)
    last = late.trace().activities
    activities = replace(
        trace.activities,
        name=type(last.name).of(["gemm", "norm", "attn"]),
        patterns=(*trace.activities.patterns, *last.patterns),
        **{
            column: np.concatenate([getattr(trace.activities, column), getattr(last, column)])
            for column in ("start_ns", "end_ns", "process", "lane", "correlation", "size_bytes")
        },
    )
    (part,) = breakdown(Run("f4", (replace(trace, activities=activities),)))
    assert int(activities.duration_ns.sum()) == sum_us * US
    assert part.device_busy_ns == part.compute.total_ns == union_us * US
    assert part.window.total_ns == span_us * US


def test_f6_kernels_of_graphs_are_classed_by_name_never_as_graph_launch():
    recorder = Recorder()
    layers = ["gemm", "attn", "gemm", "norm"] * 262 + ["sample"]
    for _ in range(40):
        recorder.graph(*layers, us=1).catch_up()
    run = Run("f6", (recorder.trace(),))
    assert len(run.traces[0].activities) == 41_960
    assert np.unique(run.traces[0].activities.correlation).size == 40
    (part,) = breakdown(run)
    assert {word: ns // US for (_, word), ns in part.subclass_ns.items()} == {
        "gemm": 20_960,
        "attention": 10_480,
        "norm": 10_480,
        "sampling": 40,
    }
    assert part.unclassified_ns == 0
    assert len(steps(run)[0]) == 40


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the trace corpus is not at {CORPUS}")
@pytest.mark.parametrize(
    ("place", "counts"),
    [
        ("sglang_ep8_decode_run1", [()] * 8),
        ("tracelens_vllm_decode_full", [()]),
        ("tracelens_sglang_prefilldecode", [()]),
        ("torchrec_a2a_qcomm_4rank", [()] * 4),  # 72 to 98 kernels of each were launched before the window
        ("hta_trace_compare", [((ORPHAN, 4),)] * 2),  # someone took launches out of the file
    ],
)
def test_only_real_recordings_that_are_not_whole_have_a_fault(place, counts):
    assert [tuple(_said(trace)) for trace in load(CORPUS / place).traces] == counts
