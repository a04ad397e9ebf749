"""Mixture-of-experts kernels: grouped products, and the routing around them."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

PATTERNS = (
    Pattern(
        r"fused_moe_(?:(?!router|preprocess|dispatch|lora)\w+_)?kernel|marlin_moe|[gG]rouped?_?(?:[gG]emm(?!a)"
        r"|[mM]at_?[mM]ul)|GroupProblemShape"
        r"|_bmm_chunk_dummy|^bmm_[A-Z]\w+_(?:dynB|t\d+x)|_matmul_ogs|m_grouped|moe_wna16|kernel_moe_gemm|moe_mmk"
        r"|deep_gemm::\w+<[^(]*\(deep_gemm::GemmType\)[123]|(?:^|[^a-z])moe_gemm[12]?_|mfma_moe[12]_|MoeFlatmm"
        r"|kernel_alpha_moe_\w*_(?:up|down)|kernel_trtllm_moe_bmm|GroupedMatmul|group_gemm_starts|prepare_grouped_gemm",
        Kind.COMPUTE,
        "moe_gemm",
        (
            "fused_moe_kernel",
            "fused_moe_kernel_gptq_awq",
            (
                "void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 64u, 160u, 128u, 32u, 4u, 128u, 128u, 1u, true, "
                "(deep_gemm::GemmType)2>(__nv_bfloat16*, float*, int*, unsigned int, CUtensorMap_st, CUtensorMap_st)"
            ),
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
            "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128u2_s5_et128x8_m128x8x16_c1x1x1_16dp256b_rM_BN_transOut",
            "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x8x512_s3_et128x8_m128x8x32_cga1x1x1_16dp256b_TN_transOut_schedS",
            "void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<ck::tensor_layout::gemm::RowMajor>>",
            "moe_gemm1_0",
            "mfma_moe1_silu_mul_afp8_wfp4",
            ("_ZN7cutlass13device_kernelINS_2at4cuda6detail11enable_3x_kernel_for_sm10xINS17GroupProblemShape"),
            "at::cuda::detail::prepare_grouped_gemm_data",
            "GroupedMatmul",
            "GroupedMatmulSwigluQuant",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # The experts' products with the token exchange inside: the exchange has no time of its own.
        r"fp8_\w*mega_moe|[mM]ega_?[mM]o[eE](?!_inputs)|DispatchFFNCombine|dispatch_ffn_combine",
        Kind.COMPUTE,
        "moe_gemm",
        (
            "void deep_gemm::sm100_nvfp4_nvfp4_mega_moe_impl<16512u, 6144u, 3072u, 128u, 4u, 4u, 192u, 128u, 256u",
            "DispatchFFNCombine",
        ),
        Breadth.NAMED,
        Blend.OVERLAPPED,
    ),
    Pattern(
        r"topkGating|moeTopK|moeSoftmax|moeSigmoid|grouped_topk|_align_block_size|count_and_sort_\w*expert|moe_sum"
        r"|routingIndices|routingMain|finalize(?:DeepSeek|Moe\w*)?Kernel|moe_fused_gate|_topk_forward|_combined_routing"
        r"|_finalize_matmul_scatter|compute_?[eE]xpert_?[oO]ffsets|expandInputRows|moe::dev::|MoeSorting|moe_sorting"
        r"|topksoftmax|topksigmoid|topk_softmax|topk_sigmoid|_sum_bitmatrix_rows|ep_(?:scatter_[12]|gather)"
        r"|(?:pre|post)_reorder|moe_?(?:un)?permute|mxfp4_quant_moe_sort|_count_expert_num_tokens"
        r"|kernel_alpha_moe_(?:fus|rou)"
        r"|MoeGatingTopK|MoeInitRouting|MoeToken(?:Un)?[pP]ermute|MoeFinalizeRouting|MoeReRouting|ExpertPrefixSum"
        r"|moe_fused_mul_sum|kimi_k2_moe_fused_gate|deepseek_v3_topk_kernel|router_(?:gate|triton)"
        r"|fill_gateup_input|src2dst|deepep_(?:permute|post_reorder)",
        Kind.COMPUTE,
        "moe_route",
        (
            "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int, float>",
            "grouped_topk_kernel",
            "void vllm::moe::moe_align_block_size_kernel<int>",
            "void vllm::moe::count_and_sort_expert_tokens_kernel<int>",
            "_moe_sum_reduce_kernel",
            "moe_sum_reduce",
            "void moe::dev::routing::routingCustom::routingIndicesDynBlockKernel",
            "void moe::dev::finalize::finalizeKernel<moe::dev::finalize::KernelParams>",
            "_topk_forward",
            "_combined_routing_compute",
            "_combined_routing_memset",
            "_finalize_matmul_scatter_bf16",
            "_sum_bitmatrix_rows",
            "aiter::topksoftmax_4x128x8_bf16",
            "void ck_tile::kentry<2, ck_tile::MoeSortingKernel<ck_tile::MoeSortingProblemEx<int, float, 2, true>>>",
            "_fwd_kernel_ep_scatter_1",
            "MoeGatingTopKSoftmax",
            "MoeInitRoutingV2",
            "MoeFinalizeRoutingV2",
        ),
        Breadth.NAMED,
    ),
)
