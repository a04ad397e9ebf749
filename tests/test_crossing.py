"""Question 4: which boundary is crossed, whether the link is the bottleneck, and what speed alone may say."""

import json
from pathlib import Path

import pytest
from kineto_files import write

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.ingest.load import load
from analyzer.plugins import offers
from analyzer.sketch import sketch

H100 = "device NVIDIA H100 80GB HBM3"
SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
ALL = list(offers(rules, "check").values())


def drawn(*facts, message=16 << 20, transfer=8, late=0, compute=40):
    """Two ranks that compute and reduce three times, the second late by so many columns."""
    early = f"{'G' * compute}{'A' * (late + transfer)}" * 3
    behind = f"{'G' * compute}{'E' * late}{'A' * transfer}" * 3
    rows = [f"rank 0 stream 7   {early}", f"rank 1 stream 7   {behind}"]
    return sketch.read("\n".join(["layout tp=2", f"message {message}", *facts, *rows]))


def answer(run):
    return diagnose(run, ALL).questions[3]


def test_without_a_topology_the_answer_is_unknown_with_the_command_that_would_tell():
    told = answer(drawn(H100))
    assert told.verdict == "unknown"
    assert "where the ranks run is not recorded" in told.answer
    assert any("`shardscope collect topology`" in cure for cure in told.missing)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (("nodes a b",), "yes: ranks 0-1 talk over the network of 2 nodes"),
        (("nodes a a", "links 0-1=SYS"), "yes: ranks 0-1 talk across CPU sockets"),
        (("nodes a a", "links 0-1=NV18"), "no: every group stays inside one node (a)"),
    ],
)
def test_the_answer_names_the_boundary(facts, says):
    assert answer(drawn(*facts)).answer.startswith(says)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (
            drawn("nodes a a", H100, late=40),
            "the link is not the bottleneck: 71.4 % of the time in all_reduce is waiting for the last rank",
        ),
        (
            drawn("nodes a a", H100, compute=400),
            "the link is not the bottleneck: all_reduce takes 2.0 % of the window",
        ),
        (
            drawn("nodes a a", H100),
            "the link is as fast as its like: all_reduce of 16.0 MiB takes 80.0 µs without waiting, 82.2 µs expected",
        ),
        (
            drawn("nodes a a", H100, message=8 << 20, transfer=40),
            "slower than its like: all_reduce of 8.00 MiB takes 400 µs without waiting",
        ),
        (
            drawn("nodes a a", H100, message=16 << 10, transfer=1, compute=10),
            "which is latency a call, not bandwidth",
        ),
    ],
    ids=["waiting", "little", "at speed", "slow", "latency"],
)
def test_whether_the_link_is_the_bottleneck_is_part_of_the_answer(run, says):
    assert says in answer(run).answer


@pytest.mark.parametrize(
    ("message", "transfer", "says"),
    [
        (16 << 10, 5, "all_reduce of 16.0 KiB in 50.0 µs is consistent with several nodes"),
        (16 << 10, 2, None),
        (16 << 20, 8, None),
    ],
)
def test_speed_alone_is_weak_evidence_and_is_called_so(message, transfer, says):
    told = answer(drawn(message=message, transfer=transfer))
    assert told.verdict == "unknown"
    assert ("speed is weak evidence" in told.answer) == (says is not None)
    assert says is None or says in told.answer


def test_a_group_over_nodes_is_found_with_the_same_size_inside_one_beside_it():
    found = [row for row in diagnose(drawn("nodes a b", H100, transfer=40), ALL).findings if row.rule == "Q401"]
    (message,) = [row.message for row in found]
    assert message == (
        "all_reduce of tp group 0-1 crosses 2 nodes and takes 50.0 % of the window: 16.0 MiB in 400 µs without "
        "waiting, 82.2 µs expected inside one node (measured on 2 ranks of H100-SXM5-80GB)"
    )


@pytest.mark.parametrize(
    ("sample", "codes"),
    [
        ("drawn/healthy", []),
        ("drawn/tp2", ["Q402"]),
        ("recorded/tp1", []),
        ("recorded/tp2", []),
        ("recorded/tp4", []),
        ("recorded/ep4", []),
    ],
)
def test_runs_inside_one_node_have_no_finding_of_the_path(sample, codes):
    findings = diagnose(load(SAMPLES / sample), ALL).findings
    assert [row.rule for row in findings if row.question == 4] == codes


def test_well_placed_ranks_with_nvlink_have_no_finding_of_topology(tmp_path):
    place = write(drawn(H100, late=1), tmp_path)
    link = {"from": "GPU0", "to": "GPU1", "type": "NV18"}
    host = {"devices": [{"name": "GPU0"}, {"name": "GPU1"}], "links": [link], "processes": {"0": {}, "1": {}}}
    (place / "topology.json").write_text(json.dumps({"schema": 1, "hosts": {"alpha": host}}))
    report = diagnose(load(place), ALL)
    assert [row.rule for row in report.findings if row.question == 4] == []
    assert [row.outcome for row in report.rules if row.rule in {"Q401", "Q403", "Q404", "Q405", "Q406"}] == [
        "clean"
    ] * 5
    assert report.questions[3].answer.startswith("no: every group stays inside one node (alpha)")
