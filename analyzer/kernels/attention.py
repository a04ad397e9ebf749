"""Attention kernels: FlashAttention, FlashInfer, cuDNN, xFormers, CK, AITER, TensorRT-LLM, Triton backends."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"BatchMLAPage|_fmla_fwd|flash_(?:fwd_)?(?:splitkv_)?mla|flashmla_(?:kv|fwd|decode|sparse|sched)|FlashMLA"
        r"|Sm\d+(?:Mla|Fmha\w*Mla)|(?<!sparse_)mla_(?:decode(?!_kvcache)|reduce)"
        r"|DecodeWithPagedKVCacheKernelM[lL][aA]|mla_(?:a\d+w\d+|pfl|dec)_|verify_mla_|aiter(?:::|\d+)mla_"
        r"|KernelMla\w*Gen|mla_kv_splits|_bf16_mla_",
        Kind.COMPUTE,
        "mla",
        (
            (
                "void flashinfer::mla::hopper::BatchMLAPageAttentionHopperKernel"
                "false, 4u, 512u, 64u, 64u, 32u, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int>>"
            ),
            "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, 512>>",
            "void flashinfer::BatchDecodeWithPagedKVCacheKernelMLA<2u, 32u, 2u, 32u, 1u>",
            "aiter::mla_a8w8_qh16_qseqlen1_gqaratio16_ps",
            "_ZN5aiter45mla_a8w8_qh32_qseqlen4_gqaratio32_lse_cprr_psE",
            "void kn_mla_reduce_v1<MlaReduceKernelV1Traits<512, 128, 1>",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"sparse_(?:attn_)?(?:fwd|decode|prefill)|sparse_mla_|mqa_logits|topKPerRow(?:Decode|Prefill)|topk_transform"
        r"|_sparse_gqa_|_gqa_sparse_|_attn_fwd_sparse|fast_topk_(?:clusters|kernel)|SparseFlashAttention"
        r"|LightningIndexer",
        Kind.COMPUTE,
        "sparse_attention",
        (
            "void sm90::fwd::sparse_attn_fwd_kernel<512>",
            "void deep_gemm::sm90_fp8_mqa_logits<32u, 64u, 128u>",
            "void deep_gemm::sm90_fp8_paged_mqa_logits<1u, 64u, 128u>",
            "void vllm::topKPerRowDecode<512, true>",
            "sparse_mla_prefill_kernel",
            "LightningIndexer",
            "KvQuantSparseFlashAttention",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"FlashAttn(?:Fwd|Bwd)|flash_(?:fwd|bwd)_(?!\w*mla)|compute_attn_ws|fmha_?(?:[A-Z]|cutlass|fwd|bwd)|Fmha|FMHA"
        r"|flash::prepare_varlen|FlashAttention\w*Sm\d+|flash_attn_(?:fwd|bwd)|mha_(?:fwd|bwd)_",
        Kind.COMPUTE,
        "attention",
        (
            (
                "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
                "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >>>>"
            ),
            "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<64>, cute::C<128> >>>",
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false>>",
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false>>",
            "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false>>",
            "void flash::prepare_varlen_num_blocks_kernel<8, false>(int, int, int, int const*, int const*)",
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
            "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvCgaVarSeqQ8Kv128StaticSwapsAbForGen",
            "aiter::fmha_fwd_hd128_bf16_rtz",
            "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS",
            "cutlass::fmha::XeFMHAFwdKernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"(?:POD|Prefill|Decode)With(?:Paged|Ragged)?KVCache(?:Tensor)?Kernel(?!M[lL][aA])"
        r"|kernel_(?:\w+_)?unified_attention|unified_attention_3d|kernel_paged_attention"
        r"|paged_attention_\w*kernel|_?reduce_segments|MergeStates?(?:InPlace|Large\w*)?Kernel|_?merge_states?_kernel"
        r"|merge_attn_states|AttentionSumKernel|pa_(?:fwd|decode|bf16|a16w|prefill)|_merge_attn_out",
        Kind.COMPUTE,
        "attention",
        (
            "kernel_unified_attention_2d",
            "kernel_unified_attention_3d",
            "reduce_segments",
            "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)1",
            "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 8u, 16u, 8u, 2u>",
            "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, ",
            "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, false>",
            "void vllm::merge_attn_states_kernel<__nv_bfloat16, 128u>",
            "merge_state_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # SAM's is a name mangled by an old Triton: `_fwd_kernel_aligned_0d1d2d…`.
        r"^_fwd_(?:grouped_)?kernel(?:_stage[12](?:_rope)?|_alibi|_unified|_dense_prefill|_aligned\w*|_0d\w*)?$"
        r"|^(?:_?attn_fwd|_?attn_bwd|_bwd_kernel_dkdv|_bwd_kernel_dq)\b|_fused_suffix_attention|^context_attention",
        Kind.COMPUTE,
        "attention",
        (
            "attn_fwd",
            "_fwd_kernel",
            "_fwd_grouped_kernel_stage1",
            "_fwd_kernel_stage2",
            "_fwd_kernel_aligned_0d1d2d3d45d6de",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # Selective scans, delta rules and gated linear attention, of Mamba, GDN, KDA and Lightning layers.
        r"causal_conv1d|selective_(?:scan|state_update)|_chunk_(?:scan|state|cumsum)_|_state_passing_fwd|_bmm_chunk_fwd"
        r"|gated_delta_rule|(?<![a-z])gdn_|(?<![a-z])kda_|(?<![a-z])gla_|_kda_|chunk_(?:gla|kda|fwd_kernel_o"
        r"|local_cumsum|scaled_dot_kkt)"
        r"|recompute_w_u_fwd|merge_16x16_to|solve_tril|linear_attn_|_ssu_|ssu_kernel|replayssm|mamba_"
        r"|fused_recurrent_|l2norm_fwd"
        r"|fused_sigmoid_gating_delta_rule|_fwd_(?:kv_(?:parallel|reduce)|(?:none_)?diag_kernel)|seg_la_",
        Kind.COMPUTE,
        "linear_attention",
        (
            "_causal_conv1d_update_kernel",
            "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4, true, c10::BFloat16>>",
            "_selective_scan_update_kernel",
            "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
            "fused_recurrent_gated_delta_rule_fwd_kernel",
            "chunk_fwd_kernel_o",
            "_chunk_scan_fwd_kernel",
            "kda_gate_fwd_kernel",
            "gdn_fused_decode_kernel",
        ),
        Breadth.NAMED,
    ),
)
