"""Sweeps of our own recordings: what the profiled steps say is what the same steps say without the profiler."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.commands.sweep import command
from analyzer.schema.report import from_json
from analyzer.sweep.runs import series_of
from analyzer.sweep.sweep import SweepRequest, sweep

ROOT = Path(__file__).resolve().parents[1]
DEGREES = (1, 2, 4)
UNPROFILED_MS = {"tp": (2.17, 21.1, 74.8), "ep": (4.53, 11.4, 33.3)}
"""Medians of decode steps timed without the profiler, at each degree."""


def recorded(workload):
    folder = ROOT / "sample_traces/recorded_sweep"
    paths = [folder / f"{workload}{degree}.json" for degree in DEGREES]
    return tuple(from_json(path.read_bytes(), path.name) for path in paths)


@pytest.mark.parametrize("workload", UNPROFILED_MS)
def test_the_verdict_on_profiled_steps_is_that_on_steps_without_the_profiler(workload):
    reports = recorded(workload)
    plain_ms = [report.run.reference["decode_median_ns"] / 1e6 for report in reports]
    assert plain_ms == pytest.approx(UNPROFILED_MS[workload], rel=0.01)
    told = sweep(series_of(reports, workload), SweepRequest(workload)).scaling
    assert (told.best, told.past) == (1, (2, 4))
    ordered = sorted(DEGREES, key=lambda degree: told.standing(degree).value_ns)
    assert ordered == sorted(DEGREES, key=lambda degree: plain_ms[DEGREES.index(degree)])


@pytest.mark.parametrize(("workload", "degree", "term"), [("tp", 4, "communication"), ("ep", 2, "communication")])
def test_what_ate_the_gain_is_named(workload, degree, term):
    gains = sweep(series_of(recorded(workload), workload), SweepRequest(workload)).gains
    assert next(part for part in gains if part.degree == degree).eaten_by == term


def test_the_recorded_sweep_is_read_from_its_files():
    paths = [str(ROOT / f"sample_traces/recorded_sweep/tp{degree}.json") for degree in DEGREES]
    shown = CliRunner().invoke(command, paths, catch_exceptions=False)
    assert shown.stdout.startswith("decode steps: latency: optimum TP1; TP2 is past it")
