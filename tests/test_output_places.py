"""Where a command writes: a place that cannot be written is told in one line, before the work."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from analyzer.cli import commands, output
from analyzer.errors import UsageError
from analyzer.plugins import offers
from collectors.topology import command as topology

DRAWN = Path(__file__).resolve().parents[1] / "sample_traces/drawn"
FILLED = {
    "compare": ("nowhere", "nowhere"),
    "diagnose": ("nowhere",),
    "gate": ("nowhere", "--baseline", "nowhere.json"),
    "hardware": ("nowhere",),
    "pd": ("--prefill", "nowhere", "--decode", "nowhere"),
    "routing": (__file__, "--workers", "2"),
    "sweep": ("nowhere",),
    "timeline": ("nowhere",),
}
"""What each command needs besides -o. The runs are not there: the place is told first."""
WRITERS = {
    name: command
    for name, command in offers(commands, "command").items()
    if any("-o" in option.opts for option in command.params)
}


@pytest.fixture(params=["directory", "no parent", "parent is a file", "too long", "there already"])
def place(request, tmp_path):
    (tmp_path / "file").write_text("mine")
    return {
        "directory": (tmp_path, "is a directory; name a file in it"),
        "no parent": (tmp_path / "no/out", "/no is no directory; make it, or choose another place for out"),
        "parent is a file": (tmp_path / "file/out", "/file is no directory; make it"),
        "too long": (tmp_path / ("x" * 300), "cannot be written (File name too long); choose another place"),
        "there already": (tmp_path / "file", "exists; choose another name or pass --force"),
    }[request.param]


def run(command, *words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def test_each_command_that_writes_a_file_is_tried_here():
    assert sorted(WRITERS) == sorted(FILLED)


@pytest.mark.parametrize("name", FILLED)
def test_a_place_that_cannot_be_written_is_told_before_the_work(name, place):
    out, says = place
    with pytest.raises(UsageError) as told:
        run(WRITERS[name], *FILLED[name], "-o", out)
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_force_may_stand_before_or_after_the_file(tmp_path):
    out = tmp_path / "out"
    out.write_text("old")

    @click.command()
    @output.file_options()
    def command(out, force):
        output.emit("new", out, force=force)

    for words in (["--force", "-o", out], ["-o", out, "--force"]):
        assert run(command, *words).exit_code == 0
        assert out.read_text() == "new"


def test_a_directory_without_permission_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)  # the superuser may write anywhere
    with pytest.raises(UsageError, match=r"cannot be written \(Permission denied\); choose another place"):
        output.check_place(tmp_path / "out", force=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize(
    "write",
    [
        lambda out: output.emit("text", out, force=True),
        lambda out: run(WRITERS["timeline"], DRAWN / "tp2", "-o", out, "--force"),
    ],
    ids=["a report", "a timeline"],
)
def test_a_full_disk_is_told(write):
    with pytest.raises(UsageError, match=r"cannot be written \(No space left on device\)"):
        write(Path("/dev/full"))


@pytest.mark.parametrize("option", ["--also", "--history", "--baseline"])
def test_a_gate_checks_each_file_that_it_will_write(tmp_path, option):
    out = tmp_path / "no/file"
    words = ["nowhere", option, f"json={out}" if option == "--also" else out, "--update-baseline"]
    words += [] if option == "--baseline" else ["--baseline", tmp_path / "baseline.json"]
    with pytest.raises(UsageError, match="/no is no directory; make it"):
        run(WRITERS["gate"], *words)


def test_a_topology_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    recorded = tmp_path / "matrix.txt"
    recorded.write_text("\tGPU0\tGPU1\tNUMA Affinity\nGPU0\t X \tNV4\t0\nGPU1\tNV4\t X \t0\n")
    with pytest.raises(UsageError, match="give another directory with --out"):
        run(topology, "--from", recorded, "--as", "nvidia-smi", "--host", "a", "--out", tmp_path / "file")
