"""Files that are often taken for PyTorch-profiler traces: what each is, and what to pass instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer import units

_ASK = "pass a trace that torch.profiler exported (export_chrome_trace or tensorboard_trace_handler)"
_KEYS_SHOWN = 6
_BYTES_SHOWN = 24

_TEXTS = (
    (re.compile(rb"<!doctype|<html|<\?xml", re.IGNORECASE), "an HTML or XML page", "download the trace again"),
    (re.compile(rb"version https://git-lfs"), "a Git LFS pointer, not the file it points to", "run git lfs pull"),
    (re.compile(rb"\0"), "zero bytes, never written", "record or copy the trace again"),
)  # fmt: skip

_OBJECTS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"schema", "nodes"}), "a PyTorch execution trace (nodes of the graph, no times on the device)"),
    (frozenset({"segments", "device_traces"}), "a CUDA memory snapshot"),
    (frozenset({"profiler_results"}), "a profiler's report"),
)
_ASCEND_STEP = re.compile(r"step\d*$")

_KINETO = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|kernel|user_annotation|python_function|gpu_memcpy|gpu_memset|Operator|Kernel|Runtime|'
    rb'[a-z0-9]+_runtime|[a-z0-9]+_driver|ac2g|Trace)"'
)
_VENDORS = (
    (re.compile(rb'"name"\s*:\s*"/(?:device:[TG]PU|host:CPU)|"XLA (?:Ops|Modules)"'), "a JAX/XLA profiler trace"),
    (re.compile(rb'"(?:BeginNs|DurationNs)"\s*:\s*"'), "a rocprof trace"),
    (re.compile(rb'"name"\s*:\s*"Hip \d+"|"name"\s*:\s*"sclk"'), "a rocmProfileData trace"),
    (re.compile(rb'"(?:PUSH_PULL|COPYD2H|INITCOMMUNICATION)'), "a BytePS timeline"),
    (re.compile(rb'"NEGOTIATE_[A-Z]+"'), "a Horovod timeline"),
    (re.compile(rb'"name"\s*:\s*"callback/[A-Za-z]+/event/'), "a Composer callback trace"),
    (re.compile(rb'"cat"\s*:\s*"fee"|"viztracer_metadata"'), "a VizTracer trace"),
    (re.compile(rb'"cat"\s*:\s*"dynamo_timed"'), "a torch.compile chromium log"),
    (re.compile(rb'"cat"\s*:\s*"(?:task::|worker_idle|ray::)'), "a Ray timeline"),
)  # fmt: skip


def no_json(text: bytes) -> str:
    """What a file is that starts neither with a brace nor with a bracket, and the cure."""
    for pattern, what, cure in _TEXTS:
        if pattern.match(text):
            return f"{what}; {cure}"
    start = text[:_BYTES_SHOWN].decode("utf-8", "replace")
    return f"starts with {start!r}, which is no JSON; {_ASK}"


def is_told_by(keys: Iterable[str]) -> bool:
    """Whether these top-level keys suffice to say that the file is something else."""
    return any(marks <= set(keys) for marks, _ in _OBJECTS)


def no_events(keys: list[str], *, is_broken: bool, problem: str, read_bytes: int) -> str:
    """What a JSON object is that has no list of events, and the cure.

    Args:
        keys: its top-level keys, as far as they could be read.
        is_broken: whether it stops being JSON behind the last of them.
        problem: what kept the rest of the file from being read, "" where nothing did.
        read_bytes: how far the file was read.
    """
    for marks, what in _OBJECTS:
        if marks <= set(keys):
            return f"{what}, not a profiler trace; {_ASK}"
    if keys and all(_ASCEND_STEP.match(key) for key in keys):
        return "Ascend's communication.json (tables a step), not a trace; pass the trace_view.json beside it"
    shown = ", ".join(repr(key) for key in keys[:_KEYS_SHOWN]) + (", …" if len(keys) > _KEYS_SHOWN else "")
    which = f"the keys {shown}" if keys else "no readable key"
    what = f"breaks off or is damaged after {which}" if is_broken else f"has {which}"
    why = f" ({problem})" if problem else ""
    return f"JSON that {what}; no list of traceEvents in {units.count(read_bytes, 'byte')}{why}; {_ASK}"


def vendor(start: bytes) -> str | None:
    """What wrote a list of events in another profiler's form, None where nothing says so.

    Args:
        start: text of the file's first events.
    """
    if _KINETO.search(start):
        return None
    profiler = next((what for pattern, what in _VENDORS if pattern.search(start)), None)
    return f"{profiler}, which has no kernels as the PyTorch profiler writes them; {_ASK}" if profiler else None
