"""Dense matrix products: cuBLAS, CUTLASS, nvjet, hipBLASLt, CK, AITER, DeepGEMM, oneDNN, Marlin, Triton."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

PATTERNS = (
    Pattern(
        # The collective runs inside the product: it has no time of its own.
        r"fused_matmul_reduce_scatter|all_gather_matmul|gemm_(?:ag|rs|ar)_|wait_signal_matmul"
        r"|MatMul(?:V\d)?(?:ReduceScatter|AllReduce)|Matmul(?:ReduceScatter|AllReduce)|AllGatherMatmul"
        r"|mm_(?:reduce_scatter|all_reduce)_base|all_gather_base_mm",
        Kind.COMPUTE,
        "gemm",
        (
            "kernel_cake_all_gather_matmul_06c1f7cb4aa36c5918bd",
            "gemm_ag_gemv_kernel",
            "wait_signal_matmul_triton_kernel",
            "MatmulReduceScatter",
            "AllGatherMatmul",
            "MatmulAllReduce",
        ),
        Breadth.NAMED,
        Blend.OVERLAPPED,
    ),
    Pattern(
        r"^nvjet_|^Cijk_|^Custom_Cijk_|cublas(?:Lt)?::|splitKreduce|^gem[mv]\w*_kernel|internal::gemvx::kernel"
        r"|epilogue::impl::"
        r"|^(?:void )?gem[mv](?:SN|k1|NSP|2[NT])\w*|sm\d+_xmma_gemm|^(?:volta|turing|ampere|hopper|maxwell)_\w*gemm"
        r"|sgemm_largek|^kernel_gemm_|^(?:xe_hp_|gen12lp_)?gemm_kernel|^hgemm_|^(?:void )?bf16gemm_",
        Kind.COMPUTE,
        "gemm",
        (
            "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
            "nvjet_sm100_tst_64x8_64x16_2x4_h_bz_splitK_TNT",
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1",
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
            "ampere_sgemm_128x64_tn",
            "volta_sgemm_128x64_nt",
            "ampere_gcgemm_64x64_nt",
            "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, cublasGemvTensorStridedBatched<float const>>",
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false",
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float",
            "void epilogue::impl::globalKernel<8, 1, 1, 1, 0, cublasLt::epilogue>",
            "hgemm_bf16_32x64x64_S2TN_AS_SPK16_0",
        ),
    ),
    Pattern(
        r"cutlass\w*::(?:Kernel2?|device_kernel)\b|cutlass(?:\d*_\w+)?\d+(?:Kernel|device_kernel)(?:2)?I|^cutlass3?x?_"
        r"|cutlass_\d\d_\w*gemm|kernel_cutlass_\w*(?:gemm|Gemm|GEMM)",
        Kind.COMPUTE,
        "gemm",
        (
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_nn_align8>"
                "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_nn_align8::Params)"
            ),
            "void cutlass::Kernel<cutlass_70_wmma_tensorop_f16_s161616gemm_f16_32x32_64x2_tn_align8>",
            "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x128x16_1x1x1_3_tnn_align1_bias_f32_relu",
        ),
    ),
    Pattern(
        r"ck::kernel_(?:batched_)?gemm|ck::\w+::kernel_gemm|_w8a8_(?:triton_)?block_|wvSplitK|[mM]arlin"
        r"|_block_scaled_block_gemm|_(?:batched_)?gemm_a\d+_?w\d+|machete|^XXT_kernel|^ba_plus_cAA_kernel|tinygemm"
        r"|tgv_gemm|LLGemm|kernel_batched_gemm_xdlops(?!_bwd_weight)|^(?:_?fp8_)?(?:scaled_)?mm_k(?:ernel)?$"
        r"|matmul_kernel_(?:descriptor_)?persistent|^triton_w4a16|^onednn_|micro_gemm",
        Kind.COMPUTE,
        "gemm",
        (
            "void ck::kernel_gemm_xdl_cshuffle_v3_multi_d_blockscale_b_preshuffle<ck::GridwiseGemmMultiD>",
            "_w8a8_block_fp8_matmul",
            "_w8a8_triton_block_scaled_mm",
            "_block_scaled_block_gemm",
            "_gemm_a16_w16_M32_N32_K256",
            "_batched_gemm_a8w8_",
            "void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 256, 4, 16, 4, true, 4>",
            "XXT_kernel",
            "ba_plus_cAA_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # Grouped ones say so in their GemmType and are asked before.
        r"deep_gemm::",
        Kind.COMPUTE,
        "gemm",
        (
            (
                "void deep_gemm::fp8_gemm_kernel<7168u, 16384u, 128u, 56u, 128u, 1u, 8u, 128u, 128u, 1u, true, "
                "(deep_gemm::GemmType)0>(__nv_bfloat16*, float*, int*, unsigned int, CUtensorMap_st, CUtensorMap_st)"
            ),
        ),
    ),
    Pattern(
        r"_lora_(?:shrink|expand|[ab]_kernel)|sgemm_lora_|lora_delta|do_(?:shrink|expand)_kernel|bgmv_(?:shrink|expand)"
        r"|_lora_b_kernel|fused_moe_lora",
        Kind.COMPUTE,
        "lora",
        ("_lora_shrink_kernel", "_lora_expand_kernel", "_sgemm_lora_a_kernel", "_qkv_lora_b_kernel"),
        Breadth.NAMED,
    ),
)
