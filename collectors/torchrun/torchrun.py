"""Start the ranks of a job under torchrun, and turn every way in which that can end into one line.

torchrun is a process of its own and outlives nothing: Ctrl-C is passed on to it and from it to the ranks, which write
what they have; ranks end by themselves when it or this process is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from analyzer.errors import ShardscopeError, UsageError
from analyzer.units import count
from collectors.workloads.settings import Job

INSIDE_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
LOG = "torchrun.log"
TRACES = "rank*.pt.trace.json.gz"
ASKED_TO_END = (-signal.SIGTERM, -signal.SIGINT)


class CollectError(ShardscopeError):
    """A recording that came to nothing, or to less than was asked for."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the ranks of several nodes meet.

    Attributes:
        nodes: of the job; each runs the same command.
        node: number of this one.
        endpoint: "host:port" on node 0; "" on a single node, where torchrun takes a free port of the loopback.
    """

    nodes: int = 1
    node: int = 0
    endpoint: str = ""

    def arguments(self, ranks: int) -> list[str]:
        """Options of torchrun for a job of so many ranks.

        Raises:
            UsageError: ranks that do not spread evenly, or several nodes and no place to meet.
        """
        if ranks % self.nodes:
            raise UsageError(f"{count(ranks, 'rank')} do not spread evenly over {count(self.nodes, 'node')}")
        here = ["--nproc-per-node", str(ranks // self.nodes)]
        if not self.endpoint:
            if self.nodes > 1:
                raise UsageError(f"{self.nodes} nodes need a place to meet: --rdzv-endpoint HOST:PORT of node 0")
            return ["--standalone", *here]
        host, port = self.address()
        meet = ["--master-addr", host, "--master-port", str(port)]
        return ["--nnodes", str(self.nodes), "--node-rank", str(self.node), *meet, *here]

    def address(self) -> tuple[str, int]:
        """Host and port of the endpoint.

        Raises:
            UsageError: not of that form.
        """
        host, _, port = self.endpoint.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--rdzv-endpoint is {self.endpoint!r}, not HOST:PORT")
        return host, int(port)

    def check(self) -> None:
        """See that node 0 can listen where the others will look for it.

        Raises:
            UsageError: something else listens there.
        """
        if not self.endpoint or self.node != 0:
            return
        host, port = self.address()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError as error:
                raise UsageError(
                    f"port {port} of {host} cannot be listened on ({error.strerror}): "
                    "end what holds it, or choose another with --rdzv-endpoint"
                ) from error


def inside() -> bool:
    """Whether this process is itself a rank that torchrun started."""
    return all(name in os.environ for name in INSIDE_TORCHRUN)


def world_size() -> int:
    """Ranks of the job whose rank this process is."""
    return int(os.environ["WORLD_SIZE"])


def rank() -> int:
    """Global rank that this process is."""
    return int(os.environ["RANK"])


def launch(job: Job, rendezvous: Rendezvous) -> None:
    """Run a job to its end; progress goes to stderr, traces and `run.json` to the job's folder.

    Raises:
        CollectError: a rank or torchrun failed.
        UsageError: the rendezvous cannot be.
    """
    rendezvous.check()
    folder = Path(job.folder)
    with tempfile.TemporaryDirectory() as scratch:
        report, log = Path(scratch) / "failed.json", Path(scratch) / LOG
        arguments = [*rendezvous.arguments(job.settings.ranks), "-m", "collectors.torchrun.worker", job.to_json()]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "collectors.torchrun.launch", str(report), *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(rendezvous),
                start_new_session=True,  # the terminal's Ctrl-C comes here alone, and is passed on once
                text=True,
            )
        code = _attend(process, job.settings.name)
        if code:
            cause = _cause(code, report, log)
            raise CollectError(f"{job.settings.name}: {cause}; {_kept(folder)}{_keep_log(log, folder)}")


def _environment(rendezvous: Rendezvous) -> dict[str, str]:
    """This environment, in which a rank finds this package, uses one thread and, alone on a node, the loopback."""
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(path_entry for path_entry in (here, os.environ.get("PYTHONPATH", "")) if path_entry)
    chosen = {"OMP_NUM_THREADS": "1"}
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if rendezvous.nodes == 1 and loopback:
        chosen |= {"GLOO_SOCKET_IFNAME": loopback[0], "NCCL_SOCKET_IFNAME": loopback[0]}
    return chosen | os.environ | {"PYTHONPATH": path}


def _attend(process: subprocess.Popen[str], name: str) -> int:
    """Pass progress on until torchrun ends; its exit code. Ctrl-C and SIGTERM stop it, and then end this process."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _pass_on(process, name)
        return process.wait()
    except KeyboardInterrupt:
        click.echo(f"{name}: stopping; ranks write what they have (again to give that up)", err=True)
        _stop(process)
        sys.exit(128 + signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
        if process.poll() is None:
            process.kill()
            process.wait()


def _pass_on(process: subprocess.Popen[str], name: str) -> None:
    if process.stdout is not None:
        for line in process.stdout:
            click.echo(f"{name}: {line.rstrip()}", err=True)


def _stop(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, KeyboardInterrupt):
        os.kill(process.pid, signal.SIGINT)
        process.communicate()


def _cause(code: int, report: Path, log: Path) -> str:
    """The rank that failed first and its error, or the last error that torchrun told of."""
    if code < 0:
        return f"torchrun was killed by {signal.Signals(-code).name}"
    if report.exists():
        return _first_failure(json.loads(report.read_text(encoding="utf-8")))
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line] or lines
    return (
        f"torchrun failed: {errors[-1].strip()}" if errors else f"torchrun ended with exit code {code} and said nothing"
    )


def _first_failure(failures: Sequence[dict[str, Any]]) -> str:
    """A killed rank before all, else the earliest that told its own error: the others fail for want of it."""
    for failed in failures:
        if failed["exitcode"] < 0 and failed["exitcode"] not in ASKED_TO_END:
            return f"rank {failed['rank']} was killed by {signal.Signals(-failed['exitcode']).name}"
    reported = [failed for failed in failures if failed["time_ns"] is not None]
    if reported:
        first = min(reported, key=lambda failed: int(failed["time_ns"]))
        return f"rank {first['rank']}: {first['message']}"
    first = failures[0]
    return f"rank {first['rank']} ended with exit code {first['exitcode']}"


def _kept(folder: Path) -> str:
    return f"{count(len(list(folder.glob(TRACES))), 'trace')} in {folder}"


def _keep_log(log: Path, folder: Path) -> str:
    """Put torchrun's own log beside the traces, if there is room for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, folder / LOG)
    except OSError:
        return ""
    return f", torchrun's log in {LOG}"
