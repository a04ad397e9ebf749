"""Advice that several rules give."""

from __future__ import annotations

from analyzer.schema.advice import ACCELERATORS, OWN_CODE, SHARDED, Advice, Suggestion

_EAGER = ("eager",)
_DATA = ("data-parallel",)
_TRAINING = ("training",)

GRAPHS: Suggestion = (
    Advice("Replay the steps from graphs: do not pass --enforce-eager.", engines=("vllm",), replay=_EAGER),
    Advice("Replay decode from graphs: do not pass --disable-cuda-graph.", engines=("sglang",), replay=_EAGER),
    Advice(
        "Replay decode from graphs: --cuda-graph-backend-decode not disabled, --cuda-graph-max-bs-decode no smaller "
        "than the batch.",
        engines=("sglang",),
        replay=_EAGER,
    ),
    Advice("Replay the steps from graphs, so that the host launches once a step.", makers=ACCELERATORS, replay=_EAGER),
)
"""Nothing where a graph is replayed already, or on a CPU."""

COMPILE: Suggestion = (
    Advice("Let the compiler fuse them: do not pass --enforce-eager.", engines=("vllm",), replay=_EAGER),
    Advice("Let the compiler fuse them: torch.compile.", engines=OWN_CODE, makers=ACCELERATORS),
    "Let a compiler fuse them into their neighbours.",
)

BIND: Suggestion = (
    Advice("Bind each rank to the NUMA node of its device: --numa-bind.", engines=("vllm",), unless=("--numa-bind",)),
    Advice(
        "Bind each rank to the NUMA node of its device: --numa-node, a node for each rank.",
        engines=("sglang",),
        unless=("--numa-node",),
    ),
    Advice(
        "Bind each rank to the NUMA node of its device: torchrun --numa-binding=node.", engines=(*OWN_CODE, "megatron")
    ),
    Advice("Bind each rank to the NUMA node of its device: numactl --cpunodebind=N --membind=N."),
)

OVERLAP_GRADIENTS = (
    Advice(
        "Overlap the reduction of gradients with the backward pass: --overlap-grad-reduce.",
        engines=("megatron",),
        phases=_TRAINING,
        uses=_DATA,
        unless=("--overlap-grad-reduce",),
    ),
    Advice(
        "Overlap the reduction of gradients with the backward pass: buckets (bucket_cap_mb) that are full early.",
        engines=("ddp",),
        phases=_TRAINING,
        uses=_DATA,
    ),
    Advice(
        "Overlap the reduction of gradients with the backward pass: buckets, sent as they fill.",
        phases=_TRAINING,
        uses=_DATA,
    ),
)

ACCUMULATE = Advice("Reduce less often: accumulate gradients over more micro-batches.", phases=_TRAINING, uses=_DATA)

SMALLER_DEGREE = Advice("Lower the degree: two replicas of half the degree.", uses=SHARDED)

LINK_ERRORS: Suggestion = (
    Advice("Look for errors and downgraded links on these devices: nvidia-smi nvlink -e, ibstat, lspci -vv."),
    Advice("Look for errors and downgraded links on these devices: amd-smi xgmi -m, ibstat, lspci -vv."),
    Advice("Look for errors and downgraded links on these devices: hccn_tool -i N -stat -g, lspci -vv."),
    "Look for errors and downgraded links between these ranks.",
)

CLOCKS: Suggestion = (
    Advice("Compare clocks and power of its device with the others': nvidia-smi -q -d PERFORMANCE."),
    Advice("Compare clocks and power of its device with the others': amd-smi metric -c -p -t."),
    Advice("Compare power and heat of its device with the others': npu-smi info -t power, -t temp."),
    "Compare clocks, power and heat of its device with the others'.",
)

BY_POSITION: Suggestion = (
    Advice("Split the copies by position: --decode-context-parallel-size.", engines=("vllm",)),
    Advice("Split the copies by position: --decode-context-parallel-size.", engines=("sglang",)),
    "Split the copies by position: context parallelism in decode.",
)

METRICS: Suggestion = (
    Advice(
        "`shardscope collect vllm` scrapes the metrics, or save /metrics before and after the load as "
        "metrics_before.prom and metrics_after.prom beside the traces",
        engines=("vllm",),
    ),
    Advice(
        "`shardscope collect sglang` scrapes the metrics, or save /metrics before and after the load as "
        "metrics_before.prom and metrics_after.prom beside the traces",
        engines=("sglang",),
    ),
    (
        "save the engine's /metrics before and after the load as metrics_before.prom and metrics_after.prom beside the "
        "traces; `shardscope collect` does"
    ),
)

DETAILED_STEPS = Advice(
    "vLLM's steps state it with --profiler-config.detailed_trace_annotation=true (from 0.26 on)", engines=("vllm",)
)

RECORD_SHAPES: Suggestion = (
    Advice("record eagerly with --profiler-config.torch_profiler_record_shapes=true", engines=("vllm",)),
    Advice("record eagerly with VLLM_TORCH_PROFILER_RECORD_SHAPES=1", engines=("vllm",)),
    "record eagerly with record_shapes",
)

LIBRARY_LOG = Advice("Record that moment with NCCL_DEBUG=INFO.")
