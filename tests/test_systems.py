"""Every serving system that the tool claims to know: what recognises it, the rule that judges it, its page, its sample."""

from pathlib import Path

import pytest

import rules
from analyzer.classify import classify
from analyzer.diagnose.answers import plain_answer
from analyzer.ingest.handover import handover
from analyzer.ingest.load import load
from analyzer.measures.reuse import counted_reuse, routed
from analyzer.plugins import offers
from analyzer.rule import Question

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
RULES = {rule.code: rule for rule in offers(rules, "check").values()}

KERNELS = [
    # System, a kernel of its, the subclass, the rule with what its page names, the sample that shows it.
    ("DeepEP", "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*)", "dispatch", "Q302", "drawn/ep2"),
    ("FlashAttention", "void flash::flash_fwd_splitkv_kernel<128>()", "attention", "Q203", "drawn/healthy"),
]


@pytest.mark.parametrize(("system", "kernel", "subclass", "code", "sample"), KERNELS, ids=[row[0] for row in KERNELS])
def test_a_system_with_kernels_has_a_pattern_a_rule_a_page_and_a_sample(system, kernel, subclass, code, sample):
    (pattern,) = classify([kernel])
    assert pattern is not None
    assert pattern.subclass == subclass
    assert system in RULES[code].page
    stem = kernel.partition("<")[0].removeprefix("void ")
    trace = load(SAMPLES / sample).traces[0]
    assert any(stem in name for name in trace.activities.name.values)
    assert subclass in set(trace.activities.subclass.tolist())


def test_the_prefix_cache_is_known_by_counters_and_judged():
    counted = counted_reuse(load(SAMPLES / "drawn/locality"))
    assert counted is not None
    assert (counted.queried_tokens, counted.cached_tokens) == (4800, 2080)
    assert "prefix caching" in RULES["Q502"].page


def test_kv_aware_routing_is_known_by_the_routers_counters_and_judged():
    run = load(SAMPLES / "drawn/locality")
    assert routed(run) == {"round_robin": {"w0": 10, "w1": 10}}
    assert [finding.evidence.names for finding in RULES["Q504"].check(run)] == [("w0", "w1")]
    assert "KV-aware" in RULES["Q504"].page


@pytest.mark.parametrize(
    ("system", "engine_name"), [("NIXL", "vllm:nixl"), ("Mooncake", "vllm:mooncake")], ids=["NIXL", "Mooncake"]
)
def test_a_carrier_of_kv_is_known_by_its_counters_and_judged(system, engine_name):
    grown = {f"{engine_name}_bytes_transferred_sum": 4096.0, f"{engine_name}_num_descriptors_sum": 64.0}
    found = handover({"transfers": 2, "bytes": 4096, "time_ns": 1000}, [], grown, {})
    assert found.carriers == (system,)
    assert system in RULES["Q514"].page


@pytest.mark.parametrize(("system", "sample", "bound"), [("NIXL", "pd_nixl", True), ("Mooncake", "pd_mooncake", False)])
def test_a_carrier_of_kv_is_recognised_on_its_sample(system, sample, bound):
    run = load(SAMPLES / "drawn" / sample)
    assert run.workload.handover.carriers == (system,)
    assert bool(list(RULES["Q514"].check(run))) is bound
    assert [list(RULES[code].check(run)) for code in ("Q511", "Q513")] == [[], []]
    assert (
        plain_answer(Question.LOCALITY, run).text
        == f"from prefill to decode: KV by {system}; `shardscope pd` lays it out"
    )
