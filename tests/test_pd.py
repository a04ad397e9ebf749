"""`shardscope pd`: the ledger adds up, faults of a hand-over are named, the verdict agrees with what was measured."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import BASE_NS, STARTED_US, write

from analyzer.__main__ import shardscope
from analyzer.errors import ShardscopeError, UsageError
from analyzer.ingest.load import load
from analyzer.pd.ledger import TERMS, Pair, ledger
from analyzer.pd.pd import pd
from analyzer.pd.pools import REMAINDER_TOKENS, computed_tokens
from analyzer.render import pd as _pd
from analyzer.sketch import sketch

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "sample_traces" / "recorded"
NIXL_LINE = (
    "KV Transfer metrics: Num successful transfers=2, Avg xfer time (ms)=173.794, Avg post time (ms)=129.127, "
    "Avg MB per transfer=313.0, Throughput (MB/s)=1800.983, Avg number of descriptors=40064.0"
)
RUNS = ("pd1+1", "pd_end", "pd_recompute")
START_NS = BASE_NS + int(STARTED_US * 1000)


@pytest.mark.parametrize("name", RUNS)
def test_terms_of_a_recorded_hand_over_add_up_to_it_to_the_nanosecond(name):
    run = load(RECORDED / name)
    handed = ledger(Pair(run, run, (0,), (1,)))
    assert [each.name for each in handed] == ["round 4 to rank 1", "round 5 to rank 1"]
    for each in handed:
        assert tuple(each.terms) == TERMS
        assert min(each.terms.values()) >= 0
        assert sum(each.terms.values()) == each.end_ns - each.start_ns
        assert each.size_bytes == 2 * 2 * 4 * 4 * 256 * 64 * 4  # layers, K and V, sequences, heads, tokens, dim, bytes


def test_a_transfer_by_layer_hides_beneath_the_prefill_and_one_at_the_end_does_not():
    by_layer, at_end = (pd(run, run) for run in (load(RECORDED / "pd1+1"), load(RECORDED / "pd_end")))
    assert [row.terms["transfer"] for row in by_layer.ledger] == [0, 0]
    assert all(row.hidden_transfer_ns > 0 for row in by_layer.ledger)
    assert all(row.terms["transfer"] > 0 and row.hidden_transfer_ns == 0 for row in at_end.ledger)


def test_a_run_in_which_decode_computes_the_prompts_is_called_double_prefill():
    again, once = (pd(run, run) for run in (load(RECORDED / "pd_recompute"), load(RECORDED / "pd1+1")))
    assert (again.double_prefill.state, again.double_prefill.decode_tokens) == ("found", 2048)
    assert (once.double_prefill.state, once.double_prefill.decode_tokens) == ("none", 0)
    assert "DOUBLE PREFILL: the decode side computed 2,048 prompt tokens" in _pd.to_text(again)


def test_without_a_colocated_run_the_verdict_is_unknown_and_says_what_to_record():
    run = load(RECORDED / "pd_end")
    found = pd(run, run)
    assert found.verdict == "unknown"
    assert any("--colocated RUN" in line for line in found.missing)


def test_a_hand_over_that_frees_no_decode_step_does_not_pay():
    run = load(RECORDED / "pd_end")
    found = pd(run, run, load(RECORDED / "tp1"))
    assert found.verdict == "does not pay"
    assert {term.name: term.value_ns for term in found.terms if term.side == "gain"} == {
        "prefill interference removed": 0,
        "better layout for prefill": 0,
        "better layout for decode": 0,
    }


DRAWN = """
    roles prefill decode
    kv {kv}
    rank 0 stream 7   GGGGGGGG............
    rank 0 host       g...................
    rank 0 steps      PPPPPPPP............
    rank 1 stream 7   ................TTTT
    rank 1 host       ................g...
    rank 1 steps      ................DDDD
"""


@pytest.mark.parametrize(
    ("kv", "transfer", "queue", "hidden"),
    [("0>1:100@8-0-14", 6, 0, 0), ("0>1:100@6-10-14", 4, 2, 0), ("0>1:100@2-0-5 0>1:100@7-0-9", 1, 0, 4)],
    ids=["after prefill", "the receiver is late", "by layer"],
)
def test_each_instant_of_a_drawn_hand_over_is_in_the_term_it_was_drawn_in(kv, transfer, queue, hidden):
    run = sketch.read(DRAWN.format(kv=kv))
    (each,) = ledger(Pair(run, run, (0,), (1,)))
    column = sketch.COLUMN_NS
    rest = 16 - 8 - transfer - queue
    assert each.terms == {
        "prefill": 8 * column,
        "transfer": transfer * column,
        "recompute": 0,
        "queue": queue * column,
        "handshake": 0,
        "unexplained": rest * column,
        "first_decode": 4 * column,
    }
    assert each.hidden_ns == hidden * column


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 15), st.integers(0, 16)), min_size=1, max_size=6))
def test_terms_add_up_whatever_the_messages(messages):
    words = [
        f"0>1:{1 + at}@{sent}-{posted}-{max(sent, posted, end)}" for at, (sent, posted, end) in enumerate(messages)
    ]
    run = sketch.read(DRAWN.format(kv=" ".join(words)))
    (each,) = ledger(Pair(run, run, (0,), (1,)))
    assert sum(each.terms.values()) == each.total_ns == 20 * sketch.COLUMN_NS
    assert min(each.terms.values()) >= 0
    assert each.size_bytes == sum(range(1, len(messages) + 1))


@pytest.mark.parametrize(
    ("steps", "per_step"),
    [("PPPPDDPPPPDDDD", 20_000), ("PPPPDDXXXXDDDD", 3_333), ("PPPPPPPPPPDDDD", 0)],
    ids=["eight requests wait for a prefill", "a mixed step is longer", "nobody waits"],
)
def test_interference_is_the_time_in_which_requests_that_decode_wait_for_the_prefill_of_others(steps, per_step):
    together = sketch.read(
        f"""
        roles colocated
        rank 0 stream 7   GGGGTTGGGGTTTT
        rank 0 host       g...g.g...g...
        rank 0 steps      {steps}
        """
    )
    apart = sketch.read(DRAWN.format(kv="0>1:100@8-0-14"))
    found = pd(apart, apart, together)
    by_name = {term.name: term.value_ns for term in found.terms}
    assert by_name["prefill interference removed"] == per_step  # one decode step a hand-over
    assert found.verdict == "does not pay"


def _served(tmp_path, name, drawing, **facts):
    folder = write(sketch.read(drawing), tmp_path / name)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "engine": "vllm", "complete": True} | facts))
    return folder


@pytest.fixture
def servers(tmp_path):
    """A prefill and a decode server, two requests one after the other, one look at the counters after each."""
    prefill = _served(
        tmp_path,
        "p",
        """
        rank 0 stream 7   GGGG............GGGG............
        rank 0 host       g...............g...............
        rank 0 steps      PPPP............PPPP............
        """,
        role="prefill",
    )
    looks = [
        {"at_ns": START_NS + at * 10_000, "transfers": 1, "bytes": 1_000_000, "time_ns": 30_000} for at in (15, 31)
    ]
    decode = _served(
        tmp_path,
        "d",
        """
        rank 0 stream 7   ........TTTT............TTTT....
        rank 0 host       ........g...............g.......
        rank 0 steps      ........DDDD............DDDD....
        """,
        role="decode",
        kv_transfers={"transfers": 2, "bytes": 2_000_000, "time_ns": 60_000},
        transfers=looks,
        metrics={
            "change": {
                "vllm:nixl_post_time_seconds_sum": 0.00004,
                "vllm:nixl_num_descriptors_sum": 12.0,
                'vllm:prompt_tokens_by_source_total{engine="0",source="external_kv_transfer"}': 1022.0,
                'vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"}': 2.0,
            }
        },
    )
    return prefill, decode


def test_servers_are_joined_by_the_looks_at_their_counters(servers):
    found = pd(*map(load, servers))
    assert [row.terms for row in found.ledger] == [
        {
            "prefill": 40_000,
            "transfer": 30_000,
            "recompute": 0,
            "queue": 0,
            "handshake": 0,
            "unexplained": 10_000,
            "first_decode": 40_000,
        }
    ] * 2
    assert [row.basis for row in found.ledger] == ["derived", "derived"]
    assert found.transfer.carriers == ("NIXL",)
    assert (found.transfer.bound_by, found.transfer.descriptors) == ("descriptors", 12)
    assert found.double_prefill.state == "none"


def test_a_decode_server_that_was_sent_nothing_is_told_apart_from_one_that_was_not_asked(servers):
    told = {'vllm:prompt_tokens_by_source_total{source="local_compute"}': 1024.0}
    alone = json.loads((servers[1] / "run.json").read_text())
    for name in ("kv_transfers", "transfers"):
        del alone[name]
    (servers[1] / "run.json").write_text(json.dumps(alone | {"metrics": {"change": told}}))
    found = pd(*map(load, servers))
    assert found.transfer.state == "none"
    assert "NO TRANSFER in a PD run" in _pd.to_text(found)
    del alone["metrics"]
    (servers[1] / "run.json").write_text(json.dumps(alone))
    unasked = pd(*map(load, servers))
    assert unasked.transfer.state == "unknown"
    assert "shardscope collect vllm" in unasked.transfer.why


def test_swapped_runs_are_told(servers):
    with pytest.raises(UsageError, match="swap the two options"):
        pd(load(servers[1]), load(servers[0]))


def test_one_run_given_twice_must_hold_both_roles(servers):
    with pytest.raises(UsageError, match="given twice and has prefill ranks only"):
        pd(load(servers[0]), load(servers[0]))


def test_runs_without_roles_are_told():
    run = load(RECORDED / "tp1")
    with pytest.raises(UsageError, match="states no role; --prefill needs prefill ranks"):
        pd(run, load(RECORDED / "pd1+1"))


def test_runs_of_different_models_are_told(servers):
    for folder, hidden in zip(servers, (4096, 5120), strict=True):
        facts = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(facts | {"model": {"hidden_size": hidden}}))
    with pytest.raises(UsageError, match="different models"):
        pd(*map(load, servers))


def test_two_nodes_have_two_clocks(servers):
    for folder, node in zip(servers, ("a", "b"), strict=True):
        facts = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(facts | {"topology": {"nodes": {"0": node}}}))
    found = pd(*map(load, servers))
    assert found.ledger == ()
    assert found.answer == "unknown: no hand-over could be laid out"
    assert any("two nodes" in line for line in found.missing)


def test_a_damaged_record_is_told(servers):
    (servers[1] / "run.json").write_text('{"transfers": [{"at_ns": "noon"}]}')
    with pytest.raises(ShardscopeError, match="correct the file or remove it"):
        load(servers[1])


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_command_writes_every_form(form):
    place = str(RECORDED / "pd_end")
    words = ["pd", "--prefill", place, "--decode", place, "--link-gbps", "100", "--format", form]
    done = CliRunner().invoke(shardscope, words, catch_exceptions=False)
    assert done.exit_code == 0
    if form == "json":
        found = json.loads(done.output)
        assert [sum(row["terms"].values()) for row in found["ledger"]] == [row["total_ns"] for row in found["ledger"]]
        assert found["transfer"]["bound_by"] == "neither"
    else:
        assert "KV transfer, exposed" in done.output
    if form == "text":
        assert max(map(len, done.output.splitlines())) <= 80


def test_a_log_stands_in_for_counters_that_nobody_read(servers, tmp_path):
    facts = json.loads((servers[1] / "run.json").read_text())
    for name in ("kv_transfers", "transfers", "metrics"):
        del facts[name]
    (servers[1] / "run.json").write_text(json.dumps(facts))
    log = tmp_path / "engine.log"
    log.write_text(NIXL_LINE)
    words = ["pd", "--prefill", str(servers[0]), "--decode", str(servers[1]), "--log", str(log)]
    done = CliRunner().invoke(shardscope, words, catch_exceptions=False)
    assert "by NIXL at" in done.output
    assert "bound by: descriptors" in done.output


def test_a_step_is_a_second_prefill_where_it_computes_more_than_a_block_a_request():
    drawing = """
        roles prefill decode
        rank 0 stream 7   GGGG....
        rank 0 host       g.......
        rank 0 steps      PPPP....
        rank 1 stream 7   ....GGTT
        rank 1 host       ....g.g.
        rank 1 steps      ....XXDD
    """
    run = sketch.read(drawing)  # X: one request of 256 tokens
    assert computed_tokens(run, (1,), REMAINDER_TOKENS) == 256
    assert computed_tokens(run, (1,), 256) == 0


def test_pools_are_held_against_one_window_and_a_full_one_binds():
    run = load(RECORDED / "pd1+1")
    found = pd(run, run)
    assert found.binding == "prefill"
    shares = {part.role: part.busy_share for part in found.pools}
    assert shares["prefill"] > 0.85 > shares["decode"]
