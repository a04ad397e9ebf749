"""Healthy runs of many sorts: an expert who knows them would say nothing, and neither does the report."""

from pathlib import Path

import pytest

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.plugins import offers
from analyzer.sketch.sketch import read

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
RULES = tuple(offers(rules, "check").values())
STEPS = 6
DENSE = "GGTTGGNGGG" * 4
EXPERTS = "GGTTMMMMNMMM" * 4
DEVICES = ("NVIDIA H100 80GB HBM3", "NVIDIA H200", "AMD Instinct MI300X")


def _run(*, ranks=1, engine="vllm", device=DEVICES[0], layout="", exchange="", body=DENSE, kind="D"):
    """Equal ranks, busy but for a little: kernels back to back, launched ahead, collectives short and in step."""
    step = body + exchange
    lines = [f"engine {engine}", f"device {device}", "column 40 µs"]
    lines += [f"layout {layout}", f"world {ranks}"] if layout else []
    lines += [f"groups {'-'.join(map(str, range(ranks)))}", "message 67108864"] if exchange else []
    for rank in range(ranks):
        lines.append(f"rank {rank} stream 7   {step * STEPS}")
        lines.append(f"rank {rank} steps      " + (kind * len(step) + "|" + kind * (len(step) - 1)) * (STEPS // 2))
    return "\n".join(lines)


HEALTHY = {
    f"{engine} {device.split()[1]} tp {ranks} {kind}": _run(
        ranks=ranks,
        engine=engine,
        device=device,
        layout=f"tp={ranks}" if ranks > 1 else "",
        exchange="A" if ranks > 1 else "",
        kind=kind,
    )
    for engine in ("vllm", "sglang")
    for device in DEVICES
    for ranks in (1, 2, 4)
    for kind in ("D", "P")
} | {
    f"{engine} {device.split()[1]} ep 4": _run(
        ranks=4, engine=engine, device=device, layout="ep=4", exchange="XGGGY", body=EXPERTS
    )
    for engine in ("vllm", "sglang")
    for device in DEVICES[:2]
}


def warned(report):
    return [f"{row.rule} {row.name}: {row.message}" for row in report.findings if row.severity != "info"]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_left_alone(name):
    report = diagnose(read(HEALTHY[name]), RULES)
    assert warned(report) == []
    assert report.run.warnings == []
    assert report.breakdown.per_rank[0].compute_ns > 0.9 * report.breakdown.per_rank[0].window_ns


@pytest.mark.parametrize("name", ["drawn/healthy", "recorded/tp1"])
def test_a_healthy_sample_is_left_alone(name):
    report = diagnose(load(SAMPLES / name), RULES)
    assert warned(report) == []
    assert report.run.warnings == []
