"""The wheel holds the three packages and their data, and works from an empty environment outside the checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow
CLEAN = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
"""A checkout on the path would count as installed."""


def test_the_wheel_works_where_there_is_no_checkout(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("shardscope-*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == {"analyzer", "collectors", "rules"}
    assert "analyzer/data/report.schema.json" in held
    assert "analyzer/py.typed" in held

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([tmp_path / "venv/bin/pip", "install", "--quiet", wheel], env=CLEAN, check=True)
    command = tmp_path / "venv/bin/shardscope"
    version = subprocess.run(
        [command, "--version"], cwd=tmp_path, env=CLEAN, capture_output=True, text=True, check=True
    )
    assert "0.1.0" in version.stdout
    sample = ROOT / "sample_traces" / "drawn" / "tp2"
    report = subprocess.run(
        [command, "diagnose", sample, "--format", "json"],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(report.stdout)["run"]["layout"] == {"tp": 2, "source": "declared"}
