"""The house keeps its own rules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("analyzer", "collectors", "rules")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MOST_LINES = 300
MOST_FUNCTION_LINES = 60
HEADINGS = ["What it measures", "Why it costs", "What to do", "When it is wrong", "Sources"]


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_file_is_one_idea(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_function_is_one_thought(path):
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"], ids=_name)
def test_a_package_file_holds_its_docstring_and_nothing_else(path):
    body = ast.parse(path.read_text()).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)


def test_every_rule_page_has_its_five_headings():
    for path in (ROOT / "rules").glob("q*.py"):
        page = ast.get_docstring(ast.parse(path.read_text()))
        assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == HEADINGS, path.name


def test_every_question_has_two_rules():
    codes = [path.name[:2] for path in (ROOT / "rules").glob("q*.py")]
    assert all(codes.count(f"q{question}") >= 2 for question in range(1, 7))


def test_help_imports_nothing_heavy():
    code = "import sys; from analyzer.__main__ import shardscope; shardscope(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "pandas", "torch", "rich", "scipy", "plotly", "pyarrow", "httpx"}


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("model/kind", "rules", "Imports only run downwards"),
        ("units", "analyzer.schema.report", "Every module of the analyzer has its place"),
        ("loose", "analyzer.schema.report", "Every module of the analyzer has its place"),
    ],
)
def test_a_contract_bites_when_it_is_broken(module, imported, contract, tmp_path):
    config = (ROOT / "pyproject.toml").read_text()
    for package in PACKAGES:
        target = tmp_path / package
        target.mkdir()
        for path in (ROOT / package).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    (tmp_path / "pyproject.toml").write_text(config)
    (tmp_path / "analyzer" / f"{module}.py").write_text(f'"""Broken on purpose."""\n\nimport {imported}\n')
    script = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout
