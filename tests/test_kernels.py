import gzip
import json
import re
from pathlib import Path

import pytest

from analyzer import kernels
from analyzer.classify import classify, patterns
from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth
from analyzer.model.subclass import SUBCLASSES
from analyzer.plugins import offers

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
OFFERED = offers(kernels, "PATTERNS")
EXAMPLES = [
    pytest.param(pattern, name, id=f"{module}-{pattern.subclass}-{name[:60]}")
    for module, offered in OFFERED.items()
    for pattern in offered
    for name in pattern.examples
]
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}


def named(name):
    found = classify((name,))[0]
    return None if found is None else (found.kind, found.subclass)


@pytest.mark.parametrize(("pattern", "name"), EXAMPLES)
def test_an_example_is_claimed_by_its_own_pattern(pattern, name):
    assert classify((name,)) == (pattern,)


@pytest.mark.parametrize("module", OFFERED)
def test_a_module_reads_its_examples_as_no_other_of_the_same_breadth_would(module):
    others = [one for name, offered in OFFERED.items() if name != module for one in offered]
    differing = [
        (example, other.match)
        for pattern in OFFERED[module]
        for example in pattern.examples
        for other in others
        if other.breadth == pattern.breadth
        and (other.kind, other.subclass, other.blend) != (pattern.kind, pattern.subclass, pattern.blend)
        and re.search(other.match, example)
    ]
    assert differing == []


def test_no_pattern_says_that_a_name_is_unknown():
    assert "other" not in {pattern.subclass for pattern in patterns()}


def test_every_pattern_has_an_example():
    assert [pattern.match for pattern in patterns() if not pattern.examples] == []


def test_every_word_is_explained_and_every_explained_word_is_used():
    assert {"other"} | {pattern.subclass for pattern in patterns()} == set(SUBCLASSES)


def test_no_pattern_matches_the_empty_name():
    assert [pattern.match for pattern in patterns() if re.search(pattern.match, "")] == []


def test_bare_words_are_in_one_module():
    places = {module for module, offered in OFFERED.items() for one in offered if one.breadth == Breadth.CATCH_ALL}
    assert places == {"words"}


def test_narrow_patterns_are_asked_before_wide_ones():
    breadths = [pattern.breadth for pattern in patterns()]
    assert breadths == sorted(breadths)


def test_looking_for_a_run_of_characters_first_changes_no_answer():
    compiled = [(re.compile(pattern.match), pattern) for pattern in patterns()]
    names = tuple(name for pattern in patterns() for name in pattern.examples)
    plain = tuple(next((one for search, one in compiled if search.search(name)), None) for name in names)
    assert classify(names) == plain


@pytest.mark.parametrize(
    "name",
    [
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false>>",
        "_combined_routing_compute",
        "_combined_routing_memset",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_up<c10::BFloat16>",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*, int*>>",
        "kn_fmla_fwd_splictkv_combine",
        "moe_sum_reduce",
        "_moe_sum_reduce_kernel",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*, bool*, int, int)",
        "triton_poi_fused_add_all_reduce_wait_tensor_0",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false>",
        "aten::sum",
    ],
)
def test_a_word_of_communication_in_a_compute_kernel_misleads_nobody(name):
    assert classify((name,))[0].kind is Kind.COMPUTE


@pytest.mark.parametrize(
    ("name", "subclass", "blend"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all_reduce", Blend.NONE),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "all_reduce", Blend.NONE),
        ("sglang::cross_device_reduce_2stage", "all_reduce", Blend.NONE),
        ("allreduce_fusion_kernel_oneshot_lamport", "all_reduce", Blend.FUSED),
        ("deep_ep::internode_ll::dispatch", "dispatch", Blend.NONE),
        ("deep_ep::internode_ll::combine", "combine", Blend.NONE),
        ("multimem_all_reduce_kernel", "all_reduce", Blend.NONE),
        ("quickreduce::allreduce_prototype_twoshot", "all_reduce", Blend.NONE),
        ("void deep_ep::internode::notify_dispatch<false, 1>(int const*, int*)", "comm_setup", Blend.NONE),
        ("moefinalize_allreduce_fusion_kernel_oneshot_lamport", "all_reduce", Blend.FUSED),
        ("_ZN5aiter30allreduce_fusion_kernel_1stageIDF16b", "all_reduce", Blend.FUSED),
    ],
)
def test_a_collective_is_communication_whoever_wrote_it(name, subclass, blend):
    (found,) = classify((name,))
    assert (found.kind, found.subclass, found.blend) == (Kind.COMMUNICATION, subclass, blend)


@pytest.mark.parametrize(
    ("name", "subclass"),
    [
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_", "attention"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8ELb1ELb0E", "norm"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass", "norm"),
        ("_ZN5aiter45mla_a8w8_qh32_qseqlen4_gqaratio32_lse_cprr_psE", "mla"),
    ],
)
def test_a_mangled_name_is_read_as_the_demangled_one(name, subclass):
    assert named(name) == (Kind.COMPUTE, subclass)


def test_a_product_with_an_exchange_inside_is_compute_and_says_so():
    (found,) = classify(("MatmulAllReduce",))
    assert (found.kind, found.subclass, found.blend) == (Kind.COMPUTE, "gemm", Blend.OVERLAPPED)


def test_attention_built_with_cutlass_is_not_a_gemm():
    name = (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloop>>>"
    )
    assert named(name) == (Kind.COMPUTE, "attention")


def test_grouped_and_plain_products_of_one_template_are_told_apart():
    plain = "void deep_gemm::fp8_gemm_kernel<7168u, 2048u, true, (deep_gemm::GemmType)0>(__nv_bfloat16*)"
    grouped = "void deep_gemm::fp8_gemm_kernel<7168u, 2048u, true, (deep_gemm::GemmType)2>(__nv_bfloat16*)"
    assert (named(plain), named(grouped)) == ((Kind.COMPUTE, "gemm"), (Kind.COMPUTE, "moe_gemm"))


def test_a_device_entry_that_only_waits_is_sync():
    assert [named(name) for name in ("event_wait", "NOTIFY_WAIT", "EVENT_WAIT")] == [(Kind.SYNC, "event_wait")] * 3


def test_what_no_pattern_knows_stays_unknown():
    assert classify(("xyzzy_kernel", "")) == (None, None)


def test_every_name_gets_its_answer_in_place():
    copy, fill = "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"
    found = classify((copy, fill, copy))
    assert [one.subclass for one in found] == ["copy_htod", "fill", "copy_htod"]


@pytest.mark.parametrize(
    "run", ["a", "_", "a1_", "A1_", "x<", "a/", "view_", "pplx::", "nvshmem_", "kernel_cutlass_", "(deep_gemm::"]
)
def test_a_name_of_megabytes_is_read_by_its_beginning(run):
    assert named("ncclDevKernel_SendRecv(" + run * (2_000_000 // len(run))) == (Kind.COMMUNICATION, "send_recv")
    classify((run * (2_000_000 // len(run)),))


def _device_times(path):
    with gzip.open(path) as file:
        events = json.load(file)
    events = events if isinstance(events, list) else events["traceEvents"]
    hardware = {
        event["pid"]
        for event in events
        if event.get("name") == "process_name" and event["args"].get("name") in {"Ascend Hardware", "HCCL"}
    }
    times = {}
    for event in events:
        if event.get("ph") == "X" and (str(event.get("cat", "")).lower() in DEVICE or event["pid"] in hardware):
            times[event["name"]] = times.get(event["name"], 0.0) + event["dur"]
    return times


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the trace corpus is not at hand")
@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        ("lightllm_ep8_decode/rank0*", 0.01),
        ("sglang_ep8_decode_run1/rank0*", 0.01),
        ("tracelens_vllm_decode_full/graph_execution*", 0.01),
        ("tracelens_sglang_qwen3_30b_decode_b300_mi300/b300*", 0.01),
        ("tracelens_sglang_qwen3_30b_decode_b300_mi300/mi300*", 0.01),
        ("ao_ep_moe_b200/*", 0.03),
        ("torchrec_a2a_qcomm_4rank/rank0*", 0.03),
        ("param_dlrm_8rank/worker0*", 0.03),
        ("ascend_level0_2rank/rank0*/*/trace_view*", 0.03),
        ("hta_sampled_2rank_of_128/*rank-0*", 0.03),
        ("tracelens_mi210_gpu_only/*", 0.03),
    ],
)
def test_little_device_time_of_a_real_trace_is_unknown(pattern, limit):
    (path,) = CORPUS.glob(pattern)
    times = _device_times(path)
    names = tuple(times)
    unknown = sum(times[name] for name, found in zip(names, classify(names), strict=True) if found is None)
    assert unknown <= limit * sum(times.values())
