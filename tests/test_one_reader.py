"""A run is read by what its files hold, in one way by every command; whatever makes a report, it is the same report."""

import ast
import gzip
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import rules
from analyzer.__main__ import shardscope
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.ingest.load import load
from analyzer.plugins import offers
from analyzer.schema.breakdown import SyncCauses
from analyzer.schema.report import to_json

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "sample_traces" / "recorded"


def run(*words):
    return CliRunner().invoke(shardscope, [str(word) for word in words], catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def plain(tmp_path):
    """Rank 0 of the recorded tensor-parallel run of two, as plain JSON, twice."""
    (packed,) = RECORDED.glob("tp2/rank0.*.gz")
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(gzip.decompress(packed.read_bytes()))
    return tmp_path


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("a.csv", "b.txt"), ("a", "b.json")])
def test_sweep_reads_the_plain_traces_that_compare_reads(plain, names):
    for old, new in zip(("a.json", "b.json"), names, strict=True):
        (plain / old).rename(plain / f"{old}.kept")
        (plain / f"{old}.kept").rename(plain / new)
    assert run("compare", *(plain / name for name in names)).exit_code == 0
    assert "only degree 2 was measured" in run("sweep", *(plain / name for name in names)).output


def test_what_if_reads_a_plain_trace_as_it_reads_the_directory_that_holds_it(plain):
    directory = plain / "run"
    directory.mkdir()
    shutil.copy(plain / "a.json", directory)
    for place in (plain / "a.json", directory):
        with pytest.raises(MissingEvidenceError, match="one rank's trace alone cannot tell waiting from transfer"):
            run("sweep", place, "--what-if", "tp=4", "--platform", "L40S")


def test_a_table_is_told_by_its_first_line(tmp_path):
    table = tmp_path / "points.txt"
    table.write_text("degree,value_ms\n1,100\n2,60\n4,50\n8,62.5\n")
    assert "optimum TP4" in run("sweep", table).output


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose",),
        ("timeline", "-o", "OUT"),
        ("pd", "--decode", "TRACES", "--prefill"),
        ("sweep", "--what-if", "tp=4"),
    ],
)
def test_a_saved_report_in_place_of_traces_is_one_line(words, tmp_path):
    report = tmp_path / "report"
    report.write_text(to_json(diagnose(load(RECORDED / "tp1"), ())))
    places = {"OUT": tmp_path / "out.json", "TRACES": RECORDED / "tp1"}
    with pytest.raises(UsageError, match=r"report is a saved report; name the traces that it was made from"):
        run(*(places.get(word, word) for word in words), report)


def test_a_table_of_points_in_place_of_traces_is_one_line():
    with pytest.raises(UsageError, match=r"sweep_teaching.csv is a table of measured points, which only sweep reads"):
        run("diagnose", ROOT / "sample_traces" / "sweep_teaching.csv")


def test_a_report_made_in_python_equals_that_of_the_command(tmp_path):
    """The four lines of docs/library.md, compared with what the command line wrote: it is the same run."""
    made, written = tmp_path / "library.json", tmp_path / "command.json"
    made.write_text(to_json(diagnose(load(RECORDED / "tp2"), offers(rules, "check").values())))
    run("diagnose", RECORDED / "tp2", "--format", "json", "-o", written)
    compared = json.loads(run("compare", written, made, "--format", "json").output)
    assert [row["name"] for row in compared["exact"] if row["state"] != "same"] == []
    assert compared["overlap"]["basis"] == "activities"
    assert made.read_text() == written.read_text()


def test_every_name_of_the_schema_stands_where_it_is_made():
    """A reader who looks for `host_launch_ns` finds the line that sets it."""
    setting = {
        keyword.arg
        for path in (ROOT / "analyzer").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    }
    assert set(SyncCauses.__dataclass_fields__) <= setting


def test_no_name_of_the_schema_is_put_together_from_pieces():
    pieces = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("analyzer", "rules")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr)
        and isinstance(node.values[-1], ast.Constant)
        and node.values[-1].value in {"_ns", "_bytes", "_share", "_GBps"}
    ]
    assert pieces == []
