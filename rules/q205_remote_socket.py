"""A rank's process runs, or keeps its memory, on another socket than its device.

## What it measures

For each rank, the NUMA node of its device against the nodes of the CPUs that its process may run on, and against the
nodes that hold its resident memory. From `topology.json`, taken while the job ran.

## Why it costs

Launches, and copies between host and device, then cross the link between sockets, which has a fraction of the
bandwidth of local memory and is shared with every other process. Jitter of the host grows as well.

## What to do

1. Bind each rank to the node of its device: `numactl --cpunodebind=N --membind=N`, or the launcher's own binding
   (vLLM: `--numa-bind` from 0.20 on; SGLang: by itself from 0.5.18 on, before `--numa-node 0 0 1 1`, one a rank;
   `torchrun --numa-binding=node` from PyTorch 2.9 on).
2. In a container, give it the CPUs and memory of that node (`--cpuset-cpus`, `--cpuset-mems`).

## When it is wrong

A process that graph replays keep idle, with inputs of a few kilobytes, gains nothing: the gain lies between nil and the
time in which the device waits for launches and host copies, which the finding states. The snapshot is one moment:
memory of files that are mapped counts where it was first read.

## Sources

`numactl(8)`; `/proc/PID/status` (`Cpus_allowed_list`) and `/proc/PID/numa_maps`, proc(5).
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.shared import BIND
from analyzer.measures.cost import cost, exposed
from analyzer.model.kind import Cause, Kind
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import ranks, share

MOSTLY = 0.5
"""Of the resident memory: code and shared libraries lie wherever they were first read."""
CONTAINER = Advice("In a container, give it that node's CPUs and memory: --cpuset-cpus, --cpuset-mems.")

_PLACED = "nodes  a a\nnuma   0 1\n"


@rule(
    Example(
        "rank 1 may only run on the socket of rank 0",
        f"{_PLACED}cpus   0 0\nrank 0 stream 7   GGGGGG\nrank 1 stream 7   GGGGGG",
        found=True,
    ),
    Example(
        "rank 1 may run on its socket but its memory is on the other",
        f"{_PLACED}cpus   0 0,1\nresident 0=4096 0=4000,1=96\nrank 0 stream 7   GGGGGG\nrank 1 stream 7   GGGGGG",
        found=True,
    ),
    Example(
        "each on the socket of its device",
        f"{_PLACED}cpus   0 1\nresident 0=4096 0=96,1=4000\nrank 0 stream 7   GGGGGG\nrank 1 stream 7   GGGGGG",
        found=False,
    ),
)
def check(run: Run) -> Iterator[Finding]:
    topology = run.topology
    known = [rank for rank in run.ranks if rank in topology.numa_of and rank in topology.processes]
    if not known:
        raise MissingEvidenceError(
            "no snapshot says which socket a rank runs on",
            "`shardscope collect topology` beside the traces, while the job runs",
        )
    bound = tuple(rank for rank in known if _runs_elsewhere(run, rank))
    held = tuple(rank for rank in known if rank not in bound and _remote_share(run, rank) > MOSTLY)
    if not bound and not held:
        return
    parts = [f"the CPUs of {_named(bound)}"] if bound else []
    parts += [f"most memory of {_named(held)}"] if held else []
    copies = cost(run, exposed(Kind.MOVEMENT, "copy_htod", "copy_dtoh")).share
    launches = cost(run, lambda rank_split: rank_split.causes[Cause.HOST_LAUNCH].total_ns).share
    yield Finding(
        f"{' and '.join(parts)} are on another socket than the device: host copies ({share(copies)} of the window) "
        f"and launches ({share(launches)}) cross it, the gain lies between nil and that",
        Severity.INFO,
        Basis.DERIVED,
        Evidence((*bound, *held)),
        (
            BIND,
            CONTAINER,
        ),
        locality=Locality.NUMA,
    )


def _named(numbers: tuple[int, ...]) -> str:
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {ranks(numbers)}"


def _runs_elsewhere(run: Run, rank: int) -> bool:
    """Whether none of the CPUs that the process may run on is on its device's node."""
    nodes = run.topology.processes[rank].cpu_nodes
    return bool(nodes) and run.topology.numa_of[rank] not in nodes


def _remote_share(run: Run, rank: int) -> float:
    """Share of the resident memory that is not on the device's node; 0 where it is not recorded."""
    held = run.topology.processes[rank].resident_bytes
    total = sum(held.values())
    return 1 - held.get(run.topology.numa_of[rank], 0) / total if total else 0.0
