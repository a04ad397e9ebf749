"""What engines do to their KV cache: writes of new tokens, gathers, moves to and from other tiers."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"(?<!rope_)reshape_and_cache(?:_flash|_nvfp4|_shuffle|_kernel|$)|_reshape_cache_|store_kvcache"
        r"|concat_and_cache_(?:ds_)?mla(?!_rope|_per_head)|set_mla_kv_(?:scale_)?(?:buffer|concat)"
        r"|(?<!Quantize)AppendPaged\w*Cache"
        r"|indexer_k_quant_and_cache_kernel|fused_store_\w*cache|store_kv_index_kernel|masked_set_kv_buffer"
        r"|set_kv_buffer"
        r"|destindex_copy_kv|_kv_cache_write|fp8_quant_and_cache_write|_store_nvfp4_kv_kernel",
        Kind.MOVEMENT,
        "kv_write",
        (
            "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>",
            "reshape_and_cache_kernel_flash",
            "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(",
            "store_kvcache_kernel",
            "_fwd_kernel_destindex_copy_kv",
            "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>",
            "set_mla_kv_buffer_kernel",
            "void flashinfer::AppendPagedKVCacheKernel<128u, 8u, __nv_bfloat16, int>",
            "indexer_k_quant_and_cache_kernel",
            "fused_store_flashmla_cache",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"cp_gather_\w*cache|cp_mha_gather_cache|gather_and_maybe_dequant_cache|_?gather_dequant|kv_cache_gather_kernel"
        r"|dequantize_(?:and_gather_k|k_cache)|_gather_swa_kv_kernel|get_mla_kv_buffer_kernel|_gather_cast_kv",
        Kind.MOVEMENT,
        "kv_gather",
        (
            "vllm::cp_gather_cache",
            "void vllm::gather_and_maybe_dequant_cache<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>",
            "cp_mha_gather_cache_kernel",
            "_dequantize_and_gather_k_kernel",
            "get_mla_kv_buffer_kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"_?swap_blocks(?:_kernel|_batch)|transfer_(?:page_head_)?kernel_impl|hicache_\w+kernel|page_row_copy"
        r"|load_cache_to_device_buffer|copy_cache_planned_kernel|multi_layer_kv_transfer|copy_all_layer_kv_cache"
        r"|transfer_cache_|transfer_mamba_(?:backup|load)|copy_blocks_kernel",
        Kind.MOVEMENT,
        "kv_offload",
        (
            "_swap_blocks_kernel",
            "hicache_tma_transfer_kernel",
            "load_cache_to_device_buffer_kernel",
            "transfer_kernel_impl",
            "page_row_copy",
            "copy_cache_planned_kernel",
            "copy_all_layer_kv_cache_tiled",
        ),
        Breadth.NAMED,
    ),
)
