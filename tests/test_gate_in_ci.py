"""The gate as CI runs it: in a repository, from the page, from the action, from GitLab."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from gate_workload import record

from analyzer.__main__ import shardscope
from analyzer.errors import ShardscopeError

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "gate-in-ci.md").read_text(encoding="utf-8")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
SCRIPT = ROOT / "tests" / "gate_in_git.sh"


def test_a_gate_in_a_scratch_repository():
    done = subprocess.run(
        ["bash", SCRIPT], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("== done\n")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install '.[collect]'"
)
def test_a_gate_on_a_recorded_workload():
    done = subprocess.run(
        ["bash", SCRIPT, "--collect"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def job(tmp_path):
    """A CI job's folder: runs, slow runs, and `shardscope` on the path."""
    for folder, kernel_us in (("runs", 300), ("slow", 345)):
        for repeat in (1, 2, 3):
            record(tmp_path / folder / str(repeat), {"kernel_us": kernel_us, "all_reduces": 1}, repeat)
    shim = tmp_path / "bin" / "shardscope"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m analyzer "$@"\n')
    shim.chmod(0o755)
    return tmp_path


def run(job, script, **variables):
    environment = {
        **os.environ,
        "PATH": f"{job / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
        **variables,
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=job, env=environment, capture_output=True, text=True, check=False
    )


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def call(told):
    """A command line of the page in this process, its globs expanded as a shell does: exit code and output."""
    program, *words = [path for word in shlex.split(told) for path in (sorted(map(str, Path().glob(word))) or [word])]
    assert program == "shardscope"
    try:
        done = CliRunner().invoke(shardscope, words, catch_exceptions=False)
    except ShardscopeError:
        return 2, ""
    return done.exit_code, done.stdout


def test_the_commands_of_the_page_do_what_the_page_says(job, monkeypatch):
    monkeypatch.chdir(job)
    printed = []
    for line in "".join(blocks("sh")).splitlines():
        told, _, comment = line.partition("   # exit code ")
        code, output = call(told)
        assert (told, code) == (told, int(comment or 0))
        printed.append(output)
    assert blocks("text") == [output for output in printed if output.startswith("regression")][:1]


def test_the_settings_of_the_page_are_read(job, monkeypatch):
    monkeypatch.chdir(job)
    (job / "shardscope.toml").write_text(blocks("toml")[0])
    call("shardscope gate runs/* --baseline b.json --update-baseline")
    code, output = call("shardscope gate slow/* --baseline b.json")
    assert code == 1
    assert "decode.movement" in output
    assert "! ignore Q301 is stale" in output


def test_the_gitlab_job_leaves_its_reports(job, monkeypatch):
    monkeypatch.chdir(job)
    snippet = next(block for block in blocks("yaml") if block.startswith("gate:"))
    line = next(line for line in snippet.splitlines() if "shardscope gate" in line).strip().removeprefix("- ")
    call("shardscope gate slow/* --baseline baseline.json --update-baseline")
    assert call(line)[0] == 0
    assert ET.parse(job / "gate.xml").getroot().get("failures") == "0"
    assert (job / "gate.md").exists()


def gate_step():
    """The variables and the script of the action's second step."""
    step = ACTION.split("- name: Gate\n")[1]
    variables = dict(re.findall(r"^ {8}([A-Z_]+): \$\{\{ inputs\.([a-z-]+) \}\}$", step, re.MULTILINE))
    script = "\n".join(line[8:] for line in step.split("run: |\n")[1].splitlines())
    return variables, script


def defaults():
    inputs = ACTION.split("inputs:\n")[1].split("outputs:\n")[0]
    names = re.findall(r"^ {2}([a-z-]+):$", inputs, re.MULTILINE)
    parts = re.split(r"^ {2}[a-z-]+:$", inputs, flags=re.MULTILINE)[1:]
    found = [re.search(r"^ {4}default: \"?([^\"\n]*)\"?$", part, re.MULTILINE) for part in parts]
    return {name: match[1] if match else None for name, match in zip(names, found, strict=True)}


def act(job, **inputs):
    variables, script = gate_step()
    given = {**defaults(), **inputs}
    files = {"RUNNER_TEMP": str(job), "GITHUB_STEP_SUMMARY": str(job / "summary"), "GITHUB_OUTPUT": str(job / "output")}
    (job / "output").unlink(missing_ok=True)
    return run(job, script, GITHUB_SHA="1a2b3c4", **files, **{name: given[word] for name, word in variables.items()})


def test_the_action_annotates_summarises_and_fails(job):
    run(job, "shardscope gate runs/* --baseline baseline.json --update-baseline")
    done = act(job, runs="slow/*", junit="gate.xml", history="gates.jsonl")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error title=gate::regression in decode.step (3 runs against 3)\n")
    assert (job / "summary").read_text().startswith("### ❌ regression in decode.step")
    assert (job / "output").read_text() == f"report={job}/shardscope-gate.md\nexit-code=1\n"
    assert '"label":"1a2b3c4"' in (job / "gates.jsonl").read_text()
    assert act(job, runs="runs/*", junit="gate.xml").returncode == 0
    assert act(job, runs="runs/1", strict="true").returncode == 1


def test_the_action_says_when_there_is_no_baseline(job):
    done = act(job, runs="runs/*", baseline="none.json")
    assert done.returncode == 2
    assert "none.json is not there; write the first baseline with --update-baseline" in done.stderr
    assert (job / "output").read_text() == "exit-code=2\n"


def test_no_input_is_pasted_into_a_script():
    for script in re.findall(r"run: \|\n((?: {8}.*\n)+)", ACTION):
        assert "${{" not in script


def test_every_input_is_used_and_every_used_one_is_declared():
    assert set(re.findall(r"inputs\.([a-z-]+)", ACTION)) == set(defaults())
    assert all(f"`{name}`" in PAGE for name in defaults())
