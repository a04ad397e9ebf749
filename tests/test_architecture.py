"""The house keeps its own rules."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from analyzer.plugins import offers

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("analyzer", "collectors", "rules")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MOST_LINES = 300
MOST_SCHEMA_LINES = 400
"""What a report says is read as one."""
MOST_FUNCTION_LINES = 60
MOST_MODULES_AT_THE_TOP = 12
MOST_MODULES = 16
MOST_MEASURES = 25
PLUGINS = ("rules", "collectors", "analyzer/kernels", "analyzer/render/formats", "analyzer/cli/commands")
"""Folders of which every module is a plug-in: they may grow."""
HEADINGS = ["What it measures", "Why it costs", "What to do", "When it is wrong", "Sources"]


def _name(path):
    return str(path.relative_to(ROOT))


def too_long(root):
    """Files that hold more than one idea."""
    return [
        str(path.relative_to(root))
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if len(path.read_text().splitlines()) > (MOST_SCHEMA_LINES if path.parent.name == "schema" else MOST_LINES)
    ]


def too_full(root):
    """Folders in which nobody finds anything."""
    most = {"analyzer": MOST_MODULES_AT_THE_TOP, "analyzer/measures": MOST_MEASURES}
    folders = sorted({path.parent for package in PACKAGES for path in (root / package).rglob("*.py")})
    named = [(str(folder.relative_to(root)), len(list(folder.glob("*.py")))) for folder in folders]
    return [name for name, modules in named if name not in PLUGINS and modules > most.get(name, MOST_MODULES)]


def trespassing(root):
    """Imports of a module with an underscore from outside its folder, tests included."""
    found = []
    for top in (*PACKAGES, "tests"):
        for path in sorted((root / top).rglob("*.py")):
            home = ".".join(path.relative_to(root).parent.parts)
            for node in ast.walk(ast.parse(path.read_text())):
                names = {_hidden(name, root) for name in _imported(node)} - {None}
                found += [f"{path.relative_to(root)}: {name}" for name in sorted(names) if not _inside(name, home)]
    return found


def _imported(node):
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _hidden(name, root):
    """The module with an underscore that this name goes through."""
    parts = name.split(".")
    for at, part in enumerate(parts):
        place = root.joinpath(*parts[: at + 1])
        if part.startswith("_") and not part.startswith("__") and (place.with_suffix(".py").exists() or place.is_dir()):
            return ".".join(parts[: at + 1])
    return None


def _inside(name, home):
    folder = name.split("._")[0]
    return home == folder or home.startswith(f"{folder}.")


def test_a_file_is_one_idea():
    assert too_long(ROOT) == []


def test_a_folder_can_be_looked_over():
    assert too_full(ROOT) == []


def test_what_is_hidden_stays_in_its_folder():
    assert trespassing(ROOT) == []


def test_the_limits_of_the_house_bite(tmp_path):
    def write(name, text='"""A module."""\n'):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    for number in range(17):
        write(f"analyzer/gate/part{number}.py")
        write(f"rules/q{number}.py")
        write(f"analyzer/measures/measure{number}.py")
    for number in range(13):
        write(f"analyzer/loose{number}.py")
    assert too_full(tmp_path) == ["analyzer", "analyzer/gate"]
    for number in range(17, 26):
        write(f"analyzer/measures/measure{number}.py")
    assert too_full(tmp_path) == ["analyzer", "analyzer/gate", "analyzer/measures"]

    write("analyzer/schema/report.py", "x = 1\n" * 400)
    write("analyzer/model/run.py", "x = 1\n" * 301)
    assert too_long(tmp_path) == ["analyzer/model/run.py"]

    write("analyzer/gate/_hidden.py")
    write("analyzer/gate/beside.py", "from analyzer.gate._hidden import x\nfrom analyzer.gate import _hidden\n")
    write("analyzer/model/other.py", "from analyzer.gate._hidden import x\n")
    write("tests/test_gate.py", "from analyzer.gate import _hidden\nimport analyzer.gate._hidden\n")
    assert trespassing(tmp_path) == [
        "analyzer/model/other.py: analyzer.gate._hidden",
        "tests/test_gate.py: analyzer.gate._hidden",
        "tests/test_gate.py: analyzer.gate._hidden",
    ]


@pytest.mark.parametrize("folder", PLUGINS)
def test_a_folder_of_plug_ins_holds_plug_ins_only(folder):
    offered = {
        "rules": "check",
        "collectors": "command",
        "analyzer/kernels": "PATTERNS",
        "analyzer/render/formats": "render",
    }
    package = import_module(folder.replace("/", "."))
    assert len(offers(package, offered.get(folder, "command"))) == len(list((ROOT / folder).glob("*.py"))) - 1


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
