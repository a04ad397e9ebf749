"""Profile the steady rounds of a workload with torch.profiler, and time as many without it.

Order: warm-up rounds; the reference, timed without the profiler; one rehearsed round with it, which tells how large the
trace will be; the profiled rounds. Shapes are recorded, Python stacks are not.
"""

# mypy: warn-return-any=False

from __future__ import annotations

import errno
import gzip
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from analyzer.units import size
from collectors.workloads.workload import RankWorkload, StepClock

GZIP_LEVEL = 6
TAIL_BYTES = 64  # enough to see the brace that closes a whole trace


class Recorder:
    """One rank's recording of a workload.

    Attributes:
        workload: what runs.
        folder: that the trace goes to.
        rank: in its file name.
        trace: path of the trace, once there is one.
        predicted_bytes: size of the trace as the rehearsed round foretells it.
    """

    def __init__(self, workload: RankWorkload, folder: Path, rank: int) -> None:
        self.workload = workload
        self.folder = folder
        self.rank = rank
        self.trace: Path | None = None
        self.predicted_bytes = 0
        self.rounds_run = 0

    def warm_up(self) -> None:
        """Rounds that nobody looks at."""
        self._rounds(self.workload.settings.warmup)

    def reference(self) -> StepClock:
        """Steps timed without the profiler."""
        dist.barrier()
        return self._rounds(self.workload.settings.rounds)

    def rehearse(self) -> None:
        """Profile one round, measure its trace, throw it away."""
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "rehearsal.json.gz"
            with _profiled(path, self.workload.place.device):
                self._rounds(1)
            self.predicted_bytes = path.stat().st_size * self.workload.settings.rounds

    def check_room(self, needed_bytes: int) -> None:
        """See that traces of this size fit where they go.

        Raises:
            OSError: they do not (ENOSPC).
        """
        free = shutil.disk_usage(self.folder).free
        if free < needed_bytes:
            raise OSError(
                errno.ENOSPC, f"traces need about {size(needed_bytes)}, {size(free)} are free", str(self.folder)
            )

    def profile(self) -> StepClock:
        """Steps timed under the profiler; their trace is written even if a round is broken off."""
        self.workload.forget()
        dist.barrier()  # ranks begin together; before the profiler does, or the trace would have a collective of ours
        path = self.folder / f"rank{self.rank}.{time.time_ns()}.pt.trace.json.gz"
        with _profiled(path, self.workload.place.device):
            clock = self._rounds(self.workload.settings.rounds)
        self.trace = path
        return clock

    def _rounds(self, count: int) -> StepClock:
        """So many rounds, each with prompts of its own."""
        clock = StepClock(self.workload.place.device)
        with torch.no_grad():
            for _ in range(count):
                self.workload.round(self.rounds_run, clock)
                self.rounds_run += 1
        return clock


@contextmanager
def _profiled(path: Path, device: torch.device) -> Iterator[None]:
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == "cuda")
    recording = profile(activities=activities, record_shapes=True, with_stack=False)
    recording.start()
    try:
        yield
    finally:
        with _undisturbed():
            recording.stop()
            _export(recording.export_chrome_trace, path)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Deaf to the signals that end a rank: the launcher sends them while the survivors of a dead rank still write."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _export(write: Callable[[str], None], path: Path) -> None:
    """Write a trace, whole or not at all.

    Args:
        write: writes plain JSON to the path it is given. On a full disk torch leaves no file, or one cut short, and
            says so in its log alone.
        path: of the gzip file.

    Raises:
        OSError: no room for the plain file or for this one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "trace.json"
        write(str(plain))
        if not _is_whole(plain):
            raise OSError(
                errno.ENOSPC, "torch could not write the whole trace: no room, or a limit on file size", scratch
            )
        with plain.open("rb") as source:
            _pack(source, path)


def _is_whole(plain: Path) -> bool:
    if not plain.exists():
        return False
    with plain.open("rb") as source:
        source.seek(max(0, plain.stat().st_size - TAIL_BYTES))
        return source.read().rstrip().endswith(b"}")


def _pack(source: BinaryIO, path: Path) -> None:
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as target, gzip.GzipFile("", "wb", GZIP_LEVEL, target, mtime=0) as packed:
            shutil.copyfileobj(source, packed)
        unfinished.replace(path)
    except OSError as error:
        # A failed write does not say of which file.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)
