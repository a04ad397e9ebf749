"""Real traces of others: each is diagnosed, or refused in one clear line."""

from pathlib import Path

import pytest

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import ShardscopeError
from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.model.kind import Cause, Kind
from analyzer.plugins import offers
from analyzer.schema.report import from_json, to_json

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the fetched trace corpus is not at hand; it is never committed"),
]

REFUSED = {
    "ascend_db_level1": "no trace among",
    "ascend_kernel_details": "no trace among",
    "ascend_level2_4rank_tables": "no trace among",
    "licenses": "no trace among",
    "cpu-collected/vllm-router": "no trace among",
    "other_not_kineto": "BytePS timeline",
    "rl_insight_mstx": "overlap analysis but no device tasks",
}
ENGINES = ("vllm", "sglang", "lightllm")
MOCK = "kineto_h100_sync"
"""A unit test's mock of a trace: its one kernel is called `Kernel`."""

SETS = (
    sorted(
        path.relative_to(CORPUS).as_posix()
        for path in (*CORPUS.glob("*"), *CORPUS.glob("cpu-collected/*"))
        if path.is_dir()
    )
    if CORPUS.is_dir()
    else []
)
RULES = list(offers(rules, "check").values())


@pytest.mark.parametrize("name", [name for name in SETS if name not in REFUSED])
def test_a_set_is_diagnosed_and_every_rank_sums_to_its_window(name):
    run = load(CORPUS / name)
    for part in breakdown(run):
        assert sum(part.term(kind).total_ns for kind in Kind) == part.window.total_ns > 0
        assert sum(time.total_ns for time in part.causes.values()) == part.sync.total_ns
        if name != MOCK:
            limit = 0.01 if any(engine in name for engine in ENGINES) else 0.03
            assert part.unclassified_ns <= limit * part.device_busy_ns
    report = diagnose(run, RULES)
    assert len(report.questions) == 6
    assert from_json(to_json(report), name) == report


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_trace_is_refused_in_one_clear_line(name):
    with pytest.raises(ShardscopeError) as fault:
        load(CORPUS / name)
    assert REFUSED[name] in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    "path", sorted((CORPUS / "other_not_kineto").iterdir()) if CORPUS.is_dir() else [], ids=lambda path: path.name
)
def test_a_foreign_file_is_named_for_what_it_is(path):
    with pytest.raises(ShardscopeError) as fault:
        load(path)
    assert path.name in str(fault.value)


def test_a_sglang_decode_step_is_not_idle():
    for part in breakdown(load(CORPUS / "sglang_ep8_decode_run1")):
        alone_ns = part.sync.total_ns - part.causes[Cause.PEER_WAIT].total_ns
        assert alone_ns < 0.05 * part.window.total_ns


def test_expert_parallel_decode_is_half_exchange_with_the_waiting_in_it():
    parts = breakdown(load(CORPUS / "lightllm_ep8_decode"))
    shares = [
        (part.communication.total_ns + part.causes[Cause.PEER_WAIT].total_ns) / part.window.total_ns for part in parts
    ]
    assert 0.5 < min(shares) < max(shares) < 0.55
