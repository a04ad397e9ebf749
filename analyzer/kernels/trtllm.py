"""TensorRT-LLM's collectives, as FlashInfer ships them to vLLM and SGLang; and FlashInfer's own over PCIe."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

PATTERNS = (
    Pattern(
        r"allreduce_fusion_kernel_(?:oneshot_lamport|twoshot_sync)|(?:one|two)shotAll[rR]educeFusionKernel"
        r"|lamport_style_one_shot_all_reduce_norm_kernel|one_shot_(?:prenorm_)?all_reduce_norm_kernel|rmsNormLamport"
        r"|cake_fp4_allreduce_tp\d+_rmsnorm",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "allreduce_fusion_kernel_oneshot_lamport",
            (
                "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
                "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, false>"
            ),
            "allreduce_fusion_kernel_twoshot_sync",
            "oneshotAllreduceFusionKernel",
            "lamport_style_one_shot_all_reduce_norm_kernel",
        ),
        Breadth.NAMED,
        Blend.FUSED,
    ),
    Pattern(
        r"(?:one|two)[sS]hotAll[rR]educeKernel|twoshotAllreduceKernel|ipc_(?:topo_)?rsag|ipc_tp2_remote_push_kernel"
        r"|push_oneshot_param_kernel|cake_fp4_allreduce_tp\d+_(?:one|two)shot|fused_reducescatter_allreduce_kernel",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "oneShotAllReduceKernel",
            "twoShotAllReduceKernel",
            "twoshotAllreduceKernel",
            "ipc_rsag_push_param_kernel",
            "ipc_topo_rsag8_ring_push_param_kernel",
            "ipc_tp2_remote_push_kernel",
            "push_oneshot_param_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"moeA2A(?:Lamport)?Dispatch|moe_alltoall_dispatch|kernel_rank_major_dispatch|dispatch_(?:fused"
        r"|grid)_dedup_kernel",
        Kind.COMMUNICATION,
        "dispatch",
        ("moeA2ADispatchKernel", "moeA2ALamportDispatchKernel", "dispatch_fused_dedup_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        r"moeA2A(?:Lamport)?Combine|moe_alltoall_(?:publish_|quantize_|stage_)?combine|kernel_rank_major_combine"
        r"|combine_publish\w*_kernel",
        Kind.COMMUNICATION,
        "combine",
        ("moeA2ACombineKernel", "moeA2ALamportCombineKernel", "combine_publish_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        r"moeA2A(?:Prepare|Sanitize)|moe_alltoall_(?:prepare|sanitize)|allToAllMetadataDevice"
        r"|computeCountAndIndiceDevice|moveIndiceDevice",
        Kind.COMMUNICATION,
        "comm_setup",
        ("moeA2APrepareDispatchKernel", "moeA2APrepareCombineKernel", "allToAllMetadataDevice"),
        Breadth.NAMED,
    ),
    Pattern(
        r"moeAllToAllKernel|helixAllToAllKernel|ulysses_a2a_kernel",
        Kind.COMMUNICATION,
        "all_to_all",
        ("moeAllToAllKernel", "helixAllToAllKernel", "ulysses_a2a_kernel"),
        Breadth.NAMED,
    ),
)
