"""Process-group events of the host: what runs a collective on a CPU, and the op that posts it.

`gloo:` labels name the function that ran, which is not always the collective: a reduce-scatter runs as
`gloo:all_reduce`. `nccl:` and `hccl:` annotations are the time of issuing and are no work; no pattern claims them.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern


def _collective(ran: str, posted: str, functional: str) -> str:
    """Names of one collective: as it ran, as c10d posted it, as a functional op."""
    return (
        rf"^(?:gloo|mpi|ucc|xccl|fake):(?:{ran})$|^c10d::(?:{posted})(?:_coalesced)?_?$"
        rf"|^_(?:c10d_functional|dtensor)(?:_autograd)?::(?:{functional})(?:_coalesced)?_?$"
    )


PATTERNS = (
    Pattern(
        _collective("all_?reduce(?:_sparse)?", "allreduce", "all_reduce"),
        Kind.COMMUNICATION,
        "all_reduce",
        ("gloo:all_reduce", "c10d::allreduce_", "_c10d_functional::all_reduce", "mpi:all_reduce"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective(
            "all_?gather|_all_?gather_base", "_?allgather(?:_base|_into_tensor)?", "all_gather_into_tensor(?:_out)?"
        ),
        Kind.COMMUNICATION,
        "all_gather",
        (
            "gloo:all_gather",
            "c10d::_allgather_base_",
            "c10d::allgather_into_tensor_coalesced_",
            "_c10d_functional::all_gather_into_tensor",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("_?reduce_scatter(?:_base)?", "_?reduce_scatter(?:_base|_tensor)?", "reduce_scatter_tensor"),
        Kind.COMMUNICATION,
        "reduce_scatter",
        (
            "gloo:reduce_scatter",
            "c10d::_reduce_scatter_base_",
            "c10d::reduce_scatter_tensor_coalesced_",
            "_c10d_functional::reduce_scatter_tensor",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("all_?to_?all(?:_base)?", "alltoall(?:_base)?", "all_to_all_single|shard_dim_alltoall"),
        Kind.COMMUNICATION,
        "all_to_all",
        ("gloo:all_to_all", "c10d::alltoall_base_", "_c10d_functional::all_to_all_single"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("broadcast", "broadcast", "broadcast"),
        Kind.COMMUNICATION,
        "broadcast",
        ("gloo:broadcast", "c10d::broadcast_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("reduce", "reduce", "reduce"),
        Kind.COMMUNICATION,
        "reduce_to_root",
        ("gloo:reduce", "c10d::reduce_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("gather", "gather", "gather"),
        Kind.COMMUNICATION,
        "gather_to_root",
        ("gloo:gather", "c10d::gather_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("scatter", "scatter", "scatter"),
        Kind.COMMUNICATION,
        "scatter_from_root",
        ("gloo:scatter", "c10d::scatter_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("send|recv|recv_any_source", "send|recv|recv_any_source", "send|recv|batch_p2p_ops"),
        Kind.COMMUNICATION,
        "send_recv",
        ("gloo:send", "gloo:recv", "c10d::send", "c10d::recv_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("barrier", "(?:monitored_)?barrier", "barrier"),
        Kind.COMMUNICATION,
        "barrier",
        ("gloo:barrier", "c10d::barrier"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^record_param_comms$",
        Kind.COMMUNICATION,
        "collective",
        ("record_param_comms",),
        Breadth.NAMED,
    ),
    Pattern(
        # The caller is blocked; the collective itself is on another thread.
        r"^_c10d_functional::wait_tensor$",
        Kind.SYNC,
        "collective_wait",
        ("_c10d_functional::wait_tensor",),
        Breadth.NAMED,
    ),
    Pattern(
        r"^_c10d_functional(?:_autograd)?::_wrap_tensor_autograd$",
        Kind.COMPUTE,
        "framework",
        ("_c10d_functional::_wrap_tensor_autograd",),
        Breadth.NAMED,
    ),
)
