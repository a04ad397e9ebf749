"""vLLM's own collectives: custom all-reduce over peers' IPC buffers, multi-node NVLink, direct context parallelism.

SGLang and AITER carry copies of the custom all-reduce under the same names.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

PATTERNS = (
    Pattern(
        r"cross_device_reduce_(?:[12]stage|split)",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*, vllm::RankSignals",
            "sglang::cross_device_reduce_2stage",
            "aiter::cross_device_reduce_1stage",
            "_ZN5aiter26cross_device_reduce_1stageIDF16b",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"cross_device_all_gather|mnnvl_(?:lamport|multimem)_all_gather|allgather_(?:lastdim|vec|naive)",
        Kind.COMMUNICATION,
        "all_gather",
        ("vllm::cross_device_all_gather", "mnnvl_lamport_all_gather_kernel", "aiter::allgather_lastdim"),
        Breadth.NAMED,
    ),
    Pattern(
        r"(?<!local_)cross_device_reduce_scatter|mnnvl_(?:lamport|multimem)_reduce_scatter_kernel",
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("vllm::cross_device_reduce_scatter", "mnnvl_multimem_reduce_scatter_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        # The first half of AITER's split all-reduce and norm; the second is `local_device_load_rmsnorm`.
        r"reduce_scatter_cross_device_store",
        Kind.COMMUNICATION,
        "all_reduce",
        ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 4>",),
        Breadth.NAMED,
    ),
    Pattern(
        r"local_device_load_rmsnorm|fused_allreduce_rmsnorm|vllm::beam::(?:oneshot|finishTwoshot)"
        r"|sglang::beam_ar::kernel"
        r"|minimax_reduce_(?:qk_)?rms_kernel_lamport|allreduce_fusion_kernel_(?:[12]stage|split)",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "aiter::allreduce_fusion_kernel_1stage",
            "_ZN5aiter30allreduce_fusion_kernel_1stageI",
            "void aiter::local_device_load_rmsnorm<__hip_bfloat16, 512, 2>",
            "vllm::beam::oneshot",
            "sglang::beam_ar::kernel",
            "minimax_reduce_qk_rms_kernel_lamport",
        ),
        Breadth.NAMED,
        Blend.FUSED,
    ),
    Pattern(
        r"direct_dcp_(?:kv|q)_gather_multimem_kernel",
        Kind.COMMUNICATION,
        "all_gather",
        ("direct_dcp_q_gather_multimem_kernel", "direct_dcp_kv_gather_multimem_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        # Packs for torch's all-to-all; nothing leaves the device.
        r"_dcp_(?:a2a_pack|pack_a2a)_send_kernel",
        Kind.MOVEMENT,
        "layout_copy",
        ("_dcp_a2a_pack_send_kernel", "_dcp_pack_a2a_send_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        r"_dcp_a2a_unpack_combine_kernel|_dcp_lse_combine_kernel|_correct_attn_cp_out",
        Kind.COMPUTE,
        "attention",
        ("_dcp_a2a_unpack_combine_kernel", "_correct_attn_cp_out_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        r"dispatch_output_lse_kernel",
        Kind.COMMUNICATION,
        "all_to_all",
        ("dispatch_output_lse_kernel",),
        Breadth.NAMED,
    ),
    Pattern(
        r"wait_lse_combine_kernel",
        Kind.COMMUNICATION,
        "all_to_all",
        ("wait_lse_combine_kernel",),
        Breadth.NAMED,
        Blend.FUSED,
    ),
)
