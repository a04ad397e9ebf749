"""NCCL. `RING_LL` in a name is the function the kernel was built for, not the algorithm it runs."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

# Plain, symmetric-memory (`Sym` in 2.27, `Symk` since) and debug builds; the demangled and the mangled name.
_KERNEL = r"nccl(?:Symk?)?(?:Dev)?Kernel(?:Debug)?_"
# Before 2.12 the function came first: `ncclAllReduceRingLLKernel_sum_f32(ncclColl)`.
_OLD = r"|nccl{0}(?:Ring|Tree|CollNet)\w*Kernel_"


def _function(name: str) -> str:
    return _KERNEL + name + _OLD.format(name)


PATTERNS = (
    Pattern(
        _function("AllReduce"),
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
            "ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_bf16(ncclSymkDevWorkArgs4K)",
            "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _function("AllGather"),
        Kind.COMMUNICATION,
        "all_gather",
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclSymDevKernel_AllGather_STMC"),
        Breadth.NAMED,
    ),
    Pattern(
        _function("ReduceScatter"),
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
        Breadth.NAMED,
    ),
    Pattern(
        _function("Broadcast"),
        Kind.COMMUNICATION,
        "broadcast",
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",),
        Breadth.NAMED,
    ),
    Pattern(
        _function("Reduce(?!Scatter)"),
        Kind.COMMUNICATION,
        "reduce_to_root",
        ("ncclDevKernel_Reduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
        Breadth.NAMED,
    ),
    Pattern(
        # All-to-all, gather, scatter and pipeline stages all run as this one.
        _function("SendRecv"),
        Kind.COMMUNICATION,
        "send_recv",
        (
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # RCCL's pivot all-to-all is the only one with a kernel of its own.
        _function("AllToAll"),
        Kind.COMMUNICATION,
        "all_to_all",
        ("ncclKernel_AllToAllPivot_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",),
        Breadth.NAMED,
    ),
)
