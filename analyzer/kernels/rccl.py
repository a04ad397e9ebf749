"""RCCL and MSCCL(++): one kernel for all collectives. The kind is in `record_param_comms`, where that was recorded."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        # `_1`, `_2`, `_4` are unroll factors of newer builds. NCCL has this one too, for rare types.
        r"ncclDevKernel(?:Debug)?_Generic",
        Kind.COMMUNICATION,
        "collective",
        (
            "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",
            "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"mscclKernel_|mscclpp::",
        Kind.COMMUNICATION,
        "collective",
        (
            "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)",
            "mscclKernel_Sum_hip_bfloat16_Simple",
        ),
        Breadth.NAMED,
    ),
)
