"""oneCCL (Intel XPU)."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"oneccl_allreduce",
        Kind.COMMUNICATION,
        "all_reduce",
        ("oneccl_allreduce_pcie<half, Rt64_128_PCIE, RingTransmit>",),
        Breadth.NAMED,
    ),
    Pattern(
        r"oneccl_allgatherv?",
        Kind.COMMUNICATION,
        "all_gather",
        ("oneccl_allgatherv_pcie",),
        Breadth.NAMED,
    ),
    Pattern(
        r"oneccl_reduce_scatter",
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("oneccl_reduce_scatter_large_read",),
        Breadth.NAMED,
    ),
)
