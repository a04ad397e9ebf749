import pytest

from analyzer.steps.names import Phase, Writer, read_step_name


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("execute_new_2_cached_0", Phase.PREFILL),
        ("execute_new_0_cached_6", Phase.DECODE),
        ("execute_new_1_cached_6", Phase.MIXED),
        ("execute_new_0_cached_0", Phase.IDLE),
        ("execute_context_1(512)_generation_0(0)", Phase.PREFILL),
        ("execute_context_0(0)_generation_8(8)", Phase.DECODE),
        ("execute_context_2(8192)_generation_6(6)", Phase.MIXED),
        ("execute_context_0(0)_generation_0(0)", Phase.IDLE),
        ("execute_context_1(512_262144)_generation_2(2_2)", Phase.MIXED),
        (
            "execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0sqsq0sqsk0)",
            Phase.PREFILL,
        ),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", Phase.DECODE),
        ("step[EXTEND bs=15 toks=15360]", Phase.PREFILL),
        ("step[DECODE bs=16]", Phase.DECODE),
        ("step[MIXED bs=5]", Phase.MIXED),
        ("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]", Phase.MIXED),
        ("step[IDLE bs=0]", Phase.IDLE),
        ("step[PREBUILT bs=3]", Phase.IDLE),
        ("step[VERIFY bs=4 toks=16]", Phase.VERIFY),
        ("step[TARGET_VERIFY bs=4]", Phase.VERIFY),
        ("step[DRAFT bs=4]", Phase.DRAFT),
        ("step[DRAFT_EXTEND_V2 bs=4]", Phase.DRAFT),
        ("step[SPLIT_PREFILL bs=1 toks=64]", Phase.PREFILL),
        ("step[DLLM_EXTEND bs=1 toks=64]", Phase.UNKNOWN),
        ("capture_32_FULL", Phase.CAPTURE),
        ("capture_8_PIECEWISE", Phase.CAPTURE),
        ("capture_128_decode", Phase.CAPTURE),
        ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]", Phase.PREFILL),
        ("decode[bs=117/128 tok=117 d=117]", Phase.DECODE),
        ("decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]", Phase.MIXED),
        ("ProfilerStep#12", Phase.UNKNOWN),
    ],
)
def test_the_name_of_a_step_says_its_phase(name, phase):
    assert read_step_name(name).phase is phase


@pytest.mark.parametrize(
    "name",
    [
        "step",
        "nccl:all_reduce",
        "gpu_model_runner: forward",
        "## forward ##",
        "Optimizer.step#Adam.step",
        "execute_diffusion_1_2x3",
        "scheduler.run_batch",
        "",
    ],
)
def test_a_range_that_marks_no_step_is_none(name):
    assert read_step_name(name) is None


def test_requests_and_tokens_are_counted_for_each_half():
    step = read_step_name("execute_context_2(8192)_generation_6(7)")
    assert (step.prefill.requests, step.prefill.tokens, step.decode.requests, step.decode.tokens) == (2, 8192, 6, 7)
    assert (step.requests, step.tokens) == (8, 8199)


def test_more_decoded_tokens_than_requests_is_speculation():
    assert read_step_name("execute_context_0(0)_generation_6(24)").is_speculative
    assert not read_step_name("execute_context_0(0)_generation_6(6)").is_speculative


def test_reused_tokens_are_those_in_the_cache_before_the_step():
    step = read_step_name("execute_518_context_1(sq512sk1536sqsq262144sqsk786432)_generation_6(sq6sk600sqsq6sqsk600)")
    assert step.prefill.reused_tokens == 1024
    assert step.decode.context_tokens == 600


def test_an_older_name_does_not_say_what_was_reused():
    assert read_step_name("execute_context_1(512)_generation_0(0)").prefill.reused_tokens is None


def test_the_oldest_name_does_not_say_how_many_tokens_there_are():
    assert read_step_name("execute_new_1_cached_6").tokens is None


def test_a_mixed_step_counts_both_halves_where_they_are_written():
    step = read_step_name(
        "step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=1 c_sqsk=1 g_sq=3 g_sk=6144 g_sqsq=3 g_sqsk=6144]"
    )
    assert (step.prefill.requests, step.prefill.tokens, step.decode.requests, step.decode.tokens) == (2, 6144, 3, 3)
    assert (step.requests, step.tokens) == (5, 6147)


def test_a_mixed_step_that_is_not_split_does_not_say_its_tokens():
    step = read_step_name("step[MIXED bs=5]")
    assert (step.requests, step.tokens, step.prefill.requests) == (5, None, None)


def test_the_padding_of_a_graph_is_no_request():
    assert read_step_name("decode[bs=117/128 tok=117 d=117]").requests == 117


def test_the_sums_of_an_unsplit_mixed_batch_belong_to_neither_half():
    step = read_step_name("decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]")
    assert (step.tokens, step.prefill.requests, step.decode.requests) == (384, 2, 126)
    assert step.prefill.context_tokens is None


def test_detailed_sums_of_sglang_are_read():
    step = read_step_name("step[EXTEND bs=2 toks=20 c_sq=20 c_sk=84 c_sqsq=200 c_sqsk=840 forward_id=17]")
    assert step.prefill.reused_tokens == 64


def test_a_profiler_step_is_the_profilers():
    assert read_step_name("ProfilerStep#3").writer is Writer.PROFILER
