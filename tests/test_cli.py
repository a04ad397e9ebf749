"""Exit codes, one-line errors, no overwrite."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from analyzer import __main__

ROOT = Path(__file__).resolve().parents[1]
DRAWN = ROOT / "sample_traces" / "drawn"


def _run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "analyzer", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_a_diagnosis_goes_to_stdout_alone():
    done = _run("diagnose", DRAWN / "tp2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_json_holds_the_schema_and_sums_to_the_window():
    report = json.loads(_run("diagnose", DRAWN / "tp2", "--format", "json").stdout)
    assert report["schema"] == 1
    for rank in report["breakdown"]["per_rank"]:
        assert (
            rank["compute_ns"] + rank["communication_ns"] + rank["movement_ns"] + rank["sync_ns"] == rank["window_ns"]
        )
        assert sum(rank["sync_causes"].values()) == rank["sync_ns"]
    assert [answer["id"] for answer in report["questions"]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("info", 1)])
def test_fail_on_trips_at_its_level(level, code):
    assert _run("diagnose", DRAWN / "host_copies", "--fail-on", level).returncode == code


@pytest.mark.parametrize("form", ["text", "json"])
def test_fail_on_trips_alike_in_every_format(form):
    assert _run("diagnose", DRAWN / "host_copies", "--fail-on", "warning", "--format", form).returncode == 1


def test_a_healthy_run_has_no_warnings():
    done = _run("diagnose", DRAWN / "healthy", "--fail-on", "info")
    assert done.returncode == 0
    assert "No findings: " in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["diagnose", "nowhere"], "nowhere: no such file or directory"),
        (["diagnose", "README.md"], "which is no JSON; pass a trace"),
        (["explain", "Q999"], "no rule 'Q999'"),
        (["diagnose", "x" * 5000], "File name too long"),
        (["diagnose", "a\n\x1b[31mb"], "a\ufffd\ufffd[31mb: no such file"),
    ],
)
def test_a_users_error_is_one_line_and_exit_2(words, says):
    done = _run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_a_closed_stdout_is_one_line_and_exit_2():
    command = f"exec {sys.executable} -m analyzer diagnose {DRAWN / 'tp2'} >&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "shardscope: stdout is closed; send it to a file or to /dev/null\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_directory_whose_name_is_no_utf_8_is_diagnosed(tmp_path, form):
    named = os.fsencode(tmp_path) + b"/caf\xe9"
    shutil.copytree(os.fsencode(DRAWN / "tp2"), named)
    done = _run("diagnose", os.fsdecode(named), "--format", form)
    assert (done.returncode, done.stderr) == (0, "")
    assert "caf\ufffd" in done.stdout


def test_a_file_is_not_overwritten_unless_told(tmp_path):
    out = tmp_path / "report.json"
    first = _run("diagnose", DRAWN / "tp2", "--format", "json", "-o", out)
    assert (first.returncode, first.stderr) == (0, f"Wrote {out}\n")
    second = _run("diagnose", DRAWN / "tp2", "--format", "json", "-o", out)
    assert second.returncode == 2
    assert "exists; choose another name or pass --force" in second.stderr
    assert _run("diagnose", DRAWN / "tp2", "--format", "json", "-o", out, "--force").returncode == 0


def test_rules_are_listed_by_question_and_explained():
    listed = _run("rules").stdout
    assert listed.splitlines()[0] == "1 By which dimension is the workload split?"
    assert "Q301  exposed-all-reduce" in listed
    by_code, by_name = _run("explain", "q301"), _run("explain", "exposed-all-reduce")
    assert by_code.stdout == by_name.stdout
    assert by_code.stdout.startswith("# Q301 exposed-all-reduce")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("diagnose",), "Missing argument 'RUN…'; see shardscope diagnose --help"),
        (("frob",), "No such command 'frob'; see shardscope --help"),
        (
            ("collect", "tp", "--degrees", "0"),
            "Invalid value: '0' is not of the form N; see shardscope collect tp --help",
        ),
    ],
)
def test_wrong_usage_is_one_line(words, told):
    done = _run(*words)
    assert (done.returncode, done.stderr) == (2, f"shardscope: {told}\n")


def test_a_program_that_is_stopped_exits_as_shells_have_it(monkeypatch, capsys):
    def stop(**_):
        raise click.exceptions.Abort

    monkeypatch.setattr(__main__.shardscope, "main", stop)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "shardscope: stopped\n")
