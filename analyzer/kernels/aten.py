"""ATen operators, for traces without a device: what a CPU thread runs at each instant is an op, not a kernel.

`framework` is the host's bookkeeping: views, allocations, type checks, autograd's and the dispatcher's own time.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern


def _aten(ops: str) -> str:
    """Names of ATen ops, in place or not, and of their gradients."""
    return rf"^aten::_?(?:{ops})(?:_backward(?:_data)?)?_?$"


PATTERNS = (
    Pattern(
        _aten(
            r"(?:mkldnn_)?(?:mm|addmm|bmm|addbmm|baddbmm|matmul|linear|addmv|mv|dot|vdot|outer|ger|einsum|tensordot"
            r"|int_mm|scaled_mm|weight_int[48]pack_mm(?:_for_cpu)?|addmm_activation|linalg_\w+|cdist)"
        ),
        Kind.COMPUTE,
        "gemm",
        ("aten::mm", "aten::addmm", "aten::bmm", "aten::matmul", "aten::linear", "aten::_scaled_mm"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"grouped_mm|scaled_grouped_mm|segment_mm"),
        Kind.COMPUTE,
        "moe_gemm",
        ("aten::_grouped_mm", "aten::_scaled_grouped_mm"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"scaled_dot_product_\w+|(?:efficient|flash)_attention_(?:forward|backward)|native_multi_head_attention"),
        Kind.COMPUTE,
        "attention",
        (
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"(?:\w+_)?(?:convolution(?:_overrideable)?|conv[123]d)|thnn_conv\w+|slow_conv\w+"),
        Kind.COMPUTE,
        "convolution",
        ("aten::cudnn_convolution", "aten::convolution", "aten::conv2d", "aten::mkldnn_convolution"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"(?:native_|fused_|cudnn_|miopen_)?(?:layer|rms|group|batch|instance)_norm(?:_impl_index)?"),
        Kind.COMPUTE,
        "norm",
        ("aten::native_layer_norm", "aten::_fused_rms_norm", "aten::rms_norm", "aten::batch_norm"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"silu|gelu|relu6?|leaky_relu|elu|selu|celu|mish|hardswish|hardtanh|hardsigmoid|glu|prelu|threshold"),
        Kind.COMPUTE,
        "activation",
        ("aten::silu", "aten::silu_backward", "aten::relu_", "aten::gelu"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"(?:log_)?softmax|safe_softmax|masked_softmax"),
        Kind.COMPUTE,
        "softmax",
        ("aten::_softmax", "aten::_log_softmax_backward_data"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"embedding(?:_bag|_dense|_renorm)?(?:_forward_only)?"),
        Kind.COMPUTE,
        "embedding",
        ("aten::embedding", "aten::embedding_dense_backward"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"argmax|argmin|multinomial|topk|sort|argsort|msort|kthvalue|median|cumsum|cumprod|cummax|bincount"
            r"|histc|nonzero"
            r"|unique\d?|unique_(?:dim|consecutive)|bucketize|searchsorted|masked_select|logcumsumexp"
        ),
        Kind.COMPUTE,
        "sort",
        ("aten::topk", "aten::sort", "aten::cumsum", "aten::bincount", "aten::nonzero", "aten::argmax"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"uniform|normal|random|bernoulli|exponential|geometric|cauchy|randn?(?:_like)?|randint(?:_like)?|randperm"
            r"|native_dropout|dropout|fused_dropout|alpha_dropout|feature_dropout"
        ),
        Kind.COMPUTE,
        "random",
        ("aten::uniform_", "aten::native_dropout", "aten::randint", "aten::exponential_"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"nll_loss(?:_forward|_nd|2d)?(?:2d)?|cross_entropy_loss|\w+_loss|binary_cross_entropy\w*|kl_div"
            r"|log_sigmoid\w*"
        ),
        Kind.COMPUTE,
        "loss",
        ("aten::nll_loss_forward", "aten::cross_entropy_loss", "aten::binary_cross_entropy_with_logits"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"fused_(?:adamw?|sgd|adagrad)|foreach_(?:addcdiv|addcmul|lerp)"),
        Kind.COMPUTE,
        "optimizer",
        ("aten::_fused_adamw_", "aten::_foreach_addcdiv_"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"(?:adaptive_)?(?:avg|max)_pool[123]d(?:_with_indices)?|upsample_\w+|interpolate|grid_sampler\w*"
            r"|pixel_shuffle"
        ),
        Kind.COMPUTE,
        "pooling",
        ("aten::max_pool2d_with_indices", "aten::_adaptive_avg_pool2d"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(r"fft_\w+|stft|istft"),
        Kind.COMPUTE,
        "fft",
        ("aten::_fft_r2c",),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"(?:foreach_)?(?:sum|nansum|mean|prod|amax|amin|aminmax|max|min|std|var|var_mean|std_mean|norm|all"
            r"|any|logsumexp"
            r"|count_nonzero|vector_norm)|equal|is_all_true|value_selecting_reduction|sum_to_size"
        ),
        Kind.COMPUTE,
        "reduce",
        ("aten::sum", "aten::mean", "aten::amax", "aten::logsumexp"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"(?:foreach_)?(?:copy|to_copy)|to|type_as|clone|contiguous|cat|concat|stack|[hv]stack|chunk_cat"
            r"|index|index_select"
            r"|index_put|index_put_impl|index_copy|index_add|unsafe_index(?:_put)?|gather|scatter|scatter_(?:add"
            r"|reduce)"
            r"|take(?:_along_dim)?|repeat|repeat_interleave|roll|flip|pad|constant_pad_nd|split_with_sizes_copy"
            r"|masked_scatter"
            r"|tril|triu|nested_\w+|slice_scatter|select_scatter|copy_from|copy_from_and_resize|pin_memory"
            r"|reflection_pad\w+"
        ),
        Kind.MOVEMENT,
        "layout_copy",
        (
            "aten::copy_",
            "aten::_to_copy",
            "aten::to",
            "aten::clone",
            "aten::cat",
            "aten::contiguous",
            "aten::index_select",
            "aten::gather",
            "aten::index_put_",
            "aten::stack",
            "aten::scatter_add_",
            "aten::_foreach_copy_",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"(?:foreach_)?zero|fill|zeros|ones|full|(?:zeros|ones|full)_like|new_(?:zeros|ones|full)|index_fill|eye"
        ),
        Kind.MOVEMENT,
        "fill",
        ("aten::fill_", "aten::zero_", "aten::zeros", "aten::ones_like"),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"(?:foreach_)?(?:add|sub|subtract|mul|multiply|div|divide|true_divide|floor_divide|rsub|pow|sqrt"
            r"|rsqrt|exp|exp2"
            r"|expm1|log|log2|log10|log1p|neg|negative|abs|sign|reciprocal|sin|cos|tan|tanh|erf|erfinv|sigmoid"
            r"|logit|square"
            r"|maximum|minimum|clamp|clamp_min|clamp_max|clip|floor|ceil|round|trunc|frac|fmod|remainder|lerp"
            r"|addcmul|addcdiv)"
            r"|where|masked_fill|eq|ne|lt|le|gt|ge|isnan|isinf|isfinite|nan_to_num|__\w+__|bitwise_\w+"
            r"|logical_\w+|softplus"
            r"|logaddexp2?|hypot|atan2|polar|complex|arange|linspace|range|cumulative_\w+|quantize_per_\w+"
            r"|dequantize|xlogy"
        ),
        Kind.COMPUTE,
        "elementwise",
        (
            "aten::mul",
            "aten::add_",
            "aten::div_",
            "aten::masked_fill_",
            "aten::__or__",
            "aten::bitwise_not",
            "aten::arange",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _aten(
            r"empty(?:_like|_strided|_permuted|_quantized)?|new_empty(?:_strided)?|view(?:_as(?:_real"
            r"|_complex)?)?|unsafe_view"
            r"|as_strided|reshape(?:_as|_alias|_copy)?|t|transpose|permute|movedim|swapaxes|numpy_T|mT"
            r"|expand(?:_as)?|broadcast_\w+"
            r"|slice|select|narrow|split(?:_with_sizes)?|chunk|unsafe_(?:chunk|split)|tensor_split|unbind|unfold"
            r"|diagonal|flatten"
            r"|unflatten|ravel|squeeze|unsqueeze|alias|detach|resize|resize_as|set|lift(?:_fresh)?"
            r"|resolve_(?:conj|neg)|conj|real"
            r"|imag|result_type|can_cast|item|local_scalar_dense|is_nonzero|is_pinned|is_same_size|scalar_tensor"
            r"|record_stream"
            r"|has_compatible_shallow_copy_type|requires_grad|retain_grad|size|stride|sym_\w+|assert_\w+"
            r"|functional_\w+|storage\w*"
            r"|use_cudnn_\w+|cudnn_\w+_flag|fused_sdp_choice|to_cpu|numel|dim|is_\w+|nested_tensor_\w+|version"
            r"|data|grad_sum_to_size"
        )
        + r"|^detach_?$|^_grad_sum_to_size$",
        Kind.COMPUTE,
        "framework",
        (
            "aten::empty",
            "aten::view",
            "aten::as_strided",
            "aten::t",
            "aten::expand",
            "aten::item",
            "aten::_local_scalar_dense",
            "aten::detach",
            "detach",
        ),
    ),
)
