"""Every shardscope command in the README and the docs runs, and prints what is shown."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.__main__ import shardscope
from analyzer.errors import ShardscopeError

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = ("vllm", "curl", "make", "uv", "pip", "cd", "git", "python", "docker")
"""Programs whose commands need a server, a network or an environment; `make` is run by CI itself."""
NEEDS_A_SERVER = ("shardscope diagnose /tmp/traces",)


def _blocks():
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            joined = re.sub(r"\\\n\s*", "", block)
            for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield pytest.param(command.split("#")[0].strip(), shown, id=f"{page.name}: {command[:60]}")


@pytest.mark.parametrize(("command", "shown"), list(_blocks()))
def test_a_shown_command_does_what_is_shown(command, shown, monkeypatch):
    words = shlex.split(command)
    if words[0] in ELSEWHERE or command in NEEDS_A_SERVER:
        assert not shown.strip()
        return
    assert words[0] == "shardscope"
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    try:
        done = CliRunner().invoke(shardscope, words[1:], catch_exceptions=False)
    except ShardscopeError as fault:
        pytest.fail(str(fault))
    assert done.exit_code == 0
    lines = shown.rstrip("\n").splitlines()
    expected = lines[:-1] if lines[-1:] == ["..."] else lines
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[: len(expected)] == expected
    assert lines[-1:] == ["..."] or not lines or len(printed) == len(expected)


def test_the_first_screen_has_the_two_commands():
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:30])
    assert "make demo" in first
    assert "make test" in first


def test_the_readme_names_every_command():
    text = (ROOT / "README.md").read_text()
    for name in shardscope.list_commands(None):
        assert f"shardscope {name}" in text, name
