"""NCCL does the small all-reduces of an engine that has a faster kernel for them.

## What it measures

All-reduces by NCCL kernels, on at most eight ranks of one node, in a vLLM or SGLang run, whose message (where recorded)
is below the limit of the custom kernels.

## Why it costs

Inside a node a custom one- or two-stage all-reduce takes 4 to 8 µs for a small message; NCCL takes 6 to 26 µs, growing
with the number of ranks. A layer pays the difference twice.

## What to do

1. Remove `--disable-custom-all-reduce`; look for the start-up line that names the all-reduce back ends in order.
2. Check peer access between the GPUs (`nvidia-smi topo -p2p r`, `amd-smi topology`): without NVLink on more than two of
   them the engines fall back on purpose.
3. Symmetric memory (vLLM: `VLLM_ALLREDUCE_USE_SYMM_MEM`, on since 0.11) and FlashInfer's fused all-reduce are on where
   the device has them: do not switch them off.

## When it is wrong

Messages above the limit (up to 8 MiB, less on newer devices) belong to NCCL. On PCIe boards both take as long.

## Sources

vLLM custom all-reduce size limits (all_reduce_utils.py); measured small-message times on A100, H100 and B200.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.cost import mean_window_ns
from analyzer.measures.traffic import traffic
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import share

ENGINES = ("vllm", "sglang")
_READ = "read the start-up line that lists the all-reduce back ends"
_ALLOWED = f"Do not pass --disable-custom-all-reduce, and {_READ}."
ALLOW = (
    Advice(_ALLOWED, engines=("vllm",), unless=("custom all-reduce",)),
    Advice(_ALLOWED, engines=("sglang",), unless=("custom all-reduce",)),
    f"R{_READ[1:]}.",
)
PEER_ACCESS = (
    Advice("Check peer access between the devices: nvidia-smi topo -p2p r."),
    Advice("Check peer access between the devices: amd-smi topology."),
    "Check peer access between the devices.",
)
CUSTOM_LIMIT_BYTES = 8 << 20
CUSTOM_RANKS = 8
SAVED = 0.5
"""Of the time: for small messages NCCL takes 1.5 to 3 times as long as a custom kernel (model, not measured here)."""
NOTABLE = 0.05


@rule(
    Example(
        "NCCL in a decode step",
        "engine vllm\nnodes a a\nrank 0 stream 7   GGGGAAAAGGGGAAAA\nrank 1 stream 7   GGGGAAAAGGGGAAAA",
        found=True,
    ),
    Example(
        "the custom kernel",
        "engine vllm\nnodes a a\nrank 0 stream 7   GGGGBBBBGGGGBBBB\nrank 1 stream 7   GGGGBBBBGGGGBBBB",
        found=False,
    ),
    rests_on=(Doubt.COMMUNICATION,),
)
def check(run: Run) -> Iterator[Finding]:
    window_ns = mean_window_ns(run)
    for row in traffic(run):
        members = row.group or run.ranks
        if row.kind != "all_reduce" or not all(name.startswith("nccl") for name in row.names):
            continue
        if run.workload.engine == "unknown":
            raise MissingEvidenceError("which engine ran is not recorded", 'write "engine": "vllm" into run.json')
        fits = (row.message_bytes or 0) <= CUSTOM_LIMIT_BYTES and len(members) <= CUSTOM_RANKS
        if run.workload.engine not in ENGINES or not fits or row.exposed_ns < NOTABLE * window_ns:
            continue
        nodes = run.topology.nodes(members)
        if nodes is not None and len(nodes) > 1:
            continue
        saved_ns = int(SAVED * row.exposed_ns)
        yield Finding(
            f"{row.count:,} all-reduces run as NCCL kernels and take {share(row.exposed_ns / window_ns)} of the window",
            Severity.INFO if nodes is None else Severity.WARNING,
            Basis.MODEL,
            Evidence(members, names=row.names),
            (
                ALLOW,
                PEER_ACCESS,
            ),
            cost_ns=saved_ns,
            cost_share=saved_ns / window_ns,
            locality=Locality.NETWORK,
        )
