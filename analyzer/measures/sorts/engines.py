"""Who wrote the loop: signs of engines, most special first; PyTorch itself only where no engine shows."""

from __future__ import annotations

from analyzer.measures.sorts.sign import Sign, names_of_run, says
from analyzer.model.run import Run
from analyzer.schema.workload import UNKNOWN, Fact

SERVING = frozenset(
    (
        *("vllm", "sglang", "lightllm", "nano-vllm", "tensorrt-llm", "lmdeploy", "atom", "llama.cpp"),
        *("text-generation-inference", "meta-predictor"),
    )
)
"""Engines that answer requests."""

ENGINES = (
    Sign("^VLLM::", "process", "vllm", "certain", "vLLM's process titles", ("VLLM::Worker_TP0", "VLLM::EngineCore")),
    Sign("^sglang::", "process", "sglang", "certain", "SGLang's process titles", ("sglang::scheduler",)),
    Sign("^vllm$", "version", "vllm", "certain", "vLLM writes its version into its traces", ("vllm",)),
    Sign("^sglang$", "version", "sglang", "certain", "SGLang writes its version into its traces", ("sglang",)),
    Sign(
        r"^(?:sglang_profiler|sglang)::",
        "host",
        "sglang",
        "certain",
        "operations that SGLang registers",
        ("sglang_profiler::rmsnorm_rmsnorm2d_fwd_1", "sglang::inplace_all_reduce"),
    ),
    Sign(
        r"^step\[[A-Z_0-9]+ bs=\d+",
        "host",
        "sglang",
        "certain",
        "step names of SGLang 0.5.11 and later",
        ("step[DECODE bs=16]", "step[EXTEND bs=15 toks=15360]"),
    ),
    Sign(
        r"^vllm::(?:unified_|moe_forward|all_reduce|rocm_)",
        "host",
        "vllm",
        "certain",
        "operations that vLLM registers",
        ("vllm::unified_attention_with_output", "vllm::rocm_unquantized_gemm"),
    ),
    Sign(
        "^gpu_model_runner: ",
        "host",
        "vllm",
        "certain",
        "ranges of vLLM's model runner",
        ("gpu_model_runner: forward",),
    ),
    Sign(
        r"^(?:prefill|decode)\[bs=\d+(?:/\d+)? tok=\d+",
        "host",
        "atom",
        "likely",
        "step names of ATOM",
        ("decode[bs=117/128 tok=117 d=117]",),
    ),
    Sign(
        r"^execute_(?:new|context|\d+_context)_\d+|^capture_\d+_FULL$|^capture_\d+_PIECEWISE$",
        "host",
        "vllm",
        "likely",
        "vLLM's names of steps and captures; builds of SGLang write them too",
        ("execute_context_1(512)_generation_6(6)", "execute_new_2_cached_6", "capture_32_FULL"),
    ),
    Sign("^vllm::", "host", "vllm", "likely", "operations that vLLM registers", ("vllm::gelu",)),
    Sign(
        r"^_fwd_kernel_(?:copy_kv_index_to_req|destindex_copy_kv)|^_fwd_kernel_destindex_copy_quantize_kv",
        "kernel",
        "lightllm",
        "likely",
        "LightLLM's Triton kernels for its KV cache",
        ("_fwd_kernel_destindex_copy_kv", "_fwd_kernel_copy_kv_index_to_req"),
    ),
    Sign(
        r"^store_kvcache_kernel",
        "kernel",
        "nano-vllm",
        "likely",
        "nano-vLLM's kernel for its KV cache, copied by small engines",
        ("store_kvcache_kernel",),
    ),
    Sign(
        r"^trtllm::",
        "host",
        "tensorrt-llm",
        "likely",
        "operations that TensorRT-LLM registers",
        ("trtllm::moe_custom_op", "trtllm::create_mla_outputs"),
    ),
    Sign(
        r"^(?:trtllm|tensorrt_llm)$", "version", "tensorrt-llm", "certain", "TensorRT-LLM's version", ("tensorrt_llm",)
    ),
    Sign(
        r"turbomind::",
        "kernel",
        "lmdeploy",
        "likely",
        "kernels of LMDeploy's TurboMind",
        ("void turbomind::gemm::gemm_kernel<turbomind::Config>(int)",),
    ),
    Sign(
        r"\(ggml_type\)|^_?Z?.*ggml_cuda",
        "kernel",
        "llama.cpp",
        "likely",
        "kernels of ggml",
        ("void mul_mat_vec_q<(ggml_type)2, 1>(void const*)",),
    ),
    Sign(
        r"^text-generation",
        "process",
        "text-generation-inference",
        "likely",
        "TGI's process titles",
        ("text-generation-server",),
    ),
    Sign(
        r"PyTorchMRSGIFTask|^Stage::updatePredictorExecutorContext",
        "host",
        "meta-predictor",
        "likely",
        "stages of Meta's predictor",
        ("Stage::PyTorchMRSGIFTask::run",),
    ),
    Sign(
        r"^(?:TENSOR|PIPELINE|EXPERT)_MODEL_PARALLEL_GROUP$|^DATA_PARALLEL_GROUP(?:_WITH_CP)?$",
        "group",
        "megatron",
        "certain",
        "Megatron's names of process groups",
        ("TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP_WITH_CP"),
    ),
    Sign(
        r"^LinearWithGradAccumulationAndAsyncCommunication|^_VocabParallelCrossEntropy",
        "host",
        "megatron",
        "likely",
        "Megatron's autograd functions",
        ("LinearWithGradAccumulationAndAsyncCommunicationBackward",),
    ),
    Sign(
        r"^KeyedJaggedTensor|KJTListSplitsAwaitable|^## all2all_data:|^## \w*sparse_data_dist|^All2All_Pooled_Req",
        "host",
        "torchrec",
        "certain",
        "TorchRec's distribution of sparse features",
        ("## all2all_data:kjt splits ##", "## KJTListSplitsAwaitable wait() ##", "All2All_Pooled_ReqBackward"),
    ),
    Sign(
        r"^FSDP::|^fsdp::|FullyShardedDataParallel",
        "host",
        "fsdp",
        "certain",
        "PyTorch's sharded data parallelism",
        ("FSDP::all_gather (blocks.0)", "fsdp::chunk_cat", "FullyShardedDataParallel.forward"),
    ),
    Sign(
        r"DeepSpeed(?:Zero|Engine|CPU)|^deepspeed::",
        "host",
        "deepspeed",
        "likely",
        "DeepSpeed's classes",
        ("Optimizer.step#DeepSpeedZeroOptimizer.step",),
    ),
    Sign(
        r"^DistributedDataParallel\.forward|^torch\.distributed\.ddp\.reducer|^torch::distributed::reducer",
        "host",
        "ddp",
        "certain",
        "PyTorch's data parallelism",
        ("DistributedDataParallel.forward", "torch::distributed::reducer::mul_out"),
    ),
    Sign(
        r"^execute_diffusion_\d|UNet2DCondition|FluxTransformer2D|SD3Transformer2D|DiTTransformer2D|WanTransformer3D",
        "host",
        "diffusion",
        "likely",
        "a diffusion pipeline",
        ("execute_diffusion_1_256x256", "UNet2DConditionModel.forward"),
    ),
    Sign(
        r"^(?:Default|Gradients)/",
        "kernel",
        "mindspore",
        "certain",
        "MindSpore's scopes of operators",
        ("Default/network-WithLossCell/_backbone-AlexNet/conv1-Conv2d/Conv2D-op1_0",),
    ),
)
"""Signs of engines."""

PYTORCH = (
    Sign(
        r"^aten::|^autograd::engine::|^ProfilerStep#\d|^record_param_comms$|^Torch-Compiled Region|^Optimizer\.\w+#",
        "host",
        "torch",
        "likely",
        "PyTorch's own names, and no engine's",
        ("aten::mm", "ProfilerStep#7", "Torch-Compiled Region: 0/0", "Optimizer.step#SGD.step"),
    ),
    Sign(
        r"\bat::(?:native|cuda)::|^triton_(?:poi|per|red|tem)_fused|N2at6native",
        "kernel",
        "torch",
        "likely",
        "PyTorch's own kernels, and no engine's",
        ("void at::native::vectorized_elementwise_kernel<4>(int)", "triton_poi_fused_add_0"),
    ),
)
"""Signs of PyTorch, which every engine above leaves as well."""


def engine(run: Run) -> Fact:
    """As run.json states it, else as the surest sign says, else as reading has it, else PyTorch."""
    stated = run.workload.declared.get("engine", "")
    if stated:
        return Fact(stated, "run.json states it", "declared")
    names = names_of_run(run)
    seen = says(ENGINES, names)
    if seen.sure == "certain":
        return seen
    read = run.workload.engine
    if read != UNKNOWN:
        return Fact(read, seen.evidence if seen.value == read else "file names or server_args.json", "likely")
    return seen if seen.value != UNKNOWN else says(PYTORCH, names)
