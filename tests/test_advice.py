"""Advice is printed where its conditions hold, and every flag that it names is looked up."""

import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

import rules
from analyzer.__main__ import shardscope
from analyzer.diagnose.answers import plain_answer
from analyzer.diagnose.diagnose import diagnose
from analyzer.measures.advice import fitting as fitting_module
from analyzer.measures.advice.fitting import fitting, version_of
from analyzer.measures.advice.flags import ENGINES, Flag, flags, named, numbers
from analyzer.measures.advice.followed import FEATURES, has_experts
from analyzer.measures.advice.shared import GRAPHS
from analyzer.plugins import offers
from analyzer.rule import Question
from analyzer.schema.advice import Advice
from analyzer.schema.workload import Fact, GroupUse, RankFacts, WorkloadFacts
from analyzer.sketch import sketch

ROOT = Path(__file__).resolve().parents[1]
PRINTING = sorted(
    [
        *(ROOT / "rules").glob("q*.py"),
        *(ROOT / "analyzer/diagnose").glob("*.py"),
        *(ROOT / "analyzer/measures").rglob("*.py"),
    ]
)
FLAG = re.compile(
    r"(?<![\w-])--[a-z][a-z0-9-]*(?:\.[a-z_]+)*"
    r"|\b(?:VLLM|SGLANG|NCCL|RCCL|HCCL|ASCEND|CUDA|HIP|ROCR)_[A-Z0-9_]+\b"
    r"|\b(?:nvidia-smi|amd-smi|rocm-smi|npu-smi|hccn_tool|ibstat|lspci|numactl|torchrun)\b"
)
RULES = sorted(offers(rules, "check").values(), key=lambda rule: rule.code)
FIRING = [(rule, example) for rule in RULES for example in rule.examples if example.found]
FOUND = [
    (rule, run, finding)
    for rule, example in FIRING
    for run in [sketch.read(example.drawing)]
    for finding in rule.check(run)
]
TOOLS = {"nvidia": ("nvidia-smi", "CUDA_"), "amd": ("amd-smi", "ROCR_"), "huawei": ("npu-smi", "hccn_tool", "ASCEND_")}
TENSOR, DATA = [GroupUse([], "tensor-parallel", "drawn")], [GroupUse([], "data-parallel", "drawn")]


def own_options():
    def options(command):
        yield from (option for parameter in command.params for option in getattr(parameter, "opts", ()))
        for each in getattr(command, "commands", {}) if isinstance(command, click.Group) else ():
            yield from options(command.commands[each])
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from options(command.get_command(context, name))

    return set(options(shardscope))


def workload_of(engine="unknown", maker="nvidia", phase="unknown", replay="eager", uses=()):
    return WorkloadFacts(
        engine=Fact(engine), maker=Fact(maker), replay=Fact(replay), ranks=[RankFacts(0, phase)], groups=list(uses)
    )


@pytest.fixture
def given(monkeypatch):
    """What sort of run it is, stated."""

    def state(*words, **named_words):
        facts = workload_of(*words, **named_words)
        monkeypatch.setattr(fitting_module, "workload", lambda _: facts)

    return state


def drawn(code, title=""):
    (example, *_) = [example for rule, example in FIRING if rule.code == code and title in example.title]
    return sketch.read(example.drawing)


def advice(code, run):
    (rule,) = [rule for rule in RULES if rule.code == code]
    return [text for each in rule.check(run) for text in fitting(run, each.advice, each.evidence.ranks)]


def released(run, **versions):
    return replace(run, workload=replace(run.workload, versions=versions))


def started(run, command):
    return replace(run, workload=replace(run.workload, settings={"command": command}))


# Every flag is looked up.


@pytest.mark.parametrize("path", PRINTING, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_flag_that_is_printed_is_in_the_table(path):
    text, own = path.read_text(), own_options()
    spans = [(hit.start(), hit.end()) for flag in flags() for hit in re.finditer(re.escape(flag.name), text)]
    unknown = {
        hit[0]
        for hit in FLAG.finditer(text)
        if not any(start <= hit.start() and hit.end() <= end for start, end in spans) and hit[0] not in own
    }
    assert unknown == set()


@pytest.mark.parametrize("flag", flags(), ids=lambda flag: f"{flag.owner} {flag.name}")
def test_a_flag_has_an_owner_a_version_and_a_source(flag):
    assert flag.source
    assert flag.sure in {"read", "memory"}
    if flag.owner in ("vllm", "sglang"):
        assert numbers(flag.since)
        assert flag.sure == "read"
    for ending in (flag.deprecated, flag.removed, flag.default):
        assert not ending or numbers(ending) >= numbers(flag.since)


def all_advice():
    for rule, _, finding in FOUND:
        for suggestion in finding.advice:
            yield from ((rule, each) for each in (suggestion if isinstance(suggestion, tuple) else (suggestion,)))


def test_a_sentence_without_conditions_names_no_flag():
    assert [(rule.code, each) for rule, each in all_advice() if isinstance(each, str) and list(named(each, ()))] == []


def test_a_flag_of_an_engine_is_named_for_that_engine_alone():
    for rule, each in all_advice():
        if isinstance(each, Advice):
            owners = {flag.owner for flag in named(each.text, each.engines)} & set(ENGINES)
            assert not owners or each.engines == tuple(owners), (rule.code, each.text)
            assert all(feature.startswith("--") or feature in FEATURES for feature in each.unless)


@pytest.mark.parametrize(
    ("version", "release"),
    [("0.11.1rc2.dev3+g12ab", (0, 11, 1)), ("v0.5.14", (0, 5, 14)), ("0.6.6.post1", (0, 6, 6)), ("<=0.4.0", (0, 4, 0))],
)
def test_the_numbers_of_a_version(version, release):
    assert numbers(version) == release


@pytest.mark.parametrize("version", ["", "main", "unknown"])
def test_a_version_without_numbers_is_none(version):
    assert numbers(version) == ()


@pytest.mark.parametrize(
    ("version", "fits"),
    [("0.9.2", False), ("0.10.0", True), ("0.13.9", True), ("0.14.0", False), ("0.9.10", False), ("", False)],
)
def test_a_flag_fits_from_its_first_version_to_the_one_that_has_it_on(version, fits):
    assert Flag("vllm", "--x", "0.10.0", "read", default="0.14.0").fits(version) == fits


# It is printed where its conditions hold.


@pytest.mark.parametrize("phase", ["prefill", "decode", "training", "unknown"])
@pytest.mark.parametrize("maker", ["nvidia", "amd", "huawei", "cpu", "unknown"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "megatron", "ddp", "lightllm", "unknown"])
def test_no_run_gets_a_flag_of_another_engine_or_a_tool_of_another_maker(engine, maker, phase, given):
    for replay, uses in (("eager", TENSOR), ("graph", DATA), ("unknown", ())):
        given(engine, maker, phase, replay, uses)
        for rule, run, finding in FOUND:
            texts = fitting(run, finding.advice, finding.evidence.ranks)
            assert texts, rule.code
            for text in texts:
                owners = {flag.owner for flag in named(text, (engine,))} & set(ENGINES)
                assert owners <= {engine}, (rule.code, text)
                foreign = [tool for other, tools in TOOLS.items() if other != maker for tool in tools]
                assert not [tool for tool in foreign if tool in text], (rule.code, text)
                if replay == "graph" or maker == "cpu":
                    assert "graph" not in text, (rule.code, text)
                if phase == "training" and uses == DATA:
                    assert "degree" not in text or rule.code in {"Q207", "Q208", "Q514"}, (rule.code, text)


@pytest.mark.parametrize("maker", ["nvidia", "amd", "huawei"])
def test_each_maker_has_its_own_tool_for_links(maker, given):
    given("vllm", maker)
    (first, *_) = advice("Q405", drawn("Q405"))
    assert any(tool in first for tool in TOOLS[maker])


@pytest.mark.parametrize(
    ("engine", "versions", "words"),
    [
        ("vllm", {"vllm": "0.13.0"}, "do not pass --enforce-eager"),
        ("sglang", {"sglang": "0.5.13"}, "--disable-cuda-graph"),
        ("sglang", {"sglang": "0.5.14"}, "--cuda-graph-backend-decode"),
        ("sglang", {}, "--cuda-graph-backend-decode"),
        ("megatron", {}, "so that the host launches once a step"),
    ],
)
def test_eager_steps_are_to_be_replayed_by_the_engine_s_own_setting(engine, versions, words, given):
    given(engine)
    assert words in advice("Q602", released(drawn("Q602"), **versions))[0]


@pytest.mark.parametrize("replay", ["graph", "capture", "mixed", "none", "unknown"])
def test_graph_advice_is_for_eager_steps_only(replay, given):
    given("vllm", replay=replay)
    assert fitting(drawn("Q602"), [GRAPHS]) == ()
    assert fitting(drawn("Q305"), [GRAPHS]) == ()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.9.2", "Pin the host buffers and copy on a stream of its own: do not"),
        ("0.10.1", "--async-scheduling."),
        ("0.14.0", "do not pass --no-async-scheduling."),
        ("0.33.0", "do not pass --no-async-scheduling."),
        ("", "do not pass --no-async-scheduling."),
    ],
)
def test_asynchronous_scheduling_by_the_version_that_has_it(version, words, given):
    given("vllm")
    (first, *_) = advice("Q201", released(drawn("Q201"), vllm=version))
    if version == "0.9.2":
        assert first == "Pin the host buffers and copy on a stream of its own."
    else:
        assert first.endswith(words)


def test_the_version_of_a_trace_counts_as_well():
    run = drawn("Q201")
    (trace,) = run.traces
    recorded = replace(run, traces=(replace(trace, origin=replace(trace.origin, versions={"vllm": "0.10.2"})),))
    assert version_of(recorded, "vllm") == "0.10.2"
    assert version_of(run, "vllm") == ""


@pytest.mark.parametrize(
    ("engine", "version", "words"),
    [
        ("vllm", "0.11.2", "Fuse it with the norm that follows."),
        ("vllm", "0.16.0", "pass_config.fuse_allreduce_rms=true"),
        ("vllm", "0.17.0", "Look why it is not fused"),
        ("sglang", "0.4.8", "Fuse it with the norm that follows."),
        ("sglang", "0.5.13", "--enable-flashinfer-allreduce-fusion"),
        ("sglang", "0.5.14", "--flashinfer-allreduce-fusion-backend auto"),
        ("megatron", "", "Fuse it with the norm that follows."),
    ],
)
def test_fusing_the_reduction_by_engine_and_version(engine, version, words, given):
    given(engine, uses=TENSOR)
    assert words in advice("Q301", released(drawn("Q301"), **{engine: version}))[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_needs_flashinfer_is_not_for_amd(engine, given):
    given(engine, "amd", uses=TENSOR)
    assert advice("Q301", drawn("Q301"))[0] == "Fuse it with the norm that follows."


@pytest.mark.parametrize(
    ("engine", "words"), [("ddp", "bucket_cap_mb"), ("megatron", "--overlap-grad-reduce"), ("torch", "buckets")]
)
def test_data_parallel_training_is_told_to_overlap_and_not_to_lower_a_degree(engine, words, given):
    given(engine, phase="training", uses=DATA)
    texts = advice("Q301", drawn("Q301"))
    assert words in texts[0]
    assert not [text for text in texts if "degree" in text or "norm" in text]
    assert "micro-batches" in advice("Q603", drawn("Q603"))[1]


@pytest.mark.parametrize("code", ["Q301", "Q603"])
def test_a_tensor_parallel_group_is_told_of_its_degree(code, given):
    given("vllm", phase="decode", uses=TENSOR)
    assert [text for text in advice(code, drawn(code)) if "half" in text]


def test_a_finding_about_one_group_follows_that_group_s_use(given):
    given(
        "megatron",
        phase="training",
        uses=[GroupUse([0, 1], "tensor-parallel", ""), GroupUse([0, 2], "data-parallel", "")],
    )
    run = sketch.read("\n".join(f"rank {rank} stream 7   GGAA" for rank in range(4)))
    tensor, data = Advice("lower it", uses=("tensor-parallel",)), Advice("overlap it", uses=("data-parallel",))
    assert fitting(run, [tensor, data], (0, 1)) == ("lower it",)
    assert fitting(run, [tensor, data], (0, 2)) == ("overlap it",)
    assert fitting(run, [tensor, data], (0,)) == ("lower it", "overlap it")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("model", "experts"),
    [
        ("", False),
        ("model num_experts=128\n", True),
        ("model n_routed_experts=256\n", True),
        ("model num_experts=0\n", False),
    ],
)
def test_a_dense_model_has_no_experts_to_balance(engine, model, experts, given):
    given(engine)
    run = sketch.read(f"{model}rank 0 stream 7   GGGG....AAAA\nrank 1 stream 7   GGGGGGGGAAAA")
    assert has_experts(run) == experts
    assert ("--enable-eplb" in advice("Q101", run)[0]) == experts


def test_kernels_of_experts_tell_of_experts():
    assert has_experts(sketch.read("rank 0 stream 7   GGMM"))
    assert has_experts(sketch.read("layout ep=2\nrank 0 stream 7   GG"))
    assert not has_experts(sketch.read("layout ep=1\nrank 0 stream 7   GGTTAA"))


@pytest.mark.parametrize("size", [2, 8])
def test_load_balancing_is_for_several_replicas(size, given):
    given("sglang")
    rows = "rank 0 stream 7   GGGG....AAAA\nrank 1 stream 7   GGGGGGGGAAAA"
    assert "--load-balance-method" in " ".join(advice("Q101", sketch.read(f"layout dp={size}\n{rows}")))
    assert "--load-balance-method" not in " ".join(advice("Q101", sketch.read(f"layout dp=1 tp={size}\n{rows}")))
    assert "--load-balance-method" not in " ".join(advice("Q101", sketch.read(rows)))


# What is followed is silent.


@pytest.mark.parametrize("engine", ["vllm", "sglang", "unknown"])
def test_low_latency_kernels_are_not_told_to_be_low_latency(engine, given):
    given(engine, phase="decode")
    slow, fast = "rank 0 stream 7   GGSSMMSSGG", "rank 0 stream 7   GGXXXXMMMMYYYYGG"
    (rule,) = [rule for rule in RULES if rule.code == "Q302"]
    (finding,) = rule.check(sketch.read(fast))
    assert not [text for text in fitting(sketch.read(fast), finding.advice) if "latency" in text or "deepep" in text]
    layout = "layout dp=4 ep=4\n"
    assert [
        text for text in fitting(sketch.read(layout + slow), finding.advice) if "latency" in text or "deepep" in text
    ]


def test_a_fused_reduction_is_not_told_to_be_fused():
    fused = FEATURES["fused all-reduce"]
    assert not fused(sketch.read("rank 0 stream 7   GGAABB"))


def test_a_custom_reduction_is_not_told_to_be_allowed(given):
    given("vllm")
    (rule,) = [rule for rule in RULES if rule.code == "Q402"]
    (finding,) = rule.check(drawn("Q402"))
    beside = sketch.read("engine vllm\nrank 0 stream 7   GGBBAA")
    assert "--disable-custom-all-reduce" in fitting(drawn("Q402"), finding.advice)[0]
    assert fitting(beside, finding.advice)[0] == "Read the start-up line that lists the all-reduce back ends."


@pytest.mark.parametrize(
    ("command", "silent"),
    [
        ("vllm serve m --enable-eplb --enable-expert-parallel", True),
        ("vllm serve m --enable-eplb=true", True),
        ("vllm serve m --enable-eplb-later", False),
        ("vllm serve m", False),
    ],
)
def test_a_flag_that_the_command_holds_is_not_advised(command, silent, given):
    given("vllm")
    run = sketch.read("rank 0 stream 7   GGGG....AAAA\nrank 1 stream 7   GGGGMMMMAAAA")
    assert ("--enable-eplb" not in " ".join(advice("Q101", started(run, command)))) == silent


def test_a_setting_that_is_on_is_not_advised(given):
    given("sglang")
    run = sketch.read("rank 0 stream 7   GGGG....AAAA\nrank 1 stream 7   GGGGMMMMAAAA")
    held = replace(run, workload=replace(run.workload, settings={"enable_eplb": 1}))
    assert "--enable-eplb" in " ".join(advice("Q101", run))
    assert "--enable-eplb" not in " ".join(advice("Q101", held))


# Reports and answers.


def test_a_report_prints_what_fits(given):
    given("sglang", "amd")
    rows = diagnose(released(drawn("Q602"), sglang="0.5.20"), RULES).findings
    (row,) = [row for row in rows if row.rule == "Q602"]
    assert row.advice[0].startswith("Replay decode from graphs: --cuda-graph-backend-decode")
    assert "vLLM" not in " ".join(row.advice)


@pytest.mark.parametrize(
    ("engine", "versions", "words"),
    [
        ("vllm", {"vllm": "0.26.0"}, "--profiler-config.detailed_trace_annotation=true"),
        ("vllm", {}, "from 0.26 on"),
        ("vllm", {"vllm": "0.25.0"}, ""),
        ("sglang", {}, ""),
        ("unknown", {}, ""),
    ],
)
def test_what_would_tell_of_reuse_is_told_to_the_engine_that_has_it(engine, versions, words, given):
    given(engine)
    answer = plain_answer(Question.REUSE, released(sketch.read("rank 0 stream 7   GG"), **versions))
    assert "metrics_before.prom" in answer.missing[0]
    assert words in answer.missing[0]
    assert words or "--profiler-config" not in answer.missing[0]


@pytest.mark.parametrize(
    ("engine", "version", "words"),
    [
        ("vllm", "0.13.0", "--profiler-config.torch_profiler_record_shapes=true"),
        ("vllm", "0.12.0", "VLLM_TORCH_PROFILER_RECORD_SHAPES=1"),
        ("vllm", "0.10.2", "with record_shapes"),
        ("ddp", "", "with record_shapes"),
    ],
)
def test_message_sizes_are_recorded_by_the_engine_s_own_setting(engine, version, words, given):
    given(engine)
    answer = plain_answer(Question.COMMUNICATION, released(drawn("Q301"), **{engine: version}))
    assert words in answer.missing[0]


@pytest.mark.parametrize("condition", ["tp >> 1", "two nodes", "tp > many"])
def test_a_condition_that_nobody_understands_is_a_fault(condition, given):
    given("vllm")
    with pytest.raises(ValueError, match="not a condition"):
        fitting(drawn("Q301"), [Advice("do it", layout=(condition,))])
