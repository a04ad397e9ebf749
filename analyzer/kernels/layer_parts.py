"""Rotary embedding, norms, quantization and activations that engines fuse with each other.

A kernel that does several is named after the first of: rope, norm, activation, quantize.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        # QK norm, rope and KV write in one: the write is a small share of it.
        r"qk_?norm_?rope|QKNormRope|fused_qknorm|concat_and_cache_mla(?:_rope|_per_head)|rope\w*(?:store|cache|quant)"
        r"|[rR]ope[qQ]uantize(?:Append)?|norm_rope|rotary_(?:embedding_)?kernel|_fused_qk_rope|ApplyRotary"
        r"|KvRmsNormRopeCache",
        Kind.COMPUTE,
        "rope",
        (
            "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*)",
            "_rotary_kernel",
            "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<false, 128u, 8u, 16u, __nv_bfloat16, int>",
            "_fused_qk_rope_reshape_and_cache_kernel",
            "void (anonymous namespace)::fused_rope_store_kernel<true, 128l, true, __nv_bfloat16, long, 16u>",
            "void (anonymous namespace)::fused_qknorm_warp<128l, true, __nv_bfloat16>(",
            "concat_and_cache_mla_rope_fused_kernel",
            "aiter::fuse_qk_rope_concat_and_cache_mla_per_head_kernel",
            "fusedQKNormRopeKernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"add_rms_?norm_quant|FusedAddRMSNorm|[rR]msnorm2d|_rms_norm_fwd_fused|fused_qk_rmsnorm|batch_norm_"
        r"|MIOpenBatchNorm"
        r"|cudnn::bn_|layer_?norm\w*(?:_kernel|Kernel)|LayerNorm\w*Kernel|RowwiseMoments|GammaBeta|group_?norm_"
        r"|cuCompute(?:Part)?Grad(?:Gamma|Input)|ComputeInternalGradients|Compute(?:Backward)?FusedParams|GroupNorm"
        r"|rms_norm(?:_static|_dynamic)?\w*_kernel|RMSNorm\w*Kernel",
        Kind.COMPUTE,
        "norm",
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
            "kernel_cutlass_kernel_flashinfernormkernelsfused_add_rmsnormFusedAddRMSNormKernel_object_at_",
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS",
            "_rms_norm_fwd_fused",
            "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16*",
            "void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>",
            "MIOpenBatchNormFwdTrainSpatial",
            "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>",
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>",
            "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float, float const*)",
            "void (anonymous namespace)::groupnorm_kernel_dispatch_up<c10::BFloat16>",
            "void (anonymous namespace)::groupnorm_kernel_dispatch_down<c10::BFloat16>",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"act_and_mul|silu_and_mul|gelu_(?:tanh_)?and_mul|swiglu|situ_and_mul|SwiGlu|doActivationKernel"
        r"|doGatedActivation",
        Kind.COMPUTE,
        "activation",
        (
            "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>), true>",
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5",
            "_silu_and_mul_post_quant_kernel",
            "void vllm::situ_and_mul_kernel<c10::BFloat16>",
            "SwiGlu",
        ),
    ),
    Pattern(
        r"per_token_(?:group_)?quant|scaled_fp8_quant|cvt_fp16_to_(?:mx)?fp[48]|_tma_align_input_scale|kDequantize"
        r"|kQuantize|scaled_(?:int8|fp4)_quant|perTokenQuantization|DynamicQuant|_dynamic_mx_quant|awq_dequantize",
        Kind.COMPUTE,
        "quantize",
        (
            "_per_token_group_quant_fp8",
            "void per_token_group_quant_8bit_kernel<__nv_bfloat16, c10::Float8_e4m3fn>(__nv_bfloat16 const*, void*",
            "void vllm::scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>",
            "void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>",
            "_tma_align_input_scale_kernel",
            "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*, float*, __nv",
            "DynamicQuant",
        ),
    ),
    Pattern(
        # What a step's inputs need before its first layer.
        r"create_\w*kv_indices|compute_position_kernel|clamp_position|resolve_future_token|alloc_(?:decode"
        r"|extend)_kernel"
        r"|copy_kv_index_to_req|repack_kv_index|_slot_mapping|_block_tables?_kernel|fill_(?:reverse_)?indices_kernel"
        r"|req_to_token|advance_step|_prepare_(?:prefill|decode|pos_seq)|page_table",
        Kind.COMPUTE,
        "indexing",
        (
            "create_flashinfer_kv_indices_triton",
            "compute_position_kernel",
            "alloc_decode_kernel",
            "void (anonymous namespace)::clamp_position_kernel<long>(long*, long const*, unsigned long)",
            "void (anonymous namespace)::resolve_future_token_ids_kernel<long>(long*, long const*, unsigned long)",
            "_fwd_kernel_copy_kv_index_to_req",
            "_fill_indices_kernel",
            "_compute_slot_mappings_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"TopKTopP|TopKRenorm|TopPRenorm|SamplingFrom|RadixTopK|gumbel|rejection_(?:greedy|random)|_?sample_recovered"
        r"|verify_tree|VerifyTree|_penalties_kernel|apply_\w*penalties|_topk_topp_kernel|token_bitmask|grammar_bitmask"
        r"|_min_p_kernel|eagle_prepare|TreeSpeculative|build_tree|_temperature_kernel|SpeculativeSampling",
        Kind.COMPUTE,
        "sampling",
        (
            "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)2>",
            "void flashinfer::sampling::RadixTopKRenormProbKernel_MultiCTA<1024u>",
            "_gumbel_sample_kernel",
            "rejection_greedy_sample_kernel",
            "void VerifyTreeGreedy<long, long>",
            "void vllm::apply_repetition_penalties_kernel<float>",
            "_topk_topp_kernel",
        ),
        Breadth.NAMED,
    ),
)
