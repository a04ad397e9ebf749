"""torch symmetric memory: collectives over peers' mapped memory and NVSwitch multicast."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"(?:multimem|(?:one|two)_shot)_all_reduce_(?:kernel|out)|multimem_one_shot_(?:all_)?reduce_kernel",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "multimem_all_reduce_kernel",
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
            "two_shot_all_reduce_kernel",
            "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"multimem_all_gather_kernel",
        Kind.COMMUNICATION,
        "all_gather",
        ("void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*, unsigned long)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"reduce_scatter_(?:out_)?(?:split|multimem)\w*kernel",
        Kind.COMMUNICATION,
        "reduce_scatter",
        ("void (anonymous namespace)::reduce_scatter_out_split_last_dim_kernel<16>(char**, char*)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"c10d::symmetric_memory::\S*barrier_kernel|_blockwise_barrier$|^barrier_triton_kernel",
        Kind.COMMUNICATION,
        "barrier",
        ("c10d::symmetric_memory::barrier_kernel(unsigned int**, unsigned long, int, int, unsigned long)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"(?:put|wait)_signal_kernel",
        Kind.COMMUNICATION,
        "barrier",
        (
            "c10d::symmetric_memory::put_signal_kernel(unsigned int**, int, int, int, int, unsigned long)",
            "c10d::symmetric_memory::wait_signal_kernel(unsigned int**, int, int, int, int, unsigned long)",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        # The torchao syncless expert exchange, in Triton over symmetric memory.
        r"_all_to_all(?:_v)?_kernel",
        Kind.COMMUNICATION,
        "all_to_all",
        ("_combine_all_to_all_kernel",),
        Breadth.NAMED,
    ),
)
