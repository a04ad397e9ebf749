"""Traces of several ranks typed in microseconds, for tests of what happens across ranks."""

import numpy as np

from analyzer.classify import classify
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.trace import CollectiveRecords, Origin, ProcessGroup, Trace

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
EXCHANGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
CUSTOM = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)"
DISPATCH = "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)"
GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
NORM = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)"
COPY = "Memcpy DtoH (Device -> Pinned)"
EPOCH_NS = 1_780_000_000_000_000_000


def trace(rank, spans, *, clock_us=0.0, calls=(), records=None, origin=None):
    """A rank's trace.

    Args:
        rank: of the run.
        spans: (name, start, duration) or (name, start, duration, lane) or (…, lane, correlation).
        clock_us: by how much the rank's clock is ahead.
        calls: (name, start, duration, correlation) on the host.
        records: what `recorded` returns, for the activities in order of start.
        origin: of the trace; by default recorded rank = rank, of an unknown number.
    """
    events = _columns([(*span, 7, ABSENT)[:5] if len(span) == 3 else (*span, ABSENT)[:5] for span in spans], clock_us)
    host = _columns([(name, start, length, 1, correlation) for name, start, length, correlation in calls], clock_us)
    name = events[0]
    none = Events(Labels.of(()), *(np.zeros(0, np.int64) for _ in range(5)))
    activities = Activities(*events, classify(name.values), np.full(len(name), ABSENT, np.int64))
    return Trace(
        rank,
        origin or Origin(f"rank{rank}.json", "cuda", recorded_rank=rank),
        activities,
        Events(*host),
        none,
        none,
        records or CollectiveRecords.none(),
    )


def _columns(rows, clock_us):
    rows = sorted(rows, key=lambda row: row[1])
    start = np.array([round((row[1] + clock_us) * 1000) for row in rows], np.int64) + EPOCH_NS
    length = np.array([round(row[2] * 1000) for row in rows], np.int64)
    lane = np.array([row[3] for row in rows], np.int64)
    correlation = np.array([row[4] for row in rows], np.int64)
    return Labels.of(row[0] for row in rows), start, start + length, np.zeros(len(rows), np.int64), lane, correlation


def recorded(rows, *, group="0", members=(0, 1), operation="all_reduce", n_bytes=8192, sequence=None, peer=ABSENT):
    """Metadata of some activities of one process group.

    Args:
        rows: positions of the activities.
        group: name of the process group.
        members: its ranks, or the list as recorded.
        operation: one, or one an activity.
        n_bytes: of input and output, one or one an activity.
        sequence: number of the first call; None where not recorded.
        peer: of a send or receive.
    """
    rows = np.array(list(rows), np.int64)
    n = rows.size
    text = members if isinstance(members, str) else str(list(members))
    size = ABSENT if isinstance(members, str) else len(members)
    number = np.full(n, ABSENT, np.int64) if sequence is None else sequence + np.arange(n)
    each = np.broadcast_to(np.array(n_bytes, np.int64), n).copy()
    return CollectiveRecords(
        activity=rows,
        operation=Labels.of([operation] * n if isinstance(operation, str) else operation),
        group=Labels.of([group] * n),
        description=Labels.of([""] * n),
        members=Labels.of([text] * n),
        group_size=np.full(n, size, np.int64),
        dtype=Labels.of(["BFloat16"] * n),
        in_bytes=each,
        out_bytes=each,
        sequence=number.astype(np.int64),
        peer=np.full(n, peer, np.int64),
        splits=Labels.of([""] * n),
    )


def process_groups(*groups):
    """Process groups by their ranks, named in order."""
    return tuple(ProcessGroup(str(at), "", len(ranks), tuple(ranks)) for at, ranks in enumerate(groups))


def collectives(starts_us, *, name=REDUCE, end_us, lane=7):
    """One rank's spans of collectives that end at given times."""
    return [(name, start, end - start, lane) for start, end in zip(starts_us, end_us, strict=True)]


def uneven(calls, seed=3):
    """Times at which the last rank arrives, µs apart as in no regular program."""
    return np.cumsum(np.random.default_rng(seed).uniform(80, 200, calls)).round(3)
