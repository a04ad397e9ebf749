"""Operators that libraries register with PyTorch, as a trace without a device shows them.

vLLM's (`_C::`, `_C_cache_ops::`, `vllm::`), SGLang's, FSDP's, and what autograd, Dynamo and DTensor write themselves.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Blend, Breadth, Pattern

# Namespaces that engines register their ops under.
_ENGINE = r"^(?:_C|_C_cpu|_C_cache_ops|_C_custom_ar|_C_utils|_moe_C|_rocm_C|_xpu_C|vllm|sglang|sgl_kernel|symm_mem)::"

PATTERNS = (
    Pattern(
        _ENGINE + r"(?:(?:shm_|inplace_|outplace_|flashinfer_|multimem_|one_shot_|two_shot_)?all_?reduce\w*)$",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "_C::shm_allreduce",
            "vllm::all_reduce",
            "symm_mem::multimem_all_reduce_",
            "_C_custom_ar::all_reduce",
            "sglang::inplace_all_reduce",
            "sglang::outplace_all_reduce",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"\w*(?:fused_allreduce|allreduce_(?:residual_)?rms)\w*$",
        Kind.COMMUNICATION,
        "all_reduce",
        ("vllm::flashinfer_trtllm_fused_allreduce_norm", "vllm::rocm_aiter_fused_allreduce_rmsnorm"),
        Breadth.NAMED,
        Blend.FUSED,
    ),
    Pattern(
        _ENGINE + r"(?:shm_|reg_)?all_gather\w*$",
        Kind.COMMUNICATION,
        "all_gather",
        ("_C::shm_all_gather", "vllm::all_gather", "sglang::reg_all_gather_into_tensor"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:reg_)?reduce_scatter\w*$",
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("vllm::reduce_scatter", "sglang::reg_reduce_scatter_tensor"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"reg_all_to_all\w*$",
        Kind.COMMUNICATION,
        "all_to_all",
        ("sglang::reg_all_to_all_single",),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"shm_gather$",
        Kind.COMMUNICATION,
        "gather_to_root",
        ("_C::shm_gather",),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"shm_(?:send|recv)_tensor_list$",
        Kind.COMMUNICATION,
        "send_recv",
        ("_C::shm_send_tensor_list", "_C::shm_recv_tensor_list"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE
        + r"(?:unified_(?:mla_)?kv_cache_update|cpu_attn_reshape_and_cache|reshape_and_cache\w*|concat_and_cache_mla)$",
        Kind.MOVEMENT,
        "kv_write",
        (
            "vllm::unified_kv_cache_update",
            "vllm::unified_mla_kv_cache_update",
            "_C::cpu_attn_reshape_and_cache",
            "_C_cache_ops::reshape_and_cache_flash",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:swap_blocks(?:_batch)?|copy_blocks\w*|(?:start|wait)_prefetch)$",
        Kind.MOVEMENT,
        "kv_offload",
        ("_C_cache_ops::swap_blocks", "_C_cache_ops::swap_blocks_batch", "vllm::start_prefetch"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:mla_decode_kvcache\w*|unified_mla_attention\w*)$",
        Kind.COMPUTE,
        "mla",
        ("_C::mla_decode_kvcache", "vllm::unified_mla_attention_with_output"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:cpu_attention_with_kv_cache|unified_attention\w*|paged_attention_v\d|merge_attn_states)$",
        Kind.COMPUTE,
        "attention",
        ("_C::cpu_attention_with_kv_cache", "vllm::unified_attention_with_output"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:cpu_fused_moe\w*|fused_experts\w*|moe_forward\w*|\w*_?fused_experts|\w*fused_moe\w*)$",
        Kind.COMPUTE,
        "moe_gemm",
        ("_C::cpu_fused_moe", "vllm::moe_forward", "sglang::inplace_fused_experts"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:onednn_\w*mm|weight_packed_linear|\w+_scaled_mm\w*|\w*gemm\w*|cpu_unquantized_gemm)$",
        Kind.COMPUTE,
        "gemm",
        ("_C::onednn_mm", "_C::onednn_scaled_mm", "vllm::cpu_unquantized_gemm"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:rotary_embedding\w*)$",
        Kind.COMPUTE,
        "rope",
        ("_C::rotary_embedding",),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:fused_add_)?rms_norm\w*$",
        Kind.COMPUTE,
        "norm",
        ("_C::rms_norm", "_C::fused_add_rms_norm"),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:greedy_argmax|\w*sampl\w*|\w*topk_topp\w*)$",
        Kind.COMPUTE,
        "sampling",
        ("_C::greedy_argmax",),
        Breadth.NAMED,
    ),
    Pattern(
        _ENGINE + r"(?:compute_slot_mapping\w*|get_scheduler_metadata)$",
        Kind.COMPUTE,
        "indexing",
        ("_C::compute_slot_mapping_kernel_impl", "_C::get_scheduler_metadata"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^fsdp::(?:all_gather_copy_in|split_with_sizes_copy|chunk_cat)$"
        r"|^torch\.distributed\.ddp\.reducer::copy_bucket",
        Kind.MOVEMENT,
        "layout_copy",
        ("fsdp::all_gather_copy_in", "fsdp::chunk_cat", "torch.distributed.ddp.reducer::copy_bucket_to_grad"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^torch::distributed::reducer::mul_out$",
        Kind.COMPUTE,
        "elementwise",
        ("torch::distributed::reducer::mul_out",),
        Breadth.NAMED,
    ),
    Pattern(
        # The wrappers' own time; what they call has events of its own.
        r"^autograd::engine::|^torch::(?:autograd|jit)::|^[A-Za-z_]\w*Backward\d*$|^GeneratedBackwardFor"
        r"|^Torch-Compiled Region"
        r"|^TorchDynamo Cache|^AOTDispatcher|^Pregraph bytecode$|^PythonSubclass$|^(?:Nested)?Redistribute$"
        r"|^<(?:for|back)ward op>$"
        r"|^_(?:From|To)TorchTensor$|^RegisterPostBackwardFunction$|^forward$|^All2All_\w+_(?:Req|Wait)$",
        Kind.COMPUTE,
        "framework",
        (
            "autograd::engine::evaluate_function: MmBackward0",
            "MmBackward0",
            "LogSoftmaxBackward0",
            "NllLossBackward0",
            "torch::autograd::AccumulateGrad",
            "Torch-Compiled Region: 0/0",
            "TorchDynamo Cache Lookup",
            "Redistribute",
            "PythonSubclass",
        ),
        Breadth.NAMED,
    ),
)
