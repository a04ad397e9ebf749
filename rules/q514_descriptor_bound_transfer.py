"""KV transfers take their time posting descriptors, not moving bytes.

## What it measures

Posting time over transfer time in the engine's counters; where it counts descriptors only, 3.4 µs each (a model).
Found from one half upwards.

## Why it costs

Every piece of memory that does not follow on the last needs a descriptor of its own, 3 to 4 µs to post. 313 MB in
40,064 descriptors took 174 ms, 129 of them posting: 1.8 GB/s on a link that does 50.

## What to do

1. Make the pieces larger: a larger block (vLLM: `--block-size`, if the backend takes it), or a cache layout in which
   the heads of a layer lie together (vLLM: HND, which NixlConnector takes by itself from 0.10.1 on, unless
   `VLLM_KV_CACHE_LAYOUT` says otherwise), or the layers of a block.
2. Keep the tensor-parallel degree of both sides equal: unlike degrees cut blocks into heads.
3. Send longer runs of blocks: prompts that fill neighbouring blocks need fewer.

## When it is wrong

The posting time of transfers that overlap is summed, like their time: the share is that of the mean transfer.

## Sources

vLLM's `vllm:nixl_post_time_seconds`, `vllm:nixl_xfer_time_seconds` and `vllm:nixl_num_descriptors`, Mooncake's
`vllm:mooncake_num_descriptors`; two logs of NIXL.
"""

from collections.abc import Iterator

from analyzer.model.run import Run
from analyzer.pd.verdict import transfer_bound
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Evidence, Finding, Locality, Severity
from analyzer.units import count, rate, size

LARGER = (
    Advice(
        "Use larger blocks (--block-size), or a cache layout whose pieces lie together.",
        engines=("vllm",),
    ),
    "Use larger blocks, or a cache layout whose pieces lie together.",
)


@rule(
    Example(
        "forty thousand pieces",
        """
        roles decode
        counted transfers=1 bytes=313000000 time_ns=173794000 post_ns=129127000 descriptors=40064
        rank 0 stream 7   TTTTTT
        """,
        found=True,
    ),
    Example(
        "long pieces",
        """
        roles decode
        counted transfers=1 bytes=167000000 time_ns=38700000 post_ns=6700000 descriptors=1785
        rank 0 stream 7   TTTTTT
        """,
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    counted = run.workload.handover.counted
    if counted is None:
        return
    bound = transfer_bound(counted)
    if bound.by != "descriptors" or bound.bytes_per_s is None:
        return
    pieces = "" if counted.descriptors is None else f" in {count(counted.descriptors, 'descriptor')}"
    yield Finding(
        f"{size(counted.size_bytes)} of KV{pieces} move at {rate(bound.bytes_per_s)}: {bound.why}",
        Severity.WARNING,
        bound.basis,
        Evidence(run.ranks, names=run.workload.handover.carriers),
        (
            LARGER,
            "Keep the tensor-parallel degree of both sides equal.",
        ),
        locality=Locality.SPATIAL,
    )
