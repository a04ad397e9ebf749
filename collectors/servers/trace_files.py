"""Files that a profiler writes elsewhere: waiting until they are whole, and taking them into the run directory."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from analyzer import units
from analyzer.errors import RunNotFoundError, ShardscopeError, UsageError

QUIET_S = 2.0  # a file whose size stands still for so long is looked into; a writer of JSON never pauses as long
POLL_S = 0.25
_READ_BYTES = 1 << 20
_TABLE_SUFFIX = ".txt"  # summary tables that vLLM writes beside its traces

WORKLOAD = "serve"  # in the run.json of a collection from servers

Sizes = dict[Path, tuple[int, int]]


def prepare(out: Path, *, force: bool) -> None:
    """Make the run directory; with `force`, the traces that an earlier collection copied there are removed.

    Raises:
        UsageError: it is a file, or holds something and `force` is not set.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"{out} is a file; give a directory") from error
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror}; give a directory that can be written") from error
    if not force and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; give a new directory, or pass --force to write into it")
    if _is_ours(out / "run.json"):
        for path in sizes(out):
            path.unlink()


def _is_ours(manifest: Path) -> bool:
    """Whether a collection from servers wrote this `run.json`: then the traces beside it are copies."""
    try:
        entries = json.loads(manifest.read_text())
    except (OSError, ValueError):
        return False
    workload = entries.get("workload") if isinstance(entries, dict) else None
    return (workload.get("name") if isinstance(workload, dict) else workload) == WORKLOAD


def sizes(folder: Path) -> Sizes:
    """Size and time of change (ns) of each trace and table right in a folder; empty where it is not there."""
    states: Sizes = {}
    for path in folder.glob("*") if folder.is_dir() else ():
        if ".json" in path.name or path.suffix == _TABLE_SUFFIX:
            state = path.stat()
            states[path] = (state.st_size, state.st_mtime_ns)
    return states


def settled(
    folder: Path, before: Sizes, *, expected: int, timeout_s: float, on_poll: Callable[[int], None] = lambda _: None
) -> list[Path]:
    """New and changed files once they are whole: sizes stand still, gzip ends, JSON closes.

    Args:
        folder: where the profiler writes.
        before: what was there before it began.
        expected: number of traces to wait for; 1 where unknown.
        timeout_s: how long to wait.
        on_poll: called with the bytes that are there.

    Raises:
        RunNotFoundError: no trace came in time, or one is not whole.
    """
    deadline, quiet_since, last = time.monotonic() + timeout_s, time.monotonic(), Sizes()
    while True:
        now = {path: state for path, state in sizes(folder).items() if before.get(path) != state}
        on_poll(sum(size for size, _ in now.values()))
        if now != last:
            last, quiet_since = now, time.monotonic()
        elif time.monotonic() - quiet_since >= QUIET_S and _traces(now) >= expected:
            if all(map(is_whole, now)):
                return sorted(now)
            quiet_since = time.monotonic()  # looking into a large file takes its time: not at every poll
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    if not _traces(last):
        raise RunNotFoundError(_nothing_came(folder, timeout_s))
    if cut := sorted(path.name for path in last if not is_whole(path)):
        raise RunNotFoundError(
            f"{folder / cut[0]} is not whole after {timeout_s:g} s ({units.size(last[folder / cut[0]][0])}); "
            "raise --timeout, profile fewer --steps, or start the server without Python stacks"
        )
    return sorted(last)


def whole(folder: Path, before: Sizes) -> list[Path]:
    """New and changed files that are whole now."""
    return sorted(path for path, state in sizes(folder).items() if before.get(path) != state and is_whole(path))


def _traces(states: Sizes) -> int:
    """Traces of workers; the front end's is not waited for, since not every start of a server writes one."""
    return sum(path.suffix != _TABLE_SUFFIX and ".async_llm." not in path.name for path in states)


def _nothing_came(folder: Path, timeout_s: float) -> str:
    if not folder.is_dir():
        return (
            f"{folder} is not here; if the server runs on another machine, pass --trace-dir HOST:{folder} "
            "and copy the files yourself"
        )
    return (
        f"no trace came to {folder} within {timeout_s:g} s; look whether the server writes elsewhere "
        "(pass that as --trace-dir) or its log tells why the profiler wrote nothing"
    )


def is_whole(path: Path) -> bool:
    """Whether a file has been written to its end: a gzip file has its trailer, a JSON file its closing bracket."""
    if path.suffix == _TABLE_SUFFIX:
        return True
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            tail = b""
            while block := file.read(_READ_BYTES):
                tail = (tail + block)[-64:]
    except (EOFError, OSError, zlib.error):
        return False
    return tail.rstrip().endswith((b"}", b"]"))


def gather(files: Sequence[Path], out: Path) -> list[Path]:
    """The files, in the run directory as well: linked where it is on the same file system, else copied.

    Raises:
        ShardscopeError: the disk is full, or a file cannot be read.
    """
    return [_taken(file, out / file.name) for file in files]


def _taken(file: Path, target: Path) -> Path:
    if target.exists() and target.samefile(file):
        return target
    target.unlink(missing_ok=True)
    try:
        os.link(file, target)
    except OSError:  # another file system, or the file is another user's
        try:
            shutil.copy2(file, target)
        except OSError as error:
            target.unlink(missing_ok=True)
            raise _not_taken(file, target, error) from error
    return target


def _not_taken(file: Path, target: Path, error: OSError) -> ShardscopeError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return ShardscopeError(
            f"no room for {file.name} ({units.size(file.stat().st_size)}) in {target.parent}; "
            f"it is still in {file.parent}: free some space, or copy it elsewhere"
        )
    return ShardscopeError(f"{file} cannot be taken into {target.parent}: {error.strerror}; copy it yourself")
