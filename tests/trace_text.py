"""Trace files typed out byte by byte, as the writers of traces space them: a test tool."""

import gzip
import json
import tempfile
from pathlib import Path

from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.kineto.kineto import read

HEAD = (
    '\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": "NVIDIA H200"\n    },\n    {\n      "id": 1, "name": "NVIDIA H200"\n'
    '    }\n  ],\n  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},\n  "traceEvents": [\n'
)
TAIL = '\n  ],\n  "traceName": "/tmp/x.json",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 1735632360000000000\n}\n'
BASE_NS = 1_735_632_360_000_000_000


def kernel(at, name=None, ts=None, dur="2.500", args=None):
    """Kernel number `at` in Kineto's own layout: starts 10 µs after the one before, lasts 2.5 µs."""
    name = f"kernel_{at}" if name is None else name
    ts = f"{1000 + 10 * at}.125" if ts is None else ts
    args = (
        f'"External id": {at}, "device": 0, "context": 1, "stream": 7, "correlation": {100 + at}'
        if args is None
        else args
    )
    times = ", ".join(part for part in (f'"ts": {ts}' if ts else "", f'"dur": {dur}' if dur else "") if part)
    return f'  {{\n    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7,\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'


def host(at, category="cpu_op", name="aten::add"):
    """An event of the host in Kineto's own layout."""
    return f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": 44, "tid": 45,\n    "ts": {1000 + at}.001, "dur": 0.500,\n    "args": {{\n      "External id": {at}, "Input Dims": [[{at}, 2], []]\n    }}\n  }}'


def flow(at):
    """The end of an arrow, in Kineto's own layout."""
    return f'  {{\n    "ph": "f", "id": {at}, "pid": 0, "tid": 7, "ts": {1000 + at}.125,\n    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }}'


def kineto(events, head=HEAD, tail=TAIL):
    """A file of these events."""
    return (head + ",\n".join(events) + tail).encode()


def kernels(n=8, **at):
    """n kernels, some of them replaced: `k5="…"` puts other text in the place of the sixth."""
    return [at.get(f"k{i}", kernel(i)) for i in range(n)]


def read_text(text, detail=Detail.ALL, **options):
    """What is read of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path, detail, **options)


def notes(trace):
    """Count of each problem."""
    return {note.text: note.count for note in trace.problems}


def content(trace):
    """All of a trace but its path, in a form that can be compared."""
    n = len(trace)
    return {
        "phase": trace.phase.tolist(),
        "category": trace.category.tolist(),
        "name": trace.name.tolist(),
        "start": trace.start_ns.tolist(),
        "duration": trace.duration_ns.tolist(),
        "process": trace.process.tolist(),
        "thread": trace.thread.tolist(),
        "words": trace.words,
        "integers": {key: sparse.dense(n).tolist() for key, sparse in trace.integers.items()},
        "texts": {key: sparse.dense(n).tolist() for key, sparse in trace.texts.items()},
        "descriptions": sorted(
            zip(
                trace.descriptions.process.tolist(),
                trace.descriptions.thread.tolist(),
                trace.descriptions.key.tolist(),
                trace.descriptions.text.tolist(),
                strict=True,
            )
        ),
        "metadata": trace.metadata,
        "problems": notes(trace),
    }


def parsed(path):
    """Events and other keys of a sound file, by the standard library."""
    raw = path.read_bytes()
    value = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return (value, {}) if isinstance(value, list) else (value.pop("traceEvents"), value)
