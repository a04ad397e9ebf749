import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_traces import Recorder

from analyzer.intervals import Intervals
from analyzer.model.run import Run
from analyzer.steps.steps import StepSource, reused_tokens, step_annotations, step_summary, steps, working_annotations

DECODE = "execute_context_0(0)_generation_8(8)"
PREFILL = "execute_context_1(512)_generation_0(0)"
NOTHING = "execute_context_0(0)_generation_0(0)"
LAYER = ("norm", "gemm", "attn", "gemm")


def only(recorder):
    return steps(Run("run", (recorder.trace(),)))[0]


def decoding(count, name=DECODE, host_leads=False):
    recorder = Recorder()
    for _ in range(count):
        recorder.annotate(name, lambda: recorder.launch("HtoD").graph(*LAYER * 3))
        if not host_leads:
            recorder.catch_up()
    return recorder


def test_a_step_is_what_was_launched_inside_its_annotation():
    found = only(decoding(5))
    assert (len(found), found.source) == (5, StepSource.ANNOTATION)
    assert found.activities.tolist() == [13] * 5
    assert found.launches.tolist() == [2] * 5


def test_a_host_ahead_of_the_device_moves_no_work_into_an_earlier_step():
    found = only(decoding(5, host_leads=True))
    # The fifth annotation ends at 15 us, before the device has finished the first step.
    assert found.host_end_ns[-1] == 15_000
    assert found.activities.tolist() == [13] * 5
    assert found.start_ns.tolist() == [6_000, 136_000, 266_000, 396_000, 526_000]
    assert found.span_ns.tolist() == [130_000] * 5


def test_a_host_ahead_of_the_device_does_not_make_steps_look_idle():
    found = only(decoding(5, host_leads=True))
    busy = Intervals.single(6_000, 656_000)
    assert (found.time_within(busy) / found.span_ns).tolist() == [1.0] * 5


def test_work_between_annotations_belongs_to_no_step():
    recorder = Recorder()
    for _ in range(3):
        recorder.annotate(DECODE, lambda: recorder.graph(*LAYER))
        recorder.launch("sample").catch_up()
    found = only(recorder)
    assert found.activities.tolist() == [4, 4, 4]
    assert found.outside == 3


def test_work_of_another_thread_belongs_to_the_step_that_is_open():
    recorder = Recorder()
    for number in range(3):
        recorder.annotate(f"ProfilerStep#{number}", lambda: recorder.launch("gemm").launch("gemm", thread=2).catch_up())
    assert only(recorder).activities.tolist() == [2, 2, 2]


def test_each_of_two_annotating_threads_has_its_own_steps():
    recorder = Recorder()
    recorder.annotate(
        DECODE,
        lambda: recorder.annotate(PREFILL, lambda: recorder.launch("gemm", "gemm", thread=2), thread=2).launch("gemm"),
    )
    found = only(recorder)
    assert dict(zip(found.phase.tolist(), found.activities.tolist(), strict=True)) == {"decode": 1, "prefill": 2}


def test_the_engines_annotation_goes_before_the_profilers():
    recorder = Recorder()
    recorder.annotate("ProfilerStep#1", lambda: decode_twice(recorder))
    assert step_annotations(recorder.trace()).name.tolist() == [DECODE, DECODE]


def decode_twice(recorder):
    for _ in range(2):
        recorder.annotate(DECODE, lambda: recorder.graph(*LAYER))


def test_one_step_written_down_twice_is_one_step():
    recorder = Recorder()
    outer = "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk8193sqsq16sqsk8193)"
    for _ in range(3):
        recorder.annotate(outer, lambda: recorder.annotate("step[DECODE bs=16]", lambda: recorder.graph(*LAYER)))
    found = only(recorder)
    assert found.name.tolist() == [outer] * 3


def test_a_step_without_work_is_idle_and_in_no_statistics():
    recorder = Recorder()
    for name in (DECODE, NOTHING, DECODE):
        recorder.annotate(name, lambda name=name: recorder.graph(*LAYER) if name == DECODE else None).catch_up()
    found = only(recorder)
    assert found.phase.tolist() == ["decode", "idle", "decode"]
    assert found.left_out.tolist() == ["", "idle", ""]
    assert working_annotations(recorder.trace()).name.tolist() == [DECODE, DECODE]
    assert found.period_ns.tolist() == [47_000, -1, -1]


def test_annotations_around_which_nothing_was_launched_give_way_to_graphs():
    recorder = Recorder()
    for _ in range(3):
        recorder.annotate(DECODE, lambda: None)
        recorder.graph(*LAYER).catch_up()
    assert only(recorder).source is StepSource.GRAPH_LAUNCH


def test_a_range_named_after_a_phase_gives_it_to_the_profilers_step():
    recorder = Recorder()
    for number in range(2):
        recorder.annotate(
            f"ProfilerStep#{number}", lambda: recorder.annotate("pd.decode", lambda: recorder.launch("gemm"))
        )
    assert only(recorder).phase.tolist() == ["decode", "decode"]


def test_a_host_without_an_accelerator_is_cut_by_the_time_of_its_operations():
    recorder = Recorder("cpu")
    for _ in range(2):
        recorder.annotate(DECODE, lambda: recorder.wait(50))
    for start in (10, 20, 60):
        recorder.spans.append(("gemm", start, start + 5, 100, 1, -1))
    found = only(recorder)
    assert found.activities.tolist() == [2, 1]
    assert found.span_ns.tolist() == [51_000, 51_000]


def test_every_launch_of_a_whole_graph_is_a_step():
    recorder = Recorder()
    for _ in range(40):
        # 12 layers of 87 kernels, 5 around them.
        recorder.graph(
            "norm", *(LAYER * 21 + ("reduce", "norm", "reduce")) * 12, "norm", "gemm", "gemm", "sample", us=1
        )
        recorder.catch_up()
    found = only(recorder)
    assert found.activities.tolist() == [1049] * 40
    assert found.launches.tolist() == [1] * 40
    assert found.source is StepSource.GRAPH_LAUNCH


def test_graphs_of_several_batch_sizes_are_a_step_each():
    recorder = Recorder()
    for size in (8, 8, 4, 4, 4, 2):
        recorder.launch("HtoD").graph(*LAYER, f"gemm_{size}").catch_up()
    assert only(recorder).activities.tolist() == [5] * 6


def test_graphs_that_are_pieces_of_a_step_are_taken_together():
    recorder = Recorder()
    for _ in range(6):
        recorder.launch("HtoD").graph("norm", "gemm")
        for _ in range(3):
            recorder.launch("attn").graph("gemm", "norm", "gemm")
        recorder.launch("attn").graph("gemm", "norm").launch("sample").catch_up()
    found = only(recorder)
    assert len(found) == 6
    assert found.activities.tolist() == [17] * 6
    assert found.launches.tolist() == [9] * 6


def test_eager_work_is_cut_where_it_repeats():
    recorder = Recorder()
    for _ in range(6):
        recorder.launch("HtoD")
        for kernel in LAYER * 4:
            recorder.launch(kernel)
        recorder.launch("sample").catch_up().wait(30)
    found = only(recorder)
    assert found.source is StepSource.PERIOD
    assert found.activities.tolist() == [18] * 6
    assert found.name.tolist() == ["HtoD"] * 6


def test_the_layers_of_one_forward_pass_are_no_steps():
    recorder = Recorder()
    recorder.launch("HtoD")
    for kernel in LAYER * 36:
        recorder.launch(kernel)
    recorder.launch("sample")
    found = only(recorder)
    assert len(found) == 0
    assert found.reason == (
        "no annotation marks a step; no graph is launched; "
        "the sequence of the device's work repeats no unit that takes inputs in or samples"
    )


def test_the_last_step_that_the_recording_cuts_short_is_in_no_statistics():
    recorder = Recorder()
    for number in range(6):
        for kernel in ("HtoD", *LAYER, *LAYER[: 2 if number == 5 else 4]):
            recorder.launch(kernel)
        recorder.catch_up().wait(30)
    assert only(recorder).left_out.tolist() == ["first", "", "", "", "", "cut"]


def test_a_copy_and_a_kernel_that_alternate_are_no_steps():
    recorder = Recorder()
    for _ in range(20):
        recorder.launch("HtoD").launch("gemm").catch_up()
    assert len(only(recorder)) == 0


def test_a_unit_that_covers_little_of_the_work_is_no_step():
    recorder = Recorder()
    for _ in range(5):
        recorder.launch("HtoD", *LAYER * 2).catch_up()
    for number in range(100):
        recorder.launch(f"gemm_{number}")
    assert len(only(recorder)) == 0


def test_the_file_name_gives_the_phase_that_graphs_do_not_state():
    recorder = Recorder(stage="decode")
    for _ in range(2):
        recorder.graph(*LAYER).catch_up()
    assert only(recorder).phase.tolist() == ["decode", "decode"]


def test_low_latency_expert_kernels_are_decode():
    recorder = Recorder()
    for _ in range(2):
        recorder.graph(*LAYER, "internode_ll::dispatch", "internode_ll::combine").catch_up()
    assert only(recorder).phase.tolist() == ["decode", "decode"]


def test_ramps_warm_up_and_the_first_step_are_left_out_of_statistics():
    recorder = Recorder()
    for requests, us in ((1, 10), (2, 10), (8, 90), *[(8, 10)] * 8, (2, 10)):
        name = f"execute_context_0(0)_generation_{requests}({requests})"
        recorder.annotate(name, lambda us=us: recorder.graph(*LAYER, us=us)).catch_up()
    found = only(recorder)
    assert found.left_out.tolist() == ["first", "ramp", "warm-up", *[""] * 8, "ramp"]
    summary = step_summary(Run("run", (recorder.trace(),)))[0]
    assert (summary.count, summary.left_out) == (12, {"first": 1, "ramp": 2, "warm-up": 1})
    assert summary.median_ns == 40_000


def test_slow_leading_steps_are_warm_up():
    recorder = Recorder()
    for us in (50, 90, 40, 10, 90, *[10] * 7):
        recorder.annotate(DECODE, lambda us=us: recorder.graph(*LAYER, us=us)).catch_up()
    assert only(recorder).left_out.tolist() == ["first", "warm-up", "warm-up", *[""] * 9]


def test_a_long_prompt_is_no_warm_up():
    recorder = Recorder()
    for tokens in (512, 8192, *[512] * 6):
        name = f"execute_context_1({tokens})_generation_0(0)"
        recorder.annotate(name, lambda tokens=tokens: recorder.launch("gemm", us=tokens)).catch_up()
    assert only(recorder).left_out.tolist() == ["first", *[""] * 7]


def test_of_three_steps_none_is_left_out():
    assert only(decoding(3)).left_out.tolist() == ["", "", ""]


def test_steps_are_summed_up_by_phase():
    recorder = Recorder()
    for _ in range(2):
        recorder.annotate(PREFILL, lambda: recorder.launch("gemm", us=500)).catch_up()
        for _ in range(4):
            recorder.annotate(DECODE, lambda: recorder.graph(*LAYER)).catch_up()
    decode, prefill = step_summary(Run("run", (recorder.trace(),)))
    assert (decode.kind, decode.count, decode.median_ns, decode.median_tokens) == ("decode", 8, 40_000, 8)
    assert (prefill.kind, prefill.count, prefill.median_ns, prefill.median_tokens) == ("prefill", 2, 500_000, 512)
    assert decode.period_ns == 46_000


def test_terms_are_medians_within_steps():
    run = Run("run", (decoding(4).trace(),))
    term = Intervals.single(0, int(steps(run)[0].end_ns[-1]))
    assert step_summary(run, [{"compute": term}])[0].terms == {"compute": 130_000, "sync": 0}


def test_tokens_found_in_the_cache_are_counted_on_the_rank_that_computed_most():
    recorder = Recorder()
    name = "execute_64_context_1(sq64sk512sqsq4096sqsk32768)_generation_0(sq0sk0sqsq0sqsk0)"
    for _ in range(3):
        recorder.annotate(name, lambda: recorder.launch("gemm")).catch_up()
    assert reused_tokens(Run("run", (recorder.trace(0), recorder.trace(1)))) == (1344, 192)


def test_reuse_that_no_step_states_is_unknown():
    assert reused_tokens(Run("run", (decoding(3, PREFILL).trace(),))) is None


def test_a_trace_without_work_has_no_steps():
    assert len(only(Recorder())) == 0


def test_thousands_of_steps_are_cut():
    found = only(decoding(2000))
    assert np.bincount(found.activities)[13] == 2000


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_rank_has_its_steps_in_order(ranks):
    run = Run("run", tuple(decoding(3).trace(rank) for rank in range(ranks)))
    assert [found.rank for found in steps(run)] == list(range(ranks))


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 50)), min_size=1, max_size=12),
    st.integers(1, 40),
    st.integers(0, 500),
)
def test_how_far_the_host_is_ahead_changes_no_step(batches, us, late):
    recorder = Recorder()
    for kernels, pause in batches:
        recorder.annotate(DECODE, lambda kernels=kernels: recorder.launch(*["gemm"] * kernels, us=us, late=late))
        recorder.launch("sample", us=us, late=late).wait(pause)
    found = only(recorder)
    assert found.activities.tolist() == [kernels for kernels, _ in batches]
    assert found.span_ns.tolist() == [kernels * us * 1_000 for kernels, _ in batches]
    assert found.outside == len(batches)
