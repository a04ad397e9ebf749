"""However a recording ends, it says so in one line, keeps what is there and leaves nothing running."""

import contextlib
import errno
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from collectors.torchrun.torchrun import _first_failure

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
SMALL = ["--layers", "2", "--hidden", "64", "--ffn", "96", "--vocab", "128", "--context", "32", "--steps", "4"]
PATIENCE_S = 120

torch = pytest.mark.torch
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def command(*options):
    return [sys.executable, "-m", "analyzer", "collect", *options]


def collect(*options, **how):
    return subprocess.run(
        command(*options),
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        **how,
    )


def complaint(ended):
    """The one line of the error; progress has the run's name in front."""
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("shardscope: ")]
    assert "Traceback" not in ended.stderr
    return line


def running(folder):
    """Processes, other than zombies, whose command line names the folder: the ranks and their launcher."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if words and str(folder).encode() in b" ".join(words):
                found[int(entry.name)] = words
    return found


def ranks(folder):
    return sorted(
        pid for pid, words in running(folder).items() if b"collectors.torchrun.worker" in words and b"-u" in words
    )


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextlib.contextmanager
def recording(out):
    """A run of two ranks in the middle of its profiled rounds, of which there are far more than anyone waits for."""
    line = command("dp", "--degrees", "2", "--out", str(out), "--rounds", "150", "--warmup", "0", *SMALL)
    process = subprocess.Popen(
        line, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        seen = []
        for text in process.stderr:
            seen.append(text)
            if "profiling" in text:
                break
        assert "profiling" in "".join(seen[-1:]), seen
        time.sleep(0.5)
        yield process
    finally:
        process.kill()
        process.communicate()


def traces(folder):
    found = sorted(folder.glob("rank*.pt.trace.json.gz"))
    for path in found:
        with gzip.open(path) as trace:
            json.load(trace)
    return [path.name.split(".")[0] for path in found]


@torch
@needs_torch
def test_a_killed_rank_is_named_and_the_other_keeps_its_trace(tmp_path):
    with recording(tmp_path) as process:
        os.kill(ranks(tmp_path)[1], signal.SIGKILL)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
    assert "was killed by SIGKILL" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert len(traces(tmp_path / "dp2")) == 1
    assert running(tmp_path) == {}


@torch
@needs_torch
def test_ctrl_c_keeps_the_traces_of_all_ranks(tmp_path):
    with recording(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
    assert traces(tmp_path / "dp2") == ["rank0", "rank1"]
    assert json.loads((tmp_path / "dp2" / "run.json").read_text())["complete"] is False
    assert running(tmp_path) == {}


@torch
@needs_torch
@pytest.mark.slow
def test_ranks_end_when_the_command_is_killed(tmp_path):
    with recording(tmp_path) as process:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: running(tmp_path) == {})


@torch
@needs_torch
def test_a_busy_port_is_told_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        ended = collect("tp", "--degrees", "2", "--out", str(tmp_path / "runs"), "--rdzv-endpoint", f"127.0.0.1:{port}")
    assert ended.returncode == 2
    assert f"port {port} of 127.0.0.1 cannot be listened on" in complaint(ended)
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True, check=False
        )
        if shutil.which("mount")
        else None
    )
    if mounted is None or mounted.returncode:
        pytest.skip("mounting a tmpfs needs root; the file size limit is tested instead")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@torch
@needs_torch
def test_a_full_disk_is_told_before_the_trace_is_recorded(small_disk):
    ended = collect("dp", "--degrees", "1", "--out", str(small_disk), "--rounds", "8", "--warmup", "0", *SMALL)
    assert ended.returncode == 2
    assert "No space left on device" not in complaint(ended)
    assert "traces need about" in complaint(ended)
    assert "64.0 KiB are free" in complaint(ended)
    assert traces(small_disk / "dp1") == []


@torch
@needs_torch
def test_a_trace_that_cannot_be_written_leaves_no_part_of_it(tmp_path):
    # As on a full disk, but found out only while writing: no file may grow beyond 20 KiB.
    ended = collect(
        "dp",
        "--degrees",
        "1",
        "--out",
        str(tmp_path),
        "--rounds",
        "8",
        "--warmup",
        "0",
        *SMALL,
        preexec_fn=_no_large_files,
    )
    assert ended.returncode == 2
    assert "torch could not write the whole trace: no room, or a limit on file size" in complaint(ended)
    assert list((tmp_path / "dp1").glob("rank*")) == []


@torch
@needs_torch
def test_a_disk_that_fills_up_while_the_trace_is_packed_leaves_no_part_of_it(tmp_path, monkeypatch):
    from collectors.workloads import profiler

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(profiler.shutil, "copyfileobj", full)
    with pytest.raises(OSError, match=r"No space left on device: .*rank0.json.gz"):
        profiler._export(lambda plain: Path(plain).write_text("{}"), tmp_path / "rank0.json.gz")
    assert list(tmp_path.iterdir()) == []


def _no_large_files():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 10, 20 << 10))


@pytest.fixture
def an_old_run(tmp_path):
    folder = tmp_path / "tp2"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "notes.txt").write_text("mine")
    return folder


@torch
@needs_torch
def test_a_run_that_is_there_is_not_overwritten(an_old_run):
    ended = collect("tp", "--degrees", "2", "--out", str(an_old_run.parent))
    assert ended.returncode == 2
    assert "holds a run (1 file): give another --out, or --force to replace it" in complaint(ended)
    assert (an_old_run / "run.json").read_text() == "{}"


def test_force_replaces_the_run_and_nothing_else(an_old_run):
    from collectors.torchrun.options import _clear

    _clear(an_old_run, force=True)
    assert sorted(path.name for path in an_old_run.iterdir()) == ["notes.txt"]


@torch
@needs_torch
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["tp", "--degrees", "3"], "tp3: --heads 8 is not a multiple of 3"),
        (["cp", "--degrees", "2", "--context", "30"], "cp2: --context 30 is not a multiple of 4"),
        (["pd", "--degrees", "3+1"], "pd3+1: --batch 4 is not a multiple of 3"),
        (
            ["pp", "--nnodes", "2", "--degrees", "2"],
            "2 nodes need a place to meet: --rdzv-endpoint HOST:PORT of node 0",
        ),
        (
            ["dp", "--degrees", "2", "--heads", "6", "--kv-heads", "4"],
            "--hidden 256 over --heads 6 is not an even number",
        ),
    ],
)
def test_what_cannot_be_split_is_told_before_anything_starts(options, told, tmp_path):
    ended = collect(*options, "--out", str(tmp_path / "runs"))
    assert ended.returncode == 2
    assert told in complaint(ended)
    assert not (tmp_path / "runs").exists()


def test_the_killed_rank_is_the_cause_and_the_torn_connection_is_not():
    torn = {"rank": 0, "exitcode": 1, "message": "RuntimeError: Connection closed by peer", "time_ns": 5}
    killed = {"rank": 3, "exitcode": -9, "message": "", "time_ns": None}
    assert _first_failure([torn, killed]) == "rank 3 was killed by SIGKILL"


def test_the_earliest_error_is_the_cause():
    late = {"rank": 0, "exitcode": 1, "message": "RuntimeError: Connection closed by peer", "time_ns": 9}
    early = {"rank": 1, "exitcode": 1, "message": "OSError: no room", "time_ns": 5}
    assert _first_failure([late, early]) == "rank 1: OSError: no room"


def test_help_of_collect_imports_no_torch():
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "analyzer", "collect", "--help"],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert {"torch", "numpy"} & imported == set()
    assert "Record tensor parallelism." in ended.stdout


def test_without_torch_the_command_says_what_to_install(tmp_path):
    program = (
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "from analyzer.__main__ import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "collect", "tp", "--out", str(tmp_path)],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == "shardscope: collect needs torch: pip install 'shardscope[collect]'\n"
