"""Write a drawn run as Kineto files, in the layout of torch's own writer: a test tool, and the maker of drawn samples."""

import gzip
import json
from pathlib import Path

from analyzer.model.events import ABSENT

BASE_NS = 1_782_967_788_000_000_000
STARTED_US = 1_000_000.0
DEVICE = {
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_000_000_000,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}


def events_of(trace, pid=1000):
    """The trace's events as Kineto writes them, times in µs after the base."""
    rows = []
    records = {int(at): row for row, at in enumerate(trace.collectives.activity)}
    for at in range(len(trace.activities)):
        name = trace.activities.name[at]
        category = (
            "gpu_memcpy" if name.startswith("Memcpy") else "gpu_memset" if name.startswith("Memset") else "kernel"
        )
        args = {"device": trace.rank, "stream": int(trace.activities.lane[at])}
        if trace.activities.correlation[at] != ABSENT:
            args["correlation"] = int(trace.activities.correlation[at])
        if trace.activities.size_bytes[at] != ABSENT:
            args["bytes"] = int(trace.activities.size_bytes[at])
        if at in records:
            args |= _collective(trace.collectives, records[at])
        rows.append(_complete(category, name, trace.activities, at, trace.rank, int(trace.activities.lane[at]), args))
    for column, category in (
        (trace.calls, "cuda_runtime"),
        (trace.ops, "cpu_op"),
        (trace.annotations, "user_annotation"),
    ):
        for at in range(len(column)):
            args = {"correlation": int(column.correlation[at])} if column.correlation[at] != ABSENT else {}
            rows.append(_complete(category, column.name[at], column, at, pid, pid + int(column.lane[at]), args))
    return rows


def _complete(category, name, columns, at, pid, tid, args):
    start_us, end_us = (STARTED_US + ns / 1000 for ns in (columns.start_ns[at], columns.end_ns[at]))
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": round(start_us, 3),
        "dur": round(end_us - start_us, 3),
        "args": args,
    }


def _collective(records, row):
    return {
        "Collective name": {"all_reduce": "allreduce"}.get(records.operation[row], records.operation[row]),
        "In msg nelems": int(records.in_bytes[row]) // 2,
        "Out msg nelems": int(records.out_bytes[row]) // 2,
        "dtype": "BFloat16",
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
    }


def document(trace, world_size=None, events=None):
    """The whole file as an object."""
    ranks = list(range(world_size or trace.rank + 1))
    group = {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cuda:nccl",
        "pg_size": len(ranks),
        "ranks": ranks,
    }
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": trace.rank, **DEVICE}],
        "distributedInfo": {
            "backend": "nccl",
            "rank": trace.rank,
            "world_size": len(ranks),
            "pg_count": 1,
            "pg_config": [group],
            "nccl_version": "2.27.3",
        },
        "cuda_runtime_version": 12080,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": events_of(trace) if events is None else events,
        "traceName": "drawn.json",
    }


def write(run, folder, *, compress=False):
    """One file a rank; returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    world = run.layout.world_size or len(run.traces)
    for trace in run.traces:
        text = json.dumps(document(trace, world), indent=1)
        path = folder / f"rank{trace.rank}.{BASE_NS}.pt.trace.json"
        if compress:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        else:
            path.write_text(text)
    return folder
