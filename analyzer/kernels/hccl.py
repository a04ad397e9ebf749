"""HCCL (Ascend): whole collectives on the group's thread, their steps on planes and hardware streams."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern


def _collective(torch_name: str, mindspore_name: str) -> str:
    """Names of one collective: `hcom_allReduce__586_0_1`, `Default/AllReduce-op534_0`."""
    return rf"^hcom_{torch_name}_|(?:^|/){mindspore_name}-op\d+(?:_\d+)?$"


PATTERNS = (
    Pattern(
        _collective("[aA]llReduce", "AllReduce"),
        Kind.COMMUNICATION,
        "all_reduce",
        ("hcom_allReduce__586_0_1", "Default/AllReduce-op534_0"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("[aA]llGather(?:V)?", "AllGather"),
        Kind.COMMUNICATION,
        "all_gather",
        ("hcom_allGather__097_6_1",),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("[rR]educeScatter(?:V)?", "ReduceScatter"),
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("hcom_reduceScatter__097_4_1",),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("[aA]llto[aA]llv?c?", "All(?:to|To)All(?:v|V)?"),
        Kind.COMMUNICATION,
        "all_to_all",
        ("hcom_alltoallv_", "hcom_alltoallvc_"),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("[bB]roadcast", "Broadcast"),
        Kind.COMMUNICATION,
        "broadcast",
        ("hcom_broadcast__868_0_1",),
        Breadth.NAMED,
    ),
    Pattern(
        _collective("(?:[sS]end|[rR]ecei?ve?|[bB]atchSendRecv)", "(?:Send|Receive)"),
        Kind.COMMUNICATION,
        "send_recv",
        ("hcom_batchSendRecv__128_4_1", "hcom_BatchSendRecv__101_0_1", "hcom_send__822_0"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^hcom_",
        Kind.COMMUNICATION,
        "collective",
        ("hcom_reduce_",),
    ),
    Pattern(
        # Steps that move or reduce data; the same steps appear on the hardware streams under a second name.
        r"^(?:Memcpy|Reduce_Inline|REDUCE_ASYNC(?:_V2)?|SDMA|RDMASend|Write Value|Inter_Processor_Sync|HCCL Other)$",
        Kind.COMMUNICATION,
        "collective",
        ("Memcpy", "Reduce_Inline", "REDUCE_ASYNC_V2", "SDMA", "RDMASend", "Write Value", "HCCL Other"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Notify[ _]Wait|NOTIFY_WAIT(?:_SQE)?|EVENT_WAIT(?:_SQE)?)$",
        Kind.SYNC,
        "event_wait",
        ("Notify_Wait", "Notify Wait", "NOTIFY_WAIT", "EVENT_WAIT"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Notify[ _]Record|NOTIFY_RECORD|EVENT_RE(?:CORD|SET)(?:_SQE)?|PROFILING_(?:EN|DIS)ABLE)$",
        Kind.SYNC,
        "marker",
        ("Notify_Record", "NOTIFY_RECORD", "EVENT_RECORD", "EVENT_RESET", "PROFILING_ENABLE"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^MoeDistributeDispatch",
        Kind.COMMUNICATION,
        "dispatch",
        ("MoeDistributeDispatch", "MoeDistributeDispatchV2"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^MoeDistributeCombine",
        Kind.COMMUNICATION,
        "combine",
        ("MoeDistributeCombine", "MoeDistributeCombineV2"),
        Breadth.NAMED,
    ),
)
