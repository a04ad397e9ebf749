"""DeepEP: expert-parallel dispatch and combine over NVLink and RDMA.

V1 has the namespaces `intranode`, `internode`, `internode_ll`, inside the V2 tree below `legacy`; V2 is `elastic`.
DeepSeek's published traces write `dpsk::ep`. Low-latency kernels hold a send and a receive phase, and spin in it.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

# `::` of a demangled name, a length of a mangled one.
_STEP = r"(?:::|\d+)"
_SPACE = rf"(?:deep_ep|dpsk{_STEP}ep){_STEP}(?:legacy{_STEP})?(?:intranode|internode_ll|internode|layout){_STEP}"

PATTERNS = (
    Pattern(
        rf"{_SPACE}dispatch(?![a-z_])|elastic{_STEP}(?:hybrid_)?dispatch(?:_copy_epilogue)?_impl",
        Kind.COMMUNICATION,
        "dispatch",
        (
            "deep_ep::internode_ll::dispatch",
            "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*, int*, long*, int*, void*, int*)",
            "void deep_ep::legacy::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)",
            "dpsk::ep::internode::dispatch",
            "_ZN7deep_ep12internode_ll8dispatchILb1ELi3ELi10ELi7168EEEvPvPfPiPlS3_S1_S3_S1_PKvPKlS3_S3_S3_iiiiiiii",
            "deep_ep::elastic::dispatch_impl",
            "deep_ep::elastic::hybrid_dispatch_copy_epilogue_impl",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        rf"{_SPACE}combine(?![a-z_])|elastic{_STEP}(?:hybrid_)?combine(?:_reduce_epilogue)?_impl",
        Kind.COMMUNICATION,
        "combine",
        (
            "deep_ep::internode_ll::combine",
            "void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*, void*, int*, void*, void const*, long const*)",
            "dpsk::ep::internode::combine",
            "deep_ep::elastic::combine_reduce_epilogue_impl",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # Barriers that exchange counts: their time is waiting for the slowest rank.
        rf"{_SPACE}(?:cached_notify|notify_dispatch|clean_low_latency_buffer|\w+_mask_buffer)",
        Kind.COMMUNICATION,
        "comm_setup",
        (
            "void deep_ep::internode::notify_dispatch<false, 1>(int const*, int*, int, int const*, int*)",
            "deep_ep::intranode::cached_notify_combine",
            "dpsk::ep::internode::cached_notify",
            "deep_ep::internode_ll::clean_low_latency_buffer",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        rf"{_SPACE}barrier",
        Kind.COMMUNICATION,
        "barrier",
        ("void deep_ep::intranode::barrier<8>(int**, int)",),
        Breadth.NAMED,
    ),
    Pattern(
        # Counts where this rank's tokens go; nothing leaves the device.
        r"get_dispatch_layout",
        Kind.COMPUTE,
        "moe_route",
        ("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*, bool*, int, int)",),
        Breadth.NAMED,
    ),
    Pattern(
        rf"elastic{_STEP}pp_(?:send|recv)_impl",
        Kind.COMMUNICATION,
        "send_recv",
        ("deep_ep::elastic::pp_send_impl", "deep_ep::elastic::pp_recv_impl"),
        Breadth.NAMED,
    ),
    Pattern(
        r"(?:deep_ep|dpsk::ep)::",
        Kind.COMMUNICATION,
        "collective",
        ("deep_ep::elastic::barrier_impl",),
    ),
)
