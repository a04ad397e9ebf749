"""Work, engine, maker, replay, phases, roles and uses of groups on drawn runs: a sign says it, without it is unknown."""

import json
from dataclasses import replace

import pytest
from rank_traces import EXCHANGE, REDUCE, process_groups, recorded
from sort_traces import GEMM, MODEL, NORM, facts, rank, run
from step_traces import Recorder

from analyzer.ingest.manifest import read_manifest
from analyzer.measures.sorts.engines import ENGINES, PYTORCH
from analyzer.measures.sorts.makers import MAKERS
from analyzer.measures.sorts.phases import PHASES
from analyzer.measures.sorts.replay import LAUNCHES
from analyzer.measures.sorts.sign import ASKED, first
from analyzer.measures.sorts.uses import USES
from analyzer.measures.sorts.works import SCHEDULED, WORKS
from analyzer.measures.workload import workload
from analyzer.model.layout import Layout, Source
from analyzer.model.run import Run
from analyzer.model.topology import Topology
from analyzer.model.trace import ProcessGroup
from analyzer.model.workload import Workload
from analyzer.render.words import sort
from analyzer.schema.workload import Fact, RankFacts, WorkloadFacts
from analyzer.sketch import sketch

ALL_SIGNS = (
    *(*ENGINES, *PYTORCH, *MAKERS, *LAUNCHES, *PHASES, *WORKS, SCHEDULED),
    *(entry.sign for entry in USES),
)


@pytest.mark.parametrize("sign", ALL_SIGNS, ids=lambda sign: f"{sign.says}: {sign.match[:30]}")
def test_a_sign_claims_its_examples_and_says_who_writes_them(sign):
    assert sign.examples
    assert sign.source
    assert sign.sure in ("certain", "likely")
    for example in sign.examples:
        assert first(sign, {sign.column: f"another name\n{example}\nyet another"}) == example
        assert len(example) < ASKED


def test_without_any_sign_nothing_is_claimed():
    plain = facts(["a_kernel_that_nobody_knows"] * 5)
    assert (plain.work, plain.engine, plain.replay.value) == (Fact(), Fact(), "none")
    assert plain.ranks == [RankFacts(0, "unknown", "")]
    assert plain.groups == []
    assert plain.cores is None


@pytest.mark.parametrize(
    ("names", "engine", "sure"),
    [
        ({"processes": ("VLLM::Worker_TP3",)}, "vllm", "certain"),
        ({"processes": ("VLLM::EngineCore_DP1",)}, "vllm", "certain"),
        ({"processes": ("sglang::scheduler_TP1",)}, "sglang", "certain"),
        ({"versions": {"vllm": "0.99"}}, "vllm", "certain"),
        ({"host": ["vllm::unified_mla_attention"]}, "vllm", "certain"),
        ({"host": ["step[EXTEND bs=3 toks=77]"]}, "sglang", "certain"),
        ({"host": ["execute_context_2(96)_generation_1(1)"]}, "vllm", "likely"),
        ({"host": ["execute_context_2(96)_generation_1(1)", "step[MIXED bs=3]"]}, "sglang", "certain"),
        ({"host": ["prefill[bs=2 tok=14721 ctx=[7803, 6918]]"]}, "atom", "likely"),
        ({"kernels": ["_fwd_kernel_destindex_copy_kv_fp8"]}, "lightllm", "likely"),
        ({"kernels": ["store_kvcache_kernel_0d1d2d"]}, "nano-vllm", "likely"),
        ({"host": ["trtllm::attn_custom_op_inplace"]}, "tensorrt-llm", "likely"),
        ({"host": ["DistributedDataParallel.forward"]}, "ddp", "certain"),
        ({"host": ["DistributedDataParallel.forward", "## all2all_data:lengths ##"]}, "torchrec", "certain"),
        ({"host": ["FSDP::pre_backward"]}, "fsdp", "certain"),
        ({"host": ["FullyShardedDataParallel.forward"]}, "fsdp", "certain"),
        ({"host": ["execute_diffusion_2_1024x1024"]}, "diffusion", "likely"),
        ({"kernels": ["Default/network-Other/MatMul-op9"], "device": "npu"}, "mindspore", "certain"),
        ({"host": ["aten::mm"]}, "torch", "likely"),
        ({"kernels": ["void at::native::reduce_kernel<512, 1>(int)"]}, "torch", "likely"),
        ({"host": ["execute_nothing"]}, "unknown", "unknown"),
        ({"host": ["step of mine", "vllm_is_good"]}, "unknown", "unknown"),
        ({"kernels": ["void trtllm_like_kernel<int>()"]}, "unknown", "unknown"),
    ],
)
def test_an_engine_by_its_sign(names, engine, sure):
    seen = facts(**names).engine
    assert (seen.value, seen.sure) == (engine, sure)


def test_megatron_by_the_names_of_its_groups_and_what_each_is_for():
    groups = (
        ProcessGroup("1", "TENSOR_MODEL_PARALLEL_GROUP", 2, (0, 1)),
        ProcessGroup("2", "DATA_PARALLEL_GROUP", 2, (0, 2)),
    )
    one = facts([GEMM, REDUCE], groups=groups)
    assert (one.engine.value, one.engine.sure) == ("megatron", "certain")


@pytest.mark.parametrize(
    ("kernels", "names", "work"),
    [
        (
            MODEL,
            {"host": ["Optimizer.step#AdamW.step"]},
            Fact("training", "'Optimizer.step#AdamW.step': a step of an optimizer", "certain"),
        ),
        (MODEL, {"host": ["MmBackward0"]}, Fact("training", "'MmBackward0': a backward pass", "likely")),
        (
            [NORM] * 9,
            {"host": ["NativeLayerNormBackward0"]},
            Fact("microbenchmark", "a backward pass without any matrix product or convolution", "likely"),
        ),
        (
            MODEL,
            {"host": ["capture_8_decode"]},
            Fact("graph capture", "'capture_8_decode': an engine's range of a capture", "likely"),
        ),
        (MODEL, {}, Fact("inference", "the layers of a model, and no backward pass", "likely")),
        (MODEL, {"processes": ("VLLM::Worker",)}, Fact("serving", "vllm serves requests", "certain")),
        (
            [GEMM, "store_kvcache_kernel", NORM] * 3,
            {},
            Fact("cut-out of a step", "nano-vllm, and no more than a layer of its model", "likely"),
        ),
        ([GEMM] * 9, {}, Fact("microbenchmark", "nothing but gemm", "likely")),
        ([GEMM] * 3, {}, Fact("cut-out of a step", "3 kernels", "likely")),
        ([REDUCE] * 9, {}, Fact("cut-out of a step", "nothing but collectives is recorded", "likely")),
        (
            [GEMM, NORM] * 5,
            {"host": ["nccl:all_reduce"]},
            Fact("cut-out of a step", "ranges of collectives without their kernels", "likely"),
        ),
        (
            MODEL,
            {"host": ["[param|torch.mm|0|0|0]"]},
            Fact("microbenchmark", "'[param|torch.mm|0|0|0]': a range of PARAM's benchmarks", "certain"),
        ),
    ],
)
def test_work_by_its_sign_or_by_what_the_kernels_amount_to(kernels, names, work):
    assert facts(kernels, **names).work == work


def test_a_run_json_states_more_surely_than_any_sign(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"workload": {"work": "serving", "engine": "my-engine", "phase": "decode", "cores": 7}}))
    stated = read_manifest(path).workload
    one = workload(Run("drawn", (rank(0, MODEL, host=["Optimizer.step#SGD.step"]),), workload=stated))
    assert one.work == Fact("serving", "run.json states it", "declared")
    assert one.engine == Fact("my-engine", "run.json states it", "declared")
    assert one.ranks[0].phase == "decode"
    assert one.cores == 7


def test_a_run_json_of_an_earlier_collector_still_reads(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"engine": "torch", "workload": "tp"}))
    assert read_manifest(path).workload.declared == {"engine": "torch"}


@pytest.mark.parametrize(
    ("names", "maker", "sure"),
    [
        ({"device_name": "NVIDIA B300 SXM6 AC"}, "nvidia", "certain"),
        ({"device_name": "AMD Instinct MI325X"}, "amd", "certain"),
        ({"calls": ["hipLaunchKernel"]}, "amd", "certain"),
        ({"calls": ["cudaLaunchKernel"]}, "nvidia", "likely"),
        ({"kernels": ["ncclDevKernel_Generic_4(ncclDevComm*, channelMasks, ncclWork*)"]}, "amd", "likely"),
        ({"device": "npu"}, "huawei", "certain"),
        ({"device": "cpu"}, "cpu", "likely"),
        ({"device": "cpu", "calls": ["cudaLaunchKernel"]}, "nvidia", "likely"),
    ],
)
def test_a_maker_by_name_calls_or_kind(names, maker, sure):
    seen = facts(**{"kernels": [GEMM], **names}).maker
    assert (seen.value, seen.sure) == (maker, sure)


def replayed(*, graphs, alone, call="cudaGraphLaunch"):
    recorder = Recorder()
    for _ in range(graphs):
        recorder.launch(*["gemm"] * 10, call=call)
    for _ in range(alone):
        recorder.launch("gemm", call="hipLaunchKernel" if call.startswith("hip") else "cudaLaunchKernel")
    return workload(Run("recorded", (recorder.trace(),))).replay


@pytest.mark.parametrize(
    ("graphs", "alone", "value"), [(0, 9, "eager"), (9, 0, "graph"), (3, 3, "graph"), (3, 9, "mixed"), (1, 40, "mixed")]
)
@pytest.mark.parametrize("call", ["cudaGraphLaunch", "hipGraphLaunch"])
def test_replay_by_the_share_of_kernels_that_graphs_launch(graphs, alone, value, call):
    assert replayed(graphs=graphs, alone=alone, call=call).value == value


def test_a_capture_launches_no_graph():
    calls = ["hipStreamBeginCapture", "hipLaunchKernel", "hipGraphInstantiate"]
    assert facts([GEMM], calls=calls).replay.value == "capture"


def test_phases_are_those_of_the_steps():
    both = workload(sketch.read("rank 0 steps PPPPDDDD\nrank 0 host l...l...\nrank 0 stream 7 GGGGTTTT"))
    one = workload(sketch.read("rank 0 steps DDDDDDDD\nrank 0 host l...l...\nrank 0 stream 7 GGGGTTTT"))
    assert [each.ranks[0].phase for each in (both, one)] == ["mixed", "decode"]
    assert both.phases == {"mixed", "prefill", "decode"}


def test_roles_are_stated_by_rank_or_by_a_folder():
    split = workload(run({"kernels": MODEL}, {"kernels": MODEL}, roles={0: "prefill", 1: "decode"}))
    assert [(each.phase, each.role) for each in split.ranks] == [("prefill", "prefill"), ("decode", "decode")]
    path = rank(0, MODEL)
    folder = replace(path, origin=replace(path.origin, path="runs/decode/rank0.json", stage="decode"))
    by_stage = replace(path, origin=replace(path.origin, path="runs/x-TP-0-DECODE.json", stage="decode"))
    roles = [workload(Run("drawn", (each,), workload=Workload(role="decode"))).ranks[0] for each in (folder, by_stage)]
    assert roles == [RankFacts(0, "decode", "decode"), RankFacts(0, "decode", "")]


def pair(kind, host=(), kernels=MODEL, collective=REDUCE, **more):
    """Two ranks with one collective each, of one recorded group."""
    groups = process_groups((0, 1))
    records = recorded([len(kernels)], operation=kind)
    return workload(
        run(*[{"kernels": [*kernels, collective], "host": host, "groups": groups, "records": records}] * 2, **more)
    )


STEP = "Optimizer.step#SGD.step"


@pytest.mark.parametrize(
    ("kind", "host", "use"),
    [
        ("all_reduce", [STEP, "DistributedDataParallel.forward"], "data-parallel"),
        ("reduce_scatter", [STEP, "FSDP::post_backward"], "data-parallel"),
        ("all_reduce", [STEP, "NestedRedistribute"], "tensor-parallel"),
        ("all_to_all", [STEP, "All2All_Pooled_Req"], "embedding-parallel"),
        ("all_to_all", [STEP, "moe.dispatch"], "expert-parallel"),
        ("send_recv", [STEP], "pipeline-parallel"),
        ("send_recv", ["ring.wait"], "context-parallel"),
        ("send_recv", ["pd.kv_recv"], "hand-over"),
        ("all_reduce", [], "unknown"),
    ],
)
def test_a_group_is_for_what_its_collectives_and_the_names_around_them_say(kind, host, use):
    collective = REDUCE if "reduce" in kind else EXCHANGE
    (row,) = pair(kind, host, collective=collective).groups
    assert (row.ranks, row.use) == ([0, 1], use)
    assert row.evidence


def test_a_stated_layout_is_surer_than_a_sign_and_an_inferred_one_is_not():
    groups, evidence = {"tp": ((0, 1),)}, {"tp": "seen"}
    stated = Layout(2, {"tp": 2}, groups, Source.METADATA, evidence)
    host = [STEP, "DistributedDataParallel.forward"]
    assert pair("all_reduce", host, layout=stated).groups[0].use == "tensor-parallel"
    assert pair("all_reduce", host).groups[0].use == "data-parallel"


def test_stages_of_a_pipeline_are_roles():
    stages = pair("send_recv", [STEP], collective=EXCHANGE).ranks
    assert [(each.rank, each.phase, each.role) for each in stages] == [
        (0, "training", "stage 0"),
        (1, "training", "stage 1"),
    ]


def test_cores_are_those_of_the_smallest_host():
    small = Run("drawn", (rank(0, [GEMM]),), topology=Topology(cores_of={"a": 96, "b": 64}))
    assert workload(small).cores == 64


def test_the_line_of_facts_says_the_sort_in_a_few_words():
    made = type("Facts", (), {})()
    made.workload = WorkloadFacts(
        work=Fact("serving", "", "likely"), replay=Fact("graph", "", "certain"), ranks=[RankFacts(0, "decode")]
    )
    assert sort(made) == ["serving", "decode", "graph replay"]
    made.workload = WorkloadFacts(ranks=[RankFacts(0, "training"), RankFacts(1, "unknown")])
    assert sort(made) == []
    made.workload = None
    assert sort(made) == []
