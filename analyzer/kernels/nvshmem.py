"""NVSHMEM and torch's collectives on it."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"(?:barrier|sync)(?:_all)?_on_stream_kernel|nvshmem\w*_(?:barrier|sync_all)",
        Kind.COMMUNICATION,
        "barrier",
        ("void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"exchangeSplitAndOffset",
        Kind.COMMUNICATION,
        "comm_setup",
        ("exchangeSplitAndOffset(long*, long*, int, int)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"allToAllV(?:_2d|Push)?\(|allToAllv?Kernel",
        Kind.COMMUNICATION,
        "all_to_all",
        (
            "allToAllV(void*, void*, long*, unsigned long, int, int)",
            "allToAllV_2d(void*, void*, long*, long*, unsigned long)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"nvshmem",
        Kind.COMMUNICATION,
        "collective",
        ("nvshmemi_proxy_rma_entrypoint_blocking",),
    ),
)
