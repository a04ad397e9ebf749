"""Convolutions: cuDNN, MIOpen, CK, oneDNN."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"xmma_(?:fprop|dgrad|wgrad)_|(?:im|ex)plicit_convolve|precomputed_convolve|winograd|[dw]grad_(?:alg|engine)"
        r"|_scudnn_|implicit_gemm|kernel_grouped_conv|ImplicitGemm|cudnn::cnn::|cask_cudnn\w*::|im2col|Im2d2Col"
        r"|igemm_(?:fwd|bwd|wrw)_gtc|miopenSp3AsmConv|gemm_xdlops_bwd_weight|cudnn_infer_|gen_conv|conv_reorder"
        r"|xmma__5x_cudnn|conv2d_grouped_direct|conv_depthwise|miopen\w*[cC]onv",
        Kind.COMPUTE,
        "convolution",
        (
            "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_warpsize2x2x1_g1",
            "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>",
            "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>",
            "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>",
            "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>",
            "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
            "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x2x1",
            "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f3x2_stride1",
            "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_",
            "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_",
            "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)",
            "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_",
            "Im2d2Col_v2",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"cutlass\w*cudnn\w*::Kernel",
        Kind.COMPUTE,
        "convolution",
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_f16_s16816fprop_optimized_f16_128x64_64x4_nhwc_align8>",),
        Breadth.NAMED,
    ),
)
