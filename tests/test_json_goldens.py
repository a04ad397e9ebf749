"""JSON of every result: keys, their order, and values as agreed; accept a change with `make goldens`."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.__main__ import shardscope

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = Path(__file__).parent / "goldens"
RECORDED = "sample_traces/recorded"
COMMANDS = {
    "diagnose": ["diagnose", f"{RECORDED}/tp2"],
    "diagnose_drawn": ["diagnose", "sample_traces/drawn/locality"],
    "compare": ["compare", f"{RECORDED}/tp2", f"{RECORDED}/tp4"],
    "gate": ["gate", f"{RECORDED}/tp4", "--baseline", "BASELINE"],
    "sweep": ["sweep", "sample_traces/sweep_teaching.csv"],
    "what_if": ["sweep", f"{RECORDED}/tp2", "--what-if", "tp=4", "--platform", "L40S"],
    "pd": ["pd", "--prefill", f"{RECORDED}/pd1+1", "--decode", f"{RECORDED}/pd1+1"],
    "routing": ["routing", "sample_traces/routing_sessions.jsonl", "--workers", "4"],
}


def _run(words):
    return CliRunner().invoke(shardscope, words, standalone_mode=False).stdout


def _is_as_agreed(value, agreed, place=""):
    """Equal, but for the last digits of a real number, which a processor may round its own way."""
    assert type(value) is type(agreed), place
    if isinstance(value, dict):
        assert list(value) == list(agreed), place
        for key in value:
            _is_as_agreed(value[key], agreed[key], f"{place}.{key}")
    elif isinstance(value, list):
        assert len(value) == len(agreed), place
        for row, (one, other) in enumerate(zip(value, agreed, strict=True)):
            _is_as_agreed(one, other, f"{place}[{row}]")
    elif isinstance(value, float):
        assert value == pytest.approx(agreed, rel=1e-9), place
    else:
        assert value == agreed, place


@pytest.mark.parametrize("name", COMMANDS)
def test_the_json_of_a_result_is_as_agreed(name, request, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    baseline = os.path.relpath(tmp_path / "baseline.json", ROOT)
    if name == "gate":
        _run(["gate", f"{RECORDED}/tp2", "--baseline", baseline, "--update-baseline"])
    made = _run([baseline if word == "BASELINE" else word for word in COMMANDS[name]] + ["--format", "json"])
    golden = GOLDENS / f"{name}.json"
    if request.config.getoption("--goldens"):
        golden.write_text(made, encoding="utf-8")
    _is_as_agreed(json.loads(made), json.loads(golden.read_text(encoding="utf-8")))
