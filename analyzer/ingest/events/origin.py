"""What a trace says of itself: rank, world, groups, device, versions."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from analyzer.ingest.filenames import FileIdentity
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.trace import Origin, ProcessGroup

SETTINGS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
_VERSIONS = {
    "vllm_version": "vllm",
    "sglang_version": "sglang",
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver",
    "hip_runtime_version": "hip_runtime",
    "hip_driver_version": "hip_driver",
    "cupti_version": "cupti",
    "roctracer_version": "roctracer",
}


def origin_of(raw: RawTrace, identity: FileIdentity, device: str, used: int | None) -> Origin:
    """Origin of a trace file.

    Args:
        raw: the file as read.
        identity: what its name says.
        device: `cuda`, `rocm`, …, `cpu`.
        used: index of the device that ran the work, None for a host.
    """
    held = raw.metadata
    job = held.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    titles = raw.descriptions.text.take(raw.descriptions.key.where(lambda key: key == "process_name")).tolist()
    versions = {name: str(held[key]) for key, name in _VERSIONS.items() if key in held}
    if "nccl_version" in job:
        versions["nccl"] = str(job["nccl_version"])
    return Origin(
        path=str(raw.path),
        device=device,
        device_name="" if used is None else _device_name(held.get("deviceProperties"), used),
        recorded_rank=_integer(job.get("rank")),
        world_size=_integer(job.get("world_size")),
        groups=tuple(_groups(job.get("pg_config"))),
        group_count=_integer(job.get("pg_count")),
        host=str(held.get("host_name", "")) or identity.host,
        processes=tuple(dict.fromkeys(titles)),
        versions=versions,
        placement=dict(identity.placement),
        stage=identity.stage,
        settings=tuple(key for key in SETTINGS if held.get(key)),
    )


def _device_name(properties: object, used: int) -> str:
    """Name of the device that was used; the list holds all that the process could see."""
    if not isinstance(properties, list):
        return ""
    described = [entry for entry in properties if isinstance(entry, dict)]
    chosen = [entry for entry in described if entry.get("id") == used] or described
    names = {str(entry.get("name", "")) for entry in chosen}
    return names.pop() if len(names) == 1 else ""


def _groups(config: object) -> Iterable[ProcessGroup]:
    """Process groups; torch writes a list, Kineto on demand writes ranks as text, old files an object by name."""
    entries = config.values() if isinstance(config, dict) else config if isinstance(config, list) else []
    for entry in entries:
        if isinstance(entry, dict):
            ranks = read_ranks(entry.get("ranks"))
            size = _integer(entry.get("pg_size")) or len(ranks)
            yield ProcessGroup(str(entry.get("pg_name", "")), str(entry.get("pg_desc", "")), size, ranks)


def read_ranks(stated: object) -> tuple[int, ...]:
    """Ranks of a list or of its text; none where the text is shortened or no list."""
    if isinstance(stated, str):
        if "..." in stated:
            return ()
        try:
            stated = ast.literal_eval(stated)
        except (ValueError, SyntaxError):
            return ()
    if not isinstance(stated, list):
        return ()
    return tuple(rank for rank in stated if isinstance(rank, int))


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
