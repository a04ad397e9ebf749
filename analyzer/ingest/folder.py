"""Which files of what the user named may be traces."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import RunNotFoundError
from analyzer.ingest.filenames import FileIdentity, FileKind, identity
from analyzer.ingest.hardware import NAME as HARDWARE
from analyzer.ingest.manifest import NAME as MANIFEST
from analyzer.ingest.scrapes import AFTER, BEFORE
from analyzer.ingest.topology import NAME as TOPOLOGY
from analyzer.model.trace import Note
from analyzer.units import count

SERVER_ARGS = "server_args.json"
SUFFIXES = (".json", ".json.gz")
REPORTS = (MANIFEST, SERVER_ARGS, "server_info.json", TOPOLOGY)
SHOWN_NAMES = 3
_WHOLE, _REPEATED = "msprof_", "task_time_"
"""MindSpore writes the tasks of a device twice."""
_MERGED_BESIDE = "a merged trace beside those of its ranks was left out"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What lies where the user pointed.

    Attributes:
        files: may be traces, in order of path.
        named: whether the user named the one file that there is.
        manifest: `run.json`, None where there is none.
        server_args: `server_args.json`, None where there is none.
        topology: `topology.json`, None where there is none.
        hardware: `hardware.toml`, None where there is none.
        metrics: pages of metrics before and after the load, None where not both are there.
        notes: what was left out by its name.
    """

    files: tuple[tuple[Path, FileIdentity], ...]
    named: bool
    manifest: Path | None
    server_args: Path | None
    topology: Path | None
    hardware: Path | None
    metrics: tuple[Path, Path] | None
    notes: tuple[Note, ...]


def find(places: tuple[str, ...]) -> RunFiles:
    """Files of directories (searched to their leaves), files and globs.

    Raises:
        RunNotFoundError: a place that is not there, or holds no file that could be a trace.
    """
    paths = sorted({path for pattern in places for path in _expand(pattern)})
    named = len(paths) == 1 and Path(places[0]).is_file()
    known = [(path, identity(path)) for path in paths]
    kept = known if named else [(path, stated) for path, stated in known if _may_be_trace(path, stated)]
    if not kept:
        names = ", ".join([*(path.name for path in paths[:SHOWN_NAMES]), *(["…"] if len(paths) > SHOWN_NAMES else [])])
        there = f"{count(len(paths), 'file')} ({names})" if paths else "no files"
        raise RunNotFoundError(
            f"{', '.join(places)}: no trace among {there}; traces end in .pt.trace.json or .json, plain or .gz"
        )
    notes = []
    whole = {path.parent for path, _ in kept if path.name.startswith(_WHOLE)}
    repeated = [entry for entry in kept if entry[0].name.startswith(_REPEATED) and entry[0].parent in whole]
    if repeated:
        kept = [entry for entry in kept if entry not in repeated]
        notes.append(
            Note("task_time files, which repeat what the msprof files beside them hold, were left out", len(repeated))
        )
    merged = [entry for entry in kept if entry[1].kind is FileKind.MERGED]
    if merged and len(merged) < len(kept):
        kept = [entry for entry in kept if entry[1].kind is not FileKind.MERGED]
        notes.append(Note(_MERGED_BESIDE, len(merged)))
    folders = dict.fromkeys(folder for path, _ in kept for folder in (path.parent, path.parent.parent))
    manifest, server_args, topology = (_beside(folders, name) for name in (MANIFEST, SERVER_ARGS, TOPOLOGY))
    hardware = _beside(folders, HARDWARE)
    before, after = _beside(folders, BEFORE), _beside(folders, AFTER)
    metrics = (before, after) if before and after else None
    return RunFiles(tuple(kept), named, manifest, server_args, topology, hardware, metrics, tuple(notes))


def _expand(pattern: str) -> Iterator[Path]:
    path = Path(pattern)
    if path.is_dir():
        yield from (entry for entry in path.rglob("*") if entry.is_file() and not _is_hidden(entry, path))
    elif path.is_file():
        yield path
    else:
        matched = [Path(entry) for entry in glob.glob(pattern, recursive=True)]  # noqa: PTH207 (Path.glob takes no absolute pattern)
        if not matched:
            raise RunNotFoundError(f"{pattern}: no such file or directory, and no file matches it as a pattern")
        for entry in matched:
            yield from _expand(str(entry))


def _is_hidden(entry: Path, root: Path) -> bool:
    return any(name.startswith(".") for name in entry.relative_to(root).parts)


def _may_be_trace(path: Path, stated: FileIdentity) -> bool:
    return stated.kind.may_be_trace and path.name.endswith(SUFFIXES) and path.name not in REPORTS


def _beside(folders: dict[Path, None], name: str) -> Path | None:
    paths = [folder / name for folder in folders if (folder / name).is_file()]
    return paths[0] if paths else None
