"""TorchInductor's and NNC's generated kernels: the name lists what was fused.

`poi` is pointwise, `red` and `per` reduce, `tem` comes from a template, `for` is a foreach. A pointwise kernel with
`addmm` in its name is that product's epilogue, not the product. Order counts: the first that fits names the kernel.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Pattern

_MOVES = (
    "to_copy|clone|copy|cat|stack|constant_pad_nd|permute|transpose|t|view|unsafe_view|reshape|slice|select|split"
    "|split_with_sizes|unsqueeze|squeeze|expand|contiguous|index|gather|lift_fresh|select_backward|slice_backward"
)

PATTERNS = (
    Pattern(
        r"^triton_(?:tem|flex)_\w*(?:attention|flex)",
        Kind.COMPUTE,
        "attention",
        ("triton_tem_fused_flex_attention_0",),
    ),
    Pattern(
        r"^triton_tem_\w*conv",
        Kind.COMPUTE,
        "convolution",
        ("triton_tem_fused_convolution_0",),
    ),
    Pattern(
        r"^triton_tem_|^triton_(?:add)?b?mm(?:_|$)",
        Kind.COMPUTE,
        "gemm",
        ("triton_tem_fused_bmm_12", "triton_tem_fused__to_copy_add_clamp_mul_reciprocal_view_17", "triton_mm"),
    ),
    Pattern(
        r"^triton_(?:red|per)_fused_\w*(?:nll_loss|cross_entropy)",
        Kind.COMPUTE,
        "loss",
        ("triton_red_fused__log_softmax_mul_nll_loss_forward_sub_view_32",),
    ),
    Pattern(
        r"^triton_(?:red|per)_fused_\w*softmax",
        Kind.COMPUTE,
        "softmax",
        (
            "triton_red_fused__safe_softmax_13",
            "triton_red_fused__log_softmax_div_mul_prepare_softmax_online_sigmoid_view_40",
        ),
    ),
    Pattern(
        r"^triton_(?:red|per)_fused_\w*(?:norm(?!al)|rsqrt)",
        Kind.COMPUTE,
        "norm",
        (
            "triton_per_fused__fused_rms_norm__unsafe_view_add_13",
            "triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0",
            "triton_red_fused_add_clone_native_layer_norm_27",
        ),
    ),
    Pattern(
        r"^triton_(?:red|per|spl)_",
        Kind.COMPUTE,
        "reduce",
        ("triton_red_fused__to_copy_mul_slice_sum_13", "triton_per_fused_add_convolution_div_mean_mul_pow_sqrt_sub_24"),
    ),
    Pattern(
        r"^triton_poi_fused_\w*embedding",
        Kind.COMPUTE,
        "embedding",
        ("triton_poi_fused_embedding_dense_backward_55", "triton_poi_fused_embedding_0"),
    ),
    Pattern(
        r"^triton_poi_fused_\w*(?:silu|gelu|relu|swiglu)",
        Kind.COMPUTE,
        "activation",
        (
            "triton_poi_fused_mul_silu_0",
            "triton_poi_fused_addmm_gelu_view_15",
            "triton_poi_fused__unsafe_view_pow_relu_9",
        ),
    ),
    Pattern(
        rf"^triton_poi_fused(?:_+(?:{_MOVES})(?=_))+_+(?:\d+)$",
        Kind.MOVEMENT,
        "layout_copy",
        ("triton_poi_fused__to_copy_1", "triton_poi_fused__to_copy_permute_t_4", "triton_poi_fused_cat_0"),
    ),
    Pattern(
        r"^triton_poi_fused(?:_(?:zeros|ones|full|fill)(?:_like)?)+_\d+$",
        Kind.MOVEMENT,
        "fill",
        ("triton_poi_fused_zeros_0",),
    ),
    Pattern(
        r"^triton_(?:poi|for|fm|unk|mix)_|^fused_[a-z_]\w*_\d{9,}$",
        Kind.COMPUTE,
        "elementwise",
        (
            "triton_poi_fused_add_cos_sin_0",
            "triton_poi_fused_constant_pad_nd_moe_forward_0",
            "triton_for_fused_0",
            "fused__autocast_to__15680171862954066917",
        ),
    ),
    Pattern(
        # Kernels named after their signature alone, before names listed what was fused.
        r"^triton__(?:\d+d)",
        Kind.COMPUTE,
        "generated",
        ("triton__0d1d2d3d", "triton__0d1d2d3d4de"),
    ),
)
