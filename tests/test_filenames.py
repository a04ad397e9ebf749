from pathlib import Path

import pytest

from analyzer.ingest.filenames import FileIdentity, FileKind, identity

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"

EVERYWHERE_0 = {"dp": 0, "pp": 0, "tp": 0, "dcp": 0, "ep": 0}
NS = 1_795_961_050_998_592_351

FORMS = {
    # vLLM
    f"dp0_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, "vllm", rank=0, placement=EVERYWHERE_0, time_ns=NS
    ),
    f"warm_dp1_pp2_tp3_dcp1_ep7_rank11.{NS}.pt.trace.json": FileIdentity(
        FileKind.WORKER,
        "vllm",
        rank=11,
        placement={"dp": 1, "pp": 2, "tp": 3, "dcp": 1, "ep": 7},
        time_ns=NS,
        profile="warm",
    ),
    f"rank3.{NS}.pt.trace.json.gz": FileIdentity(FileKind.WORKER, rank=3, time_ns=NS),
    f"after_rank3.{NS}.pt.trace.json.gz": FileIdentity(FileKind.WORKER, rank=3, time_ns=NS, profile="after"),
    f"vllm-7f-rank-12.{NS}.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, "vllm", rank=12, time_ns=NS, profile="vllm-7f"
    ),
    f"gpu-node-1_5150.async_llm.{NS}.pt.trace.json.gz": FileIdentity(
        FileKind.FRONTEND, "vllm", host="gpu-node-1", pid=5150, time_ns=NS
    ),
    f"warm_gpu-node-1_5150.async_llm.{NS}.pt.trace.json.gz": FileIdentity(
        FileKind.FRONTEND, "vllm", host="gpu-node-1", pid=5150, time_ns=NS, profile="warm"
    ),
    f"graph_capture_rank_0.{NS}.pt.trace.json.gz": FileIdentity(FileKind.CAPTURE, "vllm", rank=0, time_ns=NS),
    "rank1.profiler_out.txt": FileIdentity(FileKind.TABLE, "vllm", rank=1),
    "profiler_out_1.txt": FileIdentity(FileKind.TABLE, "vllm", rank=1),
    "dp0_pp0_tp1_dcp0_ep1_rank1.profiler_out.txt": FileIdentity(
        FileKind.TABLE, "vllm", rank=1, placement={"dp": 0, "pp": 0, "tp": 1, "dcp": 0, "ep": 1}
    ),
    # SGLang
    "1782799835.6885648-TP-0-DECODE.trace.json.gz": FileIdentity(
        FileKind.WORKER,
        "sglang",
        0,
        {"tp": 0},
        "decode",
        time_ns=1_782_799_835_688_564_800,
        profile="1782799835.6885648",
    ),
    "1782799835.5-TP-2-EXTEND.trace.json.gz": FileIdentity(
        FileKind.WORKER, "sglang", 2, {"tp": 2}, "prefill", time_ns=1_782_799_835_500_000_000, profile="1782799835.5"
    ),
    "night-1782799835.5-TP-2-prefill.trace.json.gz": FileIdentity(
        FileKind.WORKER,
        "sglang",
        2,
        {"tp": 2},
        "prefill",
        time_ns=1_782_799_835_500_000_000,
        profile="night-1782799835.5",
    ),
    "a-TP-5-DP-1-PP-0-EP-5.trace.json.gz": FileIdentity(
        FileKind.WORKER, "sglang", None, {"tp": 5, "dp": 1, "pp": 0, "ep": 5}, profile="a"
    ),
    "a-TP-5-EP-5.trace.json.gz": FileIdentity(FileKind.WORKER, "sglang", 5, {"tp": 5, "ep": 5}, profile="a"),
    "merged-17.trace.json.gz": FileIdentity(FileKind.MERGED, "sglang", profile="17"),
    "17-TP-1-memory-DECODE.pickle": FileIdentity(FileKind.MEMORY, "sglang", 1, {"tp": 1}, "decode", profile="17"),
    "rpd-17-TP-1.trace.json.gz": FileIdentity(FileKind.OTHER, "sglang", 1, {"tp": 1}, profile="17"),
    "cuda_graph_capture-DecodeRunner-TP-1.json.gz": FileIdentity(
        FileKind.CAPTURE, "sglang", 1, {"tp": 1}, profile="DecodeRunner"
    ),
    "p_batch16_input512_output8_decode.trace.json.gz": FileIdentity(
        FileKind.ONE_BATCH, "sglang", stage="decode", profile="p_batch16_input512_output8"
    ),
    "server_args.json": FileIdentity(FileKind.SIDECAR, "sglang"),
    # torch's own handler
    "hmoss-6a49xb_1982960.1733768062937268738.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, host="hmoss-6a49xb", pid=1982960, time_ns=1_733_768_062_937_268_738
    ),
    "worker0.1694128201545.pt.trace.json": FileIdentity(FileKind.WORKER, rank=0, time_ns=1_694_128_201_545_000_000),
    "worker3_step_12.1694128201557.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, rank=3, time_ns=1_694_128_201_557_000_000, profile="step_12"
    ),
    "resnet50_num_workers_0.worker0.1623143089861.pt.trace.json": FileIdentity(
        FileKind.WORKER, rank=0, time_ns=1_623_143_089_861_000_000, profile="resnet50_num_workers_0"
    ),
    # names in the wild
    "rank0_10-116-218-90_3154928.1743414537602925481.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, rank=0, host="10-116-218-90", pid=3154928, time_ns=1_743_414_537_602_925_481
    ),
    "rank0.pt.trace.json.gz": FileIdentity(FileKind.WORKER, rank=0),
    "rank-0.json.gz": FileIdentity(FileKind.WORKER, rank=0),
    "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": FileIdentity(
        FileKind.WORKER, rank=34, profile="Jul_15_10_52_41.1074"
    ),
    "rank3-chrome-trace.json.gz": FileIdentity(FileKind.WORKER, rank=3),
    "modded-nanogpt-hook-gpu-rank-00-chrome-trace.json.gz": FileIdentity(
        FileKind.WORKER, rank=0, profile="modded-nanogpt-hook"
    ),
    "sampled_rank-1.json.gz": FileIdentity(FileKind.WORKER, rank=1, profile="sampled"),
    "model_kineto_5.json": FileIdentity(FileKind.WORKER, rank=5, profile="model_kineto"),
    "rank_not_found.json.gz": FileIdentity(FileKind.WORKER, profile="rank_not_found"),
    "rank0_against_rank1.json": FileIdentity(FileKind.WORKER, profile="rank0_against_rank1"),
    "decode_gpu_30.json.gz": FileIdentity(FileKind.WORKER, stage="decode", profile="decode_gpu_30"),
    "sglang_Qwen3-8B_prefilldecode.json.gz": FileIdentity(FileKind.WORKER, profile="sglang_Qwen3-8B_prefilldecode"),
    # beside the traces
    "rank0.et.json.gz": FileIdentity(FileKind.EXECUTION_GRAPH, rank=0, profile="rank0"),
    "execution_trace_pytorch_et_0.json.gz": FileIdentity(
        FileKind.EXECUTION_GRAPH, rank=0, profile="execution_trace_pytorch"
    ),
    "run.json": FileIdentity(FileKind.SIDECAR),
    "how.md": FileIdentity(FileKind.OTHER),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_name_states(name):
    assert identity(name) == FORMS[name]


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", 1),
        ("device_2/msprof_1_0_3.json", 2),
        ("rank_7/host_1.1743414537602925481.pt.trace.json", 7),
        ("rank_7/rank4.pt.trace.json", 4),
        ("8rank/trace.json", None),
        ("rank_7/a/b/trace.json", None),
    ],
)
def test_a_folder_states_the_rank_that_the_name_leaves_open(path, rank):
    assert identity(path).rank == rank


def test_the_folder_of_the_ascend_handler_names_host_and_process():
    stated = identity("node-3_139247_20230628101435123_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json")
    assert (stated.engine, stated.host, stated.pid, stated.profile) == ("ascend", "node-3", 139247, "20230628101435123")


def test_a_number_that_ends_the_folder_is_no_rank_but_kept():
    stated = identity("forward_decode_3/node_77.1743414537602925481.pt.trace.json.gz")
    assert (stated.rank, stated.folder_number) == (None, 3)


@pytest.mark.parametrize(("folder", "stage"), [("prefill", "prefill"), ("decode", "decode"), ("prefilldecode", "")])
def test_a_folder_of_one_role_names_the_stage(folder, stage):
    assert identity(f"{folder}/rank0.{NS}.pt.trace.json.gz").stage == stage


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the trace corpus is not at hand")
@pytest.mark.parametrize(
    ("folder", "ranks"),
    [
        ("sglang_ep8_decode_run1", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("lightllm_ep8_decode", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("param_dlrm_8rank", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("modded_nanogpt_8rank", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("torchrec_a2a_optimizer_4rank", [0, 1, 2, 3]),
        ("hta_sampled_2rank_of_128", [0, 1]),
        ("cpu-collected/vllm-qwen3moe-tp2-ep", [0, 1]),
        ("cpu-collected/vllm-serve-dp2", [0, 0]),
        ("cpu-collected/torch-tp-4", [0, 1, 2, 3]),
        ("ascend_level1_2rank", [0, 1]),
    ],
)
def test_the_ranks_of_a_recorded_set_are_in_its_names(folder, ranks):
    files = [identity(path.relative_to(CORPUS)) for path in (CORPUS / folder).rglob("*") if path.is_file()]
    assert sorted(file.rank for file in files if file.kind is FileKind.WORKER) == ranks
