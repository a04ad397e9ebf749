"""What torchrun starts, once a rank: join the job, record the workload, say what went wrong.

    python -m torch.distributed.run … -m collectors.torchrun.worker JOB

JOB is the JSON of `_settings.Job`. Rank 0 tells how far it is on stdout, a line a step.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, TypeVar

import click
import torch
import torch.distributed as dist

from analyzer.errors import UsageError
from analyzer.units import count, duration, size
from collectors.torchrun.launch import OWN_TIME, when_orphaned
from collectors.workloads import manifest
from collectors.workloads.profiler import Recorder
from collectors.workloads.settings import Job, JobSettings
from collectors.workloads.workload import RankPlace, RankWorkload

# A peer that says nothing for this long is taken for dead. Far above any step of a model that is meant to be small.
PEER_TIMEOUT = timedelta(seconds=300)
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"  # torchrun's own: where a rank leaves its error


T = TypeVar("T")
Entries = dict[str, Any]  # of run.json


class Stopped(BaseException):
    """Asked to stop: keep what is there. Not an Exception, so that nothing on the way takes it for a fault."""


def join(settings: JobSettings) -> RankPlace:
    """Become a rank of the job that torchrun describes in the environment.

    Raises:
        UsageError: fewer GPUs than ranks on this node.
    """
    local, on_node = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if settings.device == "cuda" and gpus < on_node:
        raise UsageError(
            f"{count(on_node, 'rank')} on a node with {count(gpus, 'GPU')}: NCCL needs a GPU a rank; --device cpu"
        )
    on_gpu = settings.device == "cuda" or (settings.device == "auto" and gpus >= on_node)
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    usual = "bfloat16" if on_gpu else "float32"
    dtype = getattr(torch, usual if settings.dtype == "auto" else settings.dtype)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=PEER_TIMEOUT, device_id=device if on_gpu else None)
    return RankPlace(rank=dist.get_rank(), world=dist.get_world_size(), device=device, dtype=dtype)


def record(job: Job, place: RankPlace) -> None:
    """Run the workload, leave its trace and, from rank 0, `run.json` in the job's folder."""
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    workload: RankWorkload = import_module(f"collectors.workloads.{job.settings.workload}").workload(
        job.settings, place
    )
    recorder = Recorder(workload, folder, place.rank)
    entries = _entries(job, place, workload)
    _say(place, f"warm-up: {count(job.settings.warmup, 'round')}")
    recorder.warm_up()
    plain = _gathered(place, recorder.reference().taken_ns)
    entries["reference"] = manifest.timed(plain)
    _say(place, f"{count(job.settings.rounds, 'round')} without the profiler: {_medians(entries['reference'])}")
    recorder.rehearse()
    predicted = sum(_gathered(place, recorder.predicted_bytes))
    recorder.check_room(predicted)
    entries["profile"] |= {"predicted_bytes": predicted}
    _say(place, f"trace size to expect: {size(predicted)} over {count(place.world, 'rank')}, gzipped")
    _write(place, folder, entries)
    _say(place, f"profiling {count(job.settings.rounds, 'round')}")
    profiled = _gathered(place, recorder.profile().taken_ns)
    written = sum(_gathered(place, recorder.trace.stat().st_size if recorder.trace else 0))
    entries["profile"] |= {"trace_bytes": written}
    entries["reference"] = manifest.timed(plain, profiled)
    entries |= workload.summary(_gathered(place, workload.facts())) | {"complete": True}
    _write(place, folder, entries)
    inflation = entries["reference"]["inflation"]
    _say(place, f"profiled: {size(written)}; steps take {inflation:.2f} times as long as without the profiler")


def _entries(job: Job, place: RankPlace, workload: RankWorkload) -> Entries:
    entries = manifest.described(job.settings, workload.layout(), job.command)
    nodes = _gathered(place, socket.gethostname())
    dtype = str(place.dtype).removeprefix("torch.")
    facts = {
        "dtype": dtype,
        "device": place.device.type,
        "backend": dist.get_backend(),
        "threads": torch.get_num_threads(),
    }
    entries["settings"] |= facts
    return entries | {
        "groups": workload.groups(),
        "topology": {"nodes": {str(rank): node for rank, node in enumerate(nodes)}},
    }


def _gathered(place: RankPlace, mine: T) -> list[T]:
    """`mine` of every rank, on every rank."""
    everyone: list[T] = [mine] * place.world
    dist.all_gather_object(everyone, mine)
    return everyone


def _medians(reference: dict[str, int | float]) -> str:
    phases = (phase for phase in ("prefill", "decode") if f"{phase}_median_ns" in reference)
    return ", ".join(f"{phase} {duration(reference[f'{phase}_median_ns'])}" for phase in phases)


def _write(place: RankPlace, folder: Path, entries: Entries) -> None:
    if place.rank == 0:
        manifest.write(folder, entries)


def _say(place: RankPlace, line: str) -> None:
    if place.rank == 0:
        click.echo(line)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    raise Stopped(signal.Signals(number).name)


def run(job: Job) -> NoReturn:
    """Join, record, and end this process."""
    record(job, join(job.settings))
    _end(0)


def _end(code: int) -> NoReturn:
    """Leave without the interpreter's farewell: threads of a process group can abort it, or keep it from ending."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _leave(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The excepthook of a rank: its error goes where torchrun looks for it, with the time: causes come first."""
    path = os.environ.get(ERROR_FILE)
    if path and not isinstance(error, Stopped):
        message = f"{kind.__name__}: {str(error).strip().partition(chr(10))[0]}"
        left = {"message": message, "timestamp": int(time.time()), OWN_TIME: time.time_ns()}
        Path(path).write_text(json.dumps(left), encoding="utf-8")
    if not isinstance(error, Stopped):
        sys.__excepthook__(kind, error, trace)
    _end(1)


def main() -> None:
    """Be one rank; exit code 0, or 1 with the error left for the launcher."""
    sys.excepthook = _leave
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)
    when_orphaned(partial(os._exit, 1))
    run(Job.from_json(sys.argv[1]))


if __name__ == "__main__":
    main()
