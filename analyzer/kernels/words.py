"""Words in the names of kernels that no library's table knows. The only catch-alls; the order decides.

A kernel that does several things is named after the first of them here: exchange, attention, experts, product, rope,
norm, activation, cache, and so on down to plain arithmetic. `dispatch`, `combine` and `reduce` alone mean nothing.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern


def _word(match: str, kind: Kind, subclass: str, *examples: str) -> Pattern:
    """A catch-all."""
    return Pattern(match, kind, subclass, examples, Breadth.CATCH_ALL)


_COMMUNICATION, _COMPUTE, _MOVEMENT = Kind.COMMUNICATION, Kind.COMPUTE, Kind.MOVEMENT

PATTERNS = (
    _word(r"[aA]ll_?[rR]educe", _COMMUNICATION, "all_reduce", "allreduce_two_shot_multimem_intra_node_kernel"),
    _word(r"[aA]ll_?[gG]ather|cp_gather_hidden", _COMMUNICATION, "all_gather", "allgather_kernel"),
    _word(r"[rR]educe_?[sS]catter", _COMMUNICATION, "reduce_scatter", "reducescatter_kernel"),
    _word(r"[aA]ll_?[tT]o_?[aA]ll|_a2a_|alltoall", _COMMUNICATION, "all_to_all", "alltoallv_kernel"),
    _word(
        r"(?:^|_)barrier(?:_|$)|_wait_signal|_send_signal|ce_wait_flag",
        _COMMUNICATION,
        "barrier",
        "full_barrier_kernel",
        "copy_engine_pair_barrier_kernel",
    ),
    _word(
        r"[mM]etadata|(?:page|block)_table|_plan_|indptr|plan_kernel",
        _COMPUTE,
        "indexing",
        "_init_compressed_attn_metadata_kernel",
        "_vattn_seg_plan_kernel",
    ),
    _word(
        r"[sS]parse_?(?:[aA]tt|[mM][lL][aA])|[iI]ndexer|mqa_paged|index_(?:block_)?(?:score|logits)",
        _COMPUTE,
        "sparse_attention",
        "_qsa_mqa_paged_kernel",
    ),
    _word(
        r"(?<![a-z])[mM][lL][aA](?![a-z])|Mla[A-Z]", _COMPUTE, "mla", "_merge_mla_segments_kernel", "MLAKVPackFP8Kernel"
    ),
    _word(
        r"[aA]ttn|[aA]ttention|sdpa|splitkv|_decode_stage\d|[kK]vSplit|_combine_lse|lse_combine",
        _COMPUTE,
        "attention",
        "_mimo_local_attention_kernel",
        "micro_sdpa",
        "_tq_decode_stage1",
    ),
    _word(
        r"sconv|(?<![a-z])ssm_|conv_state",
        _COMPUTE,
        "linear_attention",
        "_fused_sconv_kernel",
        "_compact_conv_state_kernel",
    ),
    _word(r"(?<![a-z])[lL]o[rR][aA](?![a-z])", _COMPUTE, "lora", "loraAddBiasKernel"),
    _word(
        r"[mM][oO][eE](?:_|[A-Z])|[eE]xpert|[rR]out(?:er|ing)|(?<![a-z])route_",
        _COMPUTE,
        "moe_route",
        "_route_stats_kernel",
    ),
    _word(
        r"[gG][eE][mM](?:[mM](?!a)|[vV])|[mM]at_?[mMvV](?:[uU]l|ec)|(?<![a-z])[bB]?mm_|splitk|split_?K"
        r"|_linear_kernel|hadamard|tensorop",
        _COMPUTE,
        "gemm",
        "cooperative_1x128_by_128x128_fp8_gemm_kernel",
        "matmul_kernel",
        "mxfp4_matvec_kernel",
        "_mxfp8_linear_kernel",
    ),
    _word(
        r"[cC]onv(?:[123][dD]|olution|_fwd|_bwd|_kernel|_depthwise)|(?:^|_)conv_",
        _COMPUTE,
        "convolution",
        "Conv3dFprop",
    ),
    _word(
        r"(?<![a-z])m?[rR]o[pP][eE](?![a-z])|[rR]otary|RoPE",
        _COMPUTE,
        "rope",
        "_complex_rope_kernel",
        "fused_rope_kernel",
    ),
    _word(r"[nN]orm(?!al)|rstd|welford", _COMPUTE, "norm", "_channel_rmsnorm_finish_kernel", "rmsnorm_warp"),
    _word(
        r"silu|gelu|relu|[sS]wi(?:glu|GLU)|(?<![a-z])[gG]lu(?![a-z])|[aA]ctivation(?![a-z])|(?:^|_)act_(?:kernel"
        r"|delta)",
        _COMPUTE,
        "activation",
        "_relu_squared_static_fp8_quant_kernel",
        "bias_gelu_tanh_kernel",
        "activationDeepSeekKernel",
    ),
    _word(
        r"[kK][vV]_?[cC]ache|_and_cache|(?:store|insert|write|append)\w*_(?:kv|cache)|cache_(?:write|store)"
        r"|_set_k_and_s",
        _MOVEMENT,
        "kv_write",
        "_insert_index_cache_kernel",
        "kv_cache_scatter_kernel",
        "_set_k_and_s_triton_kernel",
    ),
    _word(
        r"[qQ]uant|cvt_fp|fp8_cast|cast_to_fp8|_downcast_|mxfp|nvfp|scale_layout",
        _COMPUTE,
        "quantize",
        "smooth_quantize_fast_kernel",
    ),
    _word(r"[sS]oft_?[mM]ax|logsumexp|log_sum_exp", _COMPUTE, "softmax", "_wide_row_softmax_finalize_kernel"),
    _word(
        r"[sS]ampl|[tT]op_?[kKpP](?![a-z])|[aA]rg_?[mM]ax|[lL]ogit|logprob|speculative|draft|[eE]agle|bonus_|watermark",
        _COMPUTE,
        "sampling",
        "_dsv4_topk_kernel",
        "_argmax_partial_kernel",
        "_softcap_row_argmax_kernel",
    ),
    _word(
        r"[rR]adix|[sS]ort(?![a-z])|cub::|[hH]istogram|[cC]umsum|_scan_|prefix_sum|bincount",
        _COMPUTE,
        "sort",
        "_bincount_kernel",
    ),
    _word(r"[eE]mbed", _COMPUTE, "embedding", "timestep_embedding_kernel"),
    _word(r"[oO]ptimizer|[aA]dam[wW]?(?![a-z])", _COMPUTE, "optimizer", "kOptimizer32bit2State"),
    _word(r"_loss|Loss|_kldiv|_jsd_", _COMPUTE, "loss", "_kldiv_kernel_forward"),
    _word(r"dropout|[rR]andom|philox", _COMPUTE, "random", "cuda_random_uniform_kernel"),
    _word(
        r"[iI]ndices|[pP]osition|slot_map|seq_?lens?|_ids_|offsets|mask_kernel"
        r"|schedule|_slots_",
        _COMPUTE,
        "indexing",
        "get_batch_indices_positions_kernel",
    ),
    _word(
        r"[cC]opy|[mM]emcpy|[tT]ranspos|[gG]ather|[sS]catter|[pP]ermut|[cC]oncat|_cat_|_pad_|repack|relayout"
        r"|(?<![a-z])cast_|"
        r"[cC]ast(?:_|$)|[iI]nterleave|_pack_|unpack|reshape|shuffle|swizzle|convert|D2D[cC]py",
        _MOVEMENT,
        "layout_copy",
        "batch_memcpy_kernel",
        "_concat_cast_kv_fp8_pad_kernel",
        "cast_fp32_to_bf16_kernel",
        "_unpack_gathered_output_kernel",
    ),
    _word(
        r"[mM]emset|(?:^|_)zero_|(?:^|_)fill_|_zeros_|write_zeros",
        _MOVEMENT,
        "fill",
        "write_zeros_to_output",
        "_zero_kv_blocks_kernel",
    ),
    _word(r"pool(?:ing)?_|resize|upsample|lanczos", _COMPUTE, "pooling", "pooling_nhwc_element1_kernel"),
    _word(
        r"[rR]educe|(?:^|_)sum_|mean_kernel|[rR]eduction|absmax|amax",
        _COMPUTE,
        "reduce",
        "mean_kernel",
        "_triton_sum_kernel",
        "per_tensor_absmax_kernel",
    ),
    _word(
        r"[eE]lementwise|(?:^|_)(?:add|mul|scale|bias|gate|residual|modulate|lerp|square|exp|tanh|sigmoid)\d?_"
        r"|_mul_|_add_|pointwise",
        _COMPUTE,
        "elementwise",
        "residual_gate_add_vec_kernel",
        "fuse_scale_shift_kernel_blc_opt",
    ),
)
