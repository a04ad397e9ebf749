"""Quick reduce (ROCm): a two-shot all-reduce that may quantize what goes over the wire."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"allreduce_prototype_(?:one|two)shot",
        Kind.COMMUNICATION,
        "all_reduce",
        (
            "quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half,4>, true>, __half>",
            "quickreduce::allreduce_prototype_twoshot",
        ),
        Breadth.NAMED,
    ),
)
