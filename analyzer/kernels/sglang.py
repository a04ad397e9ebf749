"""SGLang's own collectives: JIT-built push and pull all-reduces, some with the residual and norm inside."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

PATTERNS = (
    Pattern(
        r"all_reduce_[12]shot_(?:push|pull)_kernel|inkling_(?:multimem_(?:full|push)|two_shot_all_reduce)",
        Kind.COMMUNICATION,
        "all_reduce",
        ("all_reduce_2shot_pull_kernel", "all_reduce_1shot_push_kernel", "inkling_multimem_push_oneshot_kernel"),
        Breadth.NAMED,
    ),
    Pattern(
        r"all_reduce_(?:pull|push)_(?:norm|res)_kernel|moe_finalize_all_reduce_kernel|all_reduce_mhc_post_kernel"
        r"|inkling_multimem_one_shot_fused|inkling_ar_",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "all_reduce_pull_norm_kernel",
            "all_reduce_push_res_kernel",
            "moe_finalize_all_reduce_kernel",
            "inkling_ar_sconv_norm_kernel",
        ),
        Breadth.NAMED,
        Blend.FUSED,
    ),
    Pattern(
        r"all_gather_direct_kernel|_all_gather_kernel_inner|muse_spark_all_gather_norm|attn_res_fused_direct_ag",
        Kind.COMMUNICATION,
        "all_gather",
        ("all_gather_direct_kernel", "_all_gather_kernel_inner"),
        Breadth.NAMED,
    ),
    Pattern(
        r"reduce_scatter_(?:pull|res)_kernel|attn_res_fused_pull_rs",
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("reduce_scatter_pull_kernel",),
        Breadth.NAMED,
    ),
    Pattern(
        r"spin_wait_kernel|bump_signal_kernel",
        Kind.COMMUNICATION,
        "barrier",
        ("spin_wait_kernel", "bump_signal_kernel"),
        Breadth.NAMED,
    ),
)
