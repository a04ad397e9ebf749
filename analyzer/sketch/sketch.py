"""Timelines drawn in text: the notation of rule examples, tests and reports.

    layout  tp=2
    rank 0 stream 7   GGGG....GGGG....
    rank 0 stream 20  ....AAAA....AAAA
    rank 0 host       l.l.l.l...SSSS..
    rank 0 steps      DDDDDDDD|DDDDDDD

One column is 10 µs, or what a line `column 2 µs` says. Equal letters in a row are one event (each `l` and `g` is one of
its own); `|` takes the column and opens a new event of the letter that follows it; `.` is nothing. Letters on a stream
are in `DEVICE`, on the host in `HOST`, on steps in `STEPS`. Every `l` or `g` of a rank's host launches, in order of
time, the next activity (`l`), or all but those left to later launches (`g`, a graph); a rank without a host row has no
launches recorded.

Other lines say what the run knows: `layout`, `world` (ranks of the job), `groups` (`0-1 2-3`), `model`, `engine`,
`device` (its name), `message` (bytes of every collective), `copy` (bytes of every copy), `metrics` (by how much the
engine's grew), `roles` (one a rank), `kv` and `counted` (what was handed over, see `_sketch_handover`), `note` (what
reading found), `nodes`, `links`, `nics`, `numa`, `cpus`, `resident` and `environment` (where ranks are, see
`_sketch_topology`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from analyzer.classify import classify
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.kind import Kind
from analyzer.model.layout import Layout, Source
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, Note, Origin, ProcessGroup, Trace
from analyzer.model.workload import Workload
from analyzer.sketch.handover import handover, numbers
from analyzer.sketch.topology import read_topology
from analyzer.stats.arrays import Integers

COLUMN_NS = 10_000
COPY_BYTES = 1 << 20
"""What a drawn copy states, unless the drawing says otherwise."""

DEVICE = {
    "G": "nvjet_tst_128x64_64x8_2x1_v_bz_TNT",
    "T": "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)",
    "M": "fused_moe_kernel",
    "N": "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)",
    "E": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
    "Q": "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*)",
    "A": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "B": "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)",
    "R": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "L": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "X": "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)",
    "Y": "void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*, void*)",
    "S": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "H": "Memcpy HtoD (Pageable -> Device)",
    "J": "Memcpy HtoD (Pinned -> Device)",
    "D": "Memcpy DtoH (Device -> Pinned)",
    "P": "Memcpy PtoP (Device -> Device)",
    "C": "Memcpy DtoD (Device -> Device)",
    "K": "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(__nv_bfloat16 const*)",
    "W": "_swap_blocks_kernel",
    "O": "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>>(int)",
    "U": "a_kernel_that_nobody_knows",
}
HOST = {
    "l": "cudaLaunchKernel",
    "g": "cudaGraphLaunch",
    "S": "cudaStreamSynchronize",
    "V": "cudaEventSynchronize",
    "C": "cudaMemcpyAsync",
    "M": "cudaMalloc",
    "I": "aten::item",
    "x": "cudaEventRecord",
}
STEPS = {
    "P": "execute_context_1(512)_generation_0(0)",
    "D": "execute_context_0(0)_generation_8(8)",
    "X": "execute_context_1(256)_generation_8(8)",
    "I": "step[IDLE bs=0]",
    "N": "execute_512_context_1(sq512sk512sqsq262144sqsk262144)_generation_0(sq0sk0sqsq0sqsk0)",
    "R": "execute_128_context_1(sq128sk512sqsq16384sqsk65536)_generation_0(sq0sk0sqsq0sqsk0)",
}
_FACTS = (
    *("layout", "world", "groups"),
    *("nodes", "links", "nics", "numa", "cpus", "resident", "environment"),
    *("model", "engine", "device", "message", "copy", "metrics", "column"),
    *("roles", "kv", "counted", "note"),
)
_LAUNCHES = ("cudaLaunchKernel", "cudaGraphLaunch")
_ROW = re.compile(r"rank (\d+) (stream (\d+)|host|steps)\s+(\S+)$")
_HOST_THREAD = 1


@dataclass(frozen=True, slots=True)
class _Span:
    name: str
    start_ns: int
    end_ns: int
    lane: int


@dataclass(frozen=True, slots=True)
class _Stated:
    """What every trace of a drawing states: bytes of a collective (or ABSENT) and of a copy, device name, groups."""

    message_bytes: int
    copy_bytes: int
    device_name: str
    groups: tuple[tuple[int, ...], ...]


def read(drawing: str) -> Run:
    """The run that a drawing shows.

    Raises:
        ValueError: a line or letter that the notation does not have.
    """
    rows: dict[int, dict[str, list[_Span]]] = {}
    lines = [line.strip() for line in drawing.splitlines() if line.strip()]
    facts = dict(_fact(line) for line in lines if _ROW.match(line) is None)
    column_ns = 1_000 * int(facts["column"].split()[0]) if "column" in facts else COLUMN_NS
    for row in filter(None, map(_ROW.match, lines)):
        rank, kind, stream, cells = int(row[1]), row[2].split()[0], int(row[3] or _HOST_THREAD), row[4]
        letters = {"stream": DEVICE, "host": HOST, "steps": STEPS}[kind]
        rows.setdefault(rank, {}).setdefault(kind, []).extend(_spans(cells, letters, stream, column_ns))
    message_bytes = int(facts["message"]) if "message" in facts else ABSENT
    stated = _Stated(message_bytes, int(facts.get("copy", COPY_BYTES)), facts.get("device", ""), _groups(facts))
    traces = tuple(_trace(rank, rows[rank], stated) for rank in sorted(rows))
    notes = (Note(facts["note"]),) if "note" in facts else ()
    return Run("drawing", traces, _layout(facts, len(traces)), read_topology(facts), _workload(facts), notes)


def _fact(line: str) -> tuple[str, str]:
    word, _, rest = line.partition(" ")
    if word not in _FACTS:
        raise ValueError(f"not in the notation: {line!r}")
    return word, rest.strip()


def draw(run: Run, start_ns: int, end_ns: int, columns: int = 64) -> str:
    """What each rank did between two instants: the nearest term that ran in most of each column.

    Letters: G compute, A communication, M movement, `.` nothing.
    """
    # Instants since 1970 in ns do not fit a float.
    edges = start_ns + np.linspace(0, end_ns - start_ns, columns + 1).astype(np.int64)
    lines = []
    for trace in run.traces:
        cells = np.full(columns, ".")
        for kind, letter in ((Kind.MOVEMENT, "M"), (Kind.COMMUNICATION, "A"), (Kind.COMPUTE, "G")):
            inside = trace.activities.busy(kind).within(edges[:-1], edges[1:])
            cells[2 * inside > np.diff(edges)] = letter
        lines.append(f"rank {trace.rank:<4}{''.join(cells)}")
    return "\n".join(lines)


def _spans(cells: str, letters: dict[str, str], lane: int, column_ns: int) -> list[_Span]:
    spans = []
    for event in re.finditer(r"\|?(?:([lg])|([^.|])\2*)", cells):
        letter = event[1] or event[2]
        if letter not in letters:
            raise ValueError(f"letter {letter!r} is not one of {' '.join(letters)}")
        spans.append(_Span(letters[letter], event.start() * column_ns, event.end() * column_ns, lane))
    return spans


def _trace(rank: int, rows: dict[str, list[_Span]], stated: _Stated) -> Trace:
    device = sorted(rows.get("stream", []), key=lambda span: (span.start_ns, span.lane))
    host = sorted(rows.get("host", []), key=lambda span: span.start_ns)
    launched, calls = _correlate(device, host)
    names = Labels.of(span.name for span in device)
    copies = names.where(lambda name: name.startswith("Memcpy"))
    activities = Activities(
        *_columns(device, names, rank, launched),
        classify(names.values),
        np.where(copies, stated.copy_bytes, ABSENT).astype(np.int64) if device else np.zeros(0, np.int64),
    )
    on_host = list(zip(host, calls, strict=True))
    ops = [span for span, _ in on_host if span.name.startswith("aten::")]
    runtime = [(span, number) for span, number in on_host if not span.name.startswith("aten::")]
    groups = tuple(
        ProcessGroup(str(index), "", len(members), members)
        for index, members in enumerate(stated.groups)
        if rank in members
    )
    return Trace(
        rank,
        Origin(f"drawing/rank{rank}", "cuda", stated.device_name, recorded_rank=rank, groups=groups),
        activities,
        calls=_events([span for span, _ in runtime], [number for _, number in runtime]),
        ops=_events(ops),
        annotations=_events(sorted(rows.get("steps", []), key=lambda span: span.start_ns)),
        collectives=_records(activities, stated.message_bytes, groups[0].name if groups else ""),
    )


def _records(activities: Activities, message_bytes: int, group: str) -> CollectiveRecords:
    """Metadata of every drawn collective, where the drawing states a message; all are of the rank's first group."""
    if message_bytes == ABSENT:
        return CollectiveRecords.none()
    rows = np.flatnonzero(activities.kind == Kind.COMMUNICATION).astype(np.int64)
    same, absent = np.full(rows.size, message_bytes, np.int64), np.full(rows.size, ABSENT, np.int64)
    blank, named = Labels.of([""] * rows.size), Labels.of([group] * rows.size)
    operation = activities.subclass.take(rows)
    return CollectiveRecords(rows, operation, named, blank, blank, absent, blank, same, same, absent, absent, blank)


def _correlate(device: list[_Span], host: list[_Span]) -> tuple[list[int], list[int]]:
    """Correlation of each activity and of each host call: launches take activities in order."""
    launched, calls, next_activity = [ABSENT] * len(device), [ABSENT] * len(host), 0
    launches = [i for i, span in enumerate(host) if span.name in _LAUNCHES]
    for number, i in enumerate(launches, start=1):
        calls[i] = number
        left_to_others = len(launches) - number
        take = max(1, len(device) - next_activity - left_to_others) if host[i].name == "cudaGraphLaunch" else 1
        for activity in range(next_activity, min(next_activity + take, len(device))):
            launched[activity] = number
        next_activity += take
    return launched, calls


def _columns(
    spans: list[_Span], names: Labels, process: int, correlation: list[int]
) -> tuple[Labels, Integers, Integers, Integers, Integers, Integers]:
    start, end, lane = (
        np.array([getattr(span, field) for span in spans], np.int64) for field in ("start_ns", "end_ns", "lane")
    )
    return names, start, end, np.full(len(spans), process, np.int64), lane, np.array(correlation, np.int64)


def _events(spans: list[_Span], correlation: list[int] | None = None) -> Events:
    names = Labels.of(span.name for span in spans)
    return Events(*_columns(spans, names, 1, correlation or [ABSENT] * len(spans)))


def _layout(facts: dict[str, str], ranks: int) -> Layout:
    world_size = int(facts["world"]) if "world" in facts else None
    if "layout" not in facts:
        return Layout(world_size)
    sizes = {axis: int(size) for axis, _, size in (word.partition("=") for word in facts["layout"].split())}
    world = tuple(range(ranks))
    groups: dict[str, tuple[tuple[int, ...], ...]] = {
        axis: (world,) for axis, size in sizes.items() if size == ranks > 1
    }
    return Layout(world_size or ranks, sizes, groups, Source.DECLARED, dict.fromkeys(sizes, "drawn"))


def _groups(facts: dict[str, str]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(rank) for rank in group.split("-")) for group in facts.get("groups", "").split())


def _workload(facts: dict[str, str]) -> Workload:
    model: dict[str, int | float | str] = dict(numbers(facts.get("model", "")))
    grown = (word.rpartition("=") for word in facts.get("metrics", "").split())
    counters = {series: float(value) for series, _, value in grown}
    roles = dict(enumerate(facts.get("roles", "").split()))
    handed = handover(facts, COLUMN_NS)
    return Workload(facts.get("engine", "unknown"), model=model, roles=roles, counters=counters, handover=handed)
