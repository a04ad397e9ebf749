"""The samples say what their README says: split, degree, collectives and bytes, with no flag given."""

import importlib
import json
from pathlib import Path

import pytest

from analyzer.diagnose.answers import plain_answer
from analyzer.diagnose.tables import collective_rows
from analyzer.ingest.load import load
from analyzer.measures.traffic import call_keys, message_bytes, traffic
from analyzer.rule import Question
from analyzer.steps.steps import step_summary

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
LARGEST_BYTES = 200_000
HIDDEN_BYTES = 512 * 4
PREFILL_TOKENS, DECODE_TOKENS = 4 * 256, 4
"""Of a step of the recorded runs: 2 layers, hidden size 512, float32, 2 rounds of one prefill and 2 decode steps."""


def test_every_file_is_small_and_has_a_line_in_the_readme():
    text = (SAMPLES / "README.md").read_text()
    for path in (*SAMPLES.glob("*/*"), *SAMPLES.glob("*.*")):
        if path.is_dir():
            assert f"`{path.relative_to(SAMPLES)}`" in text
    for path in SAMPLES.rglob("*"):
        assert not path.is_file() or path.stat().st_size < LARGEST_BYTES, path


@pytest.mark.parametrize(
    ("name", "split", "calls"),
    [
        ("tp1", "not split", {}),
        # An all-reduce after each attention and each feed-forward, and one after the embedding.
        (
            "tp2",
            "tp=2",
            {
                "all_reduce": (30, 10 * PREFILL_TOKENS * HIDDEN_BYTES + 20 * DECODE_TOKENS * HIDDEN_BYTES),
                "all_gather": (6, 98_304),
            },
        ),
        (
            "tp4",
            "tp=4",
            {
                "all_reduce": (30, 10 * PREFILL_TOKENS * HIDDEN_BYTES + 20 * DECODE_TOKENS * HIDDEN_BYTES),
                "all_gather": (6, 98_304),
            },
        ),
        ("ep1", "not split", {}),
        ("ep2", "dp=2 × ep=2", {"all_to_all": (36, 16_909_056)}),
        ("ep4", "dp=4 × ep=4", {"all_to_all": (36, 8_454_912)}),
        ("pp2", "pp=2", {"send_recv": (20, 4_227_200)}),
        (
            "cp2",
            "cp=2",
            {
                "send_recv": (8, 8_388_608),
                "broadcast": (2, 16_384),
                "all_reduce": (8, 65_536),
                "all_gather": (8, 2_048),
            },
        ),
        ("dcp2", "dcp=2", {"all_gather": (8, 2_048), "all_reduce": (8, 65_536)}),
        ("dp2", "dp=2", {"all_reduce": (6, 48)}),
        ("pd1+1", "by phase: prefill on ranks 0 and decode on ranks 1", {"send_recv": (6, 8_388_672)}),
    ],
)
def test_a_recorded_run_names_its_split_and_its_collectives_with_their_bytes(name, split, calls):
    run = load(SAMPLES / "recorded" / name)
    assert plain_answer(Question.SPLIT, run).text.startswith(split)
    assert {row.kind: (row.count, _bytes_of_a_rank(run, row.kind)) for row in traffic(run)} == calls


def _bytes_of_a_rank(run, kind):
    """Of all its calls of this kind; mean over the ranks that have any."""
    sums = [
        int(message_bytes(trace)[rows].sum())
        for trace, keys in zip(run.traces, call_keys(run), strict=True)
        for (word, *_), rows in keys.items()
        if word == kind
    ]
    return sum(sums) // len(sums)


@pytest.mark.parametrize("name", ["tp2", "ep4", "pp2", "cp2", "dcp2"])
def test_a_recorded_run_has_its_steps(name):
    counts = {row.kind: row.count for row in step_summary(load(SAMPLES / "recorded" / name))}
    assert counts == {"prefill": 2, "decode": 4}


def test_each_transfer_of_a_prefill_decode_run_has_its_bytes_and_time():
    held = json.loads((SAMPLES / "recorded" / "pd1+1" / "run.json").read_text())
    kv_bytes = 2 * PREFILL_TOKENS * held["model"]["num_key_value_heads"] * held["model"]["head_dim"] * 4
    assert {(transfer["from"], transfer["to"]) for transfer in held["transfers"]} == {(0, 1)}
    layers = [transfer for transfer in held["transfers"] if transfer["bytes"] == kv_bytes]
    assert len(layers) == 2 * held["model"]["num_hidden_layers"]
    assert all(transfer["time_ns"] > 0 for transfer in layers)


def test_drawn_samples_are_as_their_drawings_say(tmp_path, monkeypatch):
    import draw_samples

    monkeypatch.setattr(draw_samples, "ROOT", tmp_path)
    draw_samples.main()
    for path in (tmp_path / "sample_traces" / "drawn").rglob("*.*"):
        committed = SAMPLES / path.relative_to(tmp_path / "sample_traces")
        assert committed.read_bytes() == path.read_bytes(), committed


def test_the_exchange_of_experts_that_share_their_ranks_with_replicas_is_theirs():
    rows = collective_rows(load(SAMPLES / "recorded" / "ep2"))
    assert [(row.kind, row.dimension) for row in rows] == [("all_to_all", "ep")]


@pytest.mark.parametrize("name", ["tp1", "tp2", "tp4", "dp2", "pp2"])
def test_a_run_without_experts_has_no_expert_exchange(name):
    rule = importlib.import_module("rules.q302_exposed_expert_exchange").check
    assert list(rule.check(load(SAMPLES / "recorded" / name))) == []
