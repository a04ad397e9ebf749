"""PyTorch's own device kernels (`at::native`), with CUB, rocPRIM and the SYCL twins on XPU.

`elementwise_kernel` is a loop; what runs in it is the functor in its template arguments, asked first.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"FillFunctor|_fill_internal_kernel",
        Kind.MOVEMENT,
        "fill",
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >",),
        Breadth.NAMED,
    ),
    Pattern(
        r"direct_copy_kernel_cuda|copy_device_to_device|float\w*_copy_kernel|CatArrayBatchedCopy"
        r"|index_elementwise_kernel"
        r"|[iI]ndexSelect\w*Index|vectorized_gather_kernel|_scatter_gather_elementwise_kernel(?!.*_fill_internal)"
        r"|native::Copy(?:<|Functor)|CopyFunctor|indexFunc(?:Large|Small)Index|split_with_sizes_copy|chunk_cat"
        r"|compute_cuda_kernel|CopyScalarFunc|masked_scatter|flip_|roll_cuda|triu_tril_kernel",
        Kind.MOVEMENT,
        "layout_copy",
        (
            (
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
                "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>>"
            ),
            "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda>",
            (
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<"
                "at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 1, 128, 1>"
            ),
            "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>",
            "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long",
            "void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal",
            "void compute_cuda_kernel<long>(long const*, long const*, long*, long, long)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"native::(?:xpu::)?(?:\(anonymous namespace\)::)?(?:G[eE][lL][uU]\w*(?:KernelImpl|Functor)"
        r"|(?:silu|threshold|elu|leaky_relu|mish|hardswish|softplus|relu)_(?:backward_)?kernel"
        r"|clamp_min_scalar_kernel)",
        Kind.COMPUTE,
        "activation",
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl",
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel>",
            "void at::native::vectorized_elementwise_kernel<4, at::native::threshold_kernel_impl<float>>",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"cunn_SoftMax|softmax_warp_(?:forward|backward)|SoftMaxForward|SoftmaxForward|SoftmaxBackwardKernel|softmax_kernel",
        Kind.COMPUTE,
        "softmax",
        (
            "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"ArgMaxOps|ArgMinOps|multinomial",
        Kind.COMPUTE,
        "sampling",
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>",),
        Breadth.NAMED,
    ),
    Pattern(
        r"cub::\S*Device|cub\S*::Dispatch|rocprim::|sbtopk|mbtopk|radixSort|bitonicSort|gatherTopK|tensor_kernel_scan"
        r"|kernelHistogram|write_indices|searchsorted|radixFindKthValues|computeBlockwise|gatherMedian"
        r"|_scan_dim_kernel",
        Kind.COMPUTE,
        "sort",
        (
            "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*, int*>>",
            (
                "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<"
                "at_cuda_detail::cub::detail::radix::policy_hub<long, int, int>::Policy1000, false, long, int>"
            ),
            "void at_cuda_detail::cub::DeviceReduceKernel<at_cuda_detail::cub::DeviceReducePolicy<int>::Policy600>",
            "void rocprim::ROCPRIM_400200_NS::detail::trampoline_kernel<rocprim::ROCPRIM_400200",
            "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>",
            "void at::cuda::kernelHistogram1D<long, long, long, 1, 2, -1, (at::cuda::CUDAHistogramMemoryType)0>",
            "void at::native::(anonymous namespace)::write_indices<int>(long*, at::native::TensorDims<int>, int, int)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"distribution_elementwise|fused_dropout|philox|random_(?:from_to|kernel)|randperm|curand|bernoulli",
        Kind.COMPUTE,
        "random",
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
            "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"nll_loss\w*_kernel|NLLCriterion|mse_(?:backward_)?(?:cuda_)?kernel|(?:cross_entropy|kl_div|smooth_l1|ctc_loss)\w*_kernel",
        Kind.COMPUTE,
        "loss",
        (
            "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>",
            "void at::native::vectorized_elementwise_kernel<4, at::native::mse_kernel_cuda(at::TensorIteratorBase&)>",
            "void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(float*, float*, float*, long*)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"AdamFunctor|FusedAdam|FusedSgd|FusedAdagrad|LAMB|adamw?_kernel|_single_tensor_adam",
        Kind.COMPUTE,
        "optimizer",
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>, float, float>",),
        Breadth.NAMED,
    ),
    Pattern(
        r"max_pool|avg_pool|adaptive_average_pool|upsample_|interpolate|grid_sampl|roi_align|nms_kernel",
        Kind.COMPUTE,
        "pooling",
        (
            "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*, int, int)",
            "void at::native::(anonymous namespace)::adaptive_average_pool<float>(float const*, float*, int, int, int)",
            "void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float, float>(int, float, float",
            "void vision::ops::(anonymous namespace)::nms_kernel_impl<float>(int, double, float const*",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"fft[123]?d?_(?:c2r|r2c|c2c)|(?:vector|regular|spRadix)\w*_?fft|cufft|rocfft",
        Kind.COMPUTE,
        "fft",
        ("void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int, int, int, int, int, int)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"native::reduce_kernel|reduction_prod_kernel|ReduceKernel<",
        Kind.COMPUTE,
        "reduce",
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>",
            "void reduction_prod_kernel<float, int>",
        ),
    ),
    Pattern(
        # cuBLAS, level one.
        r"reduce_1Block_kernel|(?:^|void )(?:dot|asum|nrm2|iamax)_kernel",
        Kind.COMPUTE,
        "reduce",
        (
            "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>",
            "void dot_kernel<float, 128, 0>",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"elementwise_kernel|multi_tensor_apply_kernel|ElementwiseGlobalRangeKernel|VectorizedElementwiseKernel"
        r"|SubTensorOpWith|Op\d?dTensorGeneric|OpTensor\w*|tril_indices|spin_kernel|scal_kernel|scalePackedTensor|axpy_"
        r"|_kernel_cuda\(at::TensorIterator",
        Kind.COMPUTE,
        "elementwise",
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>",
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
                "TensorListMetadata<3>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 3, 2, 0>>"
            ),
            "SubTensorOpWithScalar1d",
            "at::native::xpu::ElementwiseGlobalRangeKernel<at::native::xpu::MulFunctor<float>>",
        ),
    ),
)
