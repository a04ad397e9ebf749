"""Every shardscope command in the README and the docs runs, and prints what is shown."""

import doctest
import io
import re
import shlex
import sys
from itertools import dropwhile
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from analyzer.__main__ import shardscope
from analyzer.errors import ShardscopeError
from analyzer.sketch import sketch

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = ("vllm", "curl", "make", "uv", "pip", "cd", "git", "python", "docker")
"""Programs whose commands need a server, a network or an environment; `make` is run by CI itself."""
NEEDS_A_SERVER = ("collect vllm", "collect sglang", "collect topology", "diagnose /tmp/traces", "diagnose run")
"""Commands whose input a server makes: their options are read, and that is all that can be tried here."""
SETTING = re.compile(r"[A-Z_]+=")

HEADINGS = {"What it measures", "Why it costs", "What to do", "When it is wrong", "Sources"}


def _blocks():
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            joined = re.sub(r"\\\n\s*", "", block)
            for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield pytest.param(command.split("#")[0].strip(), shown, id=f"{page.name}: {command[:60]}")


@pytest.mark.parametrize(("command", "shown"), list(_blocks()))
def test_a_shown_command_does_what_is_shown(command, shown, monkeypatch):
    words = list(dropwhile(SETTING.match, shlex.split(command)))
    if words[0] in ELSEWHERE:
        assert not shown.strip()
        return
    assert words[0] == "shardscope"
    if " ".join(words[1:]).startswith(NEEDS_A_SERVER):
        assert not shown.strip()
        options_are_read(shardscope, words[1:])
        return
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


def options_are_read(command, words):
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words[0])
        words = words[1:]
    command.make_context("shardscope", list(words)).close()


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text()], ids=lambda page: page.name)
def test_a_shown_session_prints_what_is_shown(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    session = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    told = io.StringIO()
    assert doctest.DocTestRunner(verbose=False).run(session, out=told.write).failed == 0, told.getvalue()


def test_the_rule_shown_is_a_rule_whose_examples_hold(monkeypatch):
    (source,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/write-a-rule.md").read_text(), re.DOTALL)
    module = ModuleType("rules.q690_long_gaps")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "q690_long_gaps.py", "exec"), module.__dict__)
    shown = module.check
    assert (shown.code, shown.name, shown.question) == ("Q690", "long-gaps", 6)
    assert {line[3:] for line in shown.page.splitlines() if line.startswith("## ")} == HEADINGS
    assert [bool(list(shown.check(sketch.read(example.drawing)))) for example in shown.examples] == [True, False]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("shardscope exp", "explain"), ("shardscope diagnose --for", "--format"), ("shardscope collect vl", "vllm")],
)
def test_a_shell_completes_commands_and_options(typed, offered):
    words = typed.split()
    found = ShellComplete(shardscope, {}, "shardscope", "_SHARDSCOPE_COMPLETE").get_completions(words[1:-1], words[-1])
    assert offered in [item.value for item in found]


def test_the_first_screen_has_the_two_commands():
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:30])
    assert "make demo" in first
    assert "make test" in first


def test_the_readme_names_every_command():
    text = (ROOT / "README.md").read_text()
    for name in shardscope.list_commands(None):
        assert f"shardscope {name}" in text, name
