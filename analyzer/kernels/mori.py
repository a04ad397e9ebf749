"""MORI (ROCm) and the other expert exchanges: Perplexity's pplx."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"EpDispatch(?:InterNode|IntraNode|LowLatency|All|Sync|CopyToStaging)",
        Kind.COMMUNICATION,
        "dispatch",
        (
            "void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(mori::moe::EpDispatchCombineArgs<hip_bfloat16>)",
            "EpDispatchIntraNodeKernel_bf16",
            "EpDispatchInterNodeV1KernelLowLatency",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"EpCombine(?:InterNode|IntraNode|LowLatency|All|Sync)",
        Kind.COMMUNICATION,
        "combine",
        (
            "void mori::moe::EpCombineIntraNodeKernel<hip_bfloat16>(mori::moe::EpDispatchCombineArgs<hip_bfloat16>)",
            "EpCombineInterNodeV1Kernel",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"pplx::\S*[dD]ispatch\w*Kernel",
        Kind.COMMUNICATION,
        "dispatch",
        ("pplx::dispatchKernel",),
        Breadth.NAMED,
    ),
    Pattern(
        r"pplx::\S*[cC]ombine\w*Kernel",
        Kind.COMMUNICATION,
        "combine",
        ("pplx::combineKernel",),
        Breadth.NAMED,
    ),
    Pattern(
        # MORI-IO's copies between two devices of a node, for hand-over of KV.
        r"fabricCopyKernel|scatterGatherCopyKernel",
        Kind.MOVEMENT,
        "copy_ptop",
        ("fabricCopyKernel", "scatterGatherCopyKernel"),
        Breadth.NAMED,
    ),
)
