"""FBGEMM and TorchRec: embedding tables of recommendation models."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"(?:split|dense|ssd)_embedding\w*_(?:codegen|kernel)|bounds_check_indices"
        r"|^(?:fbgemm|fb)::\w*embedding|^embedding_kernel|_vocab_parallel_embedding|indexing_backward_kernel"
        r"|compute_grad_weight|EmbeddingBag|^fbgemm::bounds_check",
        Kind.COMPUTE,
        "embedding",
        (
            "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, 128ul>",
            "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, float",
            "void dense_embedding_codegen_forward_unweighted_kernel<float, float, float, 64ul>",
            "void bounds_check_indices_kernel<long>",
            "void (anonymous namespace)::indexing_backward_kernel<float, 4>(long*, long*, float*, float*, long, long)",
            "embedding_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"permute_(?:2D|1D)_\w*kernel|permute_indices_weights|permute_pooled_embs|recat_copy_async|permute_sparse",
        Kind.MOVEMENT,
        "layout_copy",
        (
            "void fbgemm_gpu::permute_2D_data_kernel<false, long, long, std::nullptr_t>",
            "void fbgemm_gpu::permute_2D_lengths_kernel<int>",
            "void permute_pooled_embs_kernel<float>",
            "fbgemm::permute_sparse_features",
            "recat_copy_async_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"linearize_index_kernel|_offsets_range_cuda|to_dense_representation|asynchronous_complete_cumsum"
        r"|^fb::(?:offsets_range|count_and_radix_sort)|block_bucketize",
        Kind.COMPUTE,
        "indexing",
        (
            "void linearize_index_kernel<long>",
            "void fbgemm_gpu::_offsets_range_cuda_kernel<int>",
            "fbgemm::asynchronous_complete_cumsum",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"FP8_quantize_cuda|FP8rowwise_to_float|_get_FP8_qparam|fbgemm_gpu\S*(?:quantize|fused8bit)",
        Kind.COMPUTE,
        "quantize",
        ("void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>",),
        Breadth.NAMED,
    ),
    Pattern(
        r"^fb::fast_gather$",
        Kind.MOVEMENT,
        "layout_copy",
        ("fb::fast_gather",),
        Breadth.NAMED,
    ),
)
