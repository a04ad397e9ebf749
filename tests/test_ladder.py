"""The ledger of the distance ladder: what every rank moved over which rung, in each step."""

import pytest

from analyzer.diagnose.ladder import ladder_rows, rank_rungs
from analyzer.measures.breakdown import breakdown
from analyzer.measures.ladder import BETWEEN, ladder
from analyzer.model.kind import Cause, Kind
from analyzer.sketch import sketch

TWO_STEPS = """
    layout tp=2
    nodes a a
    links 0-1=NV18
    message 65536
    rank 0 stream 7   HGGGAA..HGGGAAKK
    rank 0 host       lll.....lll..l..
    rank 0 steps      DDDDDDDD|DDDDDDD
    rank 1 stream 7   HGGGAA..HGGGAAKK
    rank 1 host       lll.....lll..l..
    rank 1 steps      DDDDDDDD|DDDDDDD
"""


def test_every_rank_has_bytes_and_time_by_rung_and_step():
    rows = {row.level: row for row in rank_rungs(sketch.read(TWO_STEPS)) if row.rank == 0}
    host, between, hbm = rows["host"], rows["between ranks, peer"], rows["hbm"]
    assert (host.calls, host.bytes, host.time_ns, host.step_bytes, host.step_ns) == (
        2,
        2 << 20,
        20_000,
        1 << 20,
        10_000,
    )
    assert (between.calls, between.bytes, between.step_bytes, between.step_ns) == (2, 131_072, 65_536, 20_000)
    assert (hbm.calls, hbm.bytes, hbm.time_ns, hbm.step_ns) == (1, None, 20_000, 20_000)


def test_rungs_sum_to_the_terms_exactly():
    run = sketch.read(TWO_STEPS)
    for rank, part in zip(run.ranks, breakdown(run), strict=True):
        own = [rung for rung in ladder(run) if rung.rank == rank]
        between = sum(rung.time_ns for rung in own if rung.level.startswith(BETWEEN))
        moved = sum(rung.time_ns for rung in own if not rung.level.startswith(BETWEEN))
        assert between == part.term(Kind.COMMUNICATION).total_ns
        assert moved == part.term(Kind.MOVEMENT).total_ns


def test_waiting_for_peers_is_no_movement():
    run = sketch.read(
        """
        layout tp=2
        nodes a b
        message 65536
        rank 0 stream 7   GGAAAAAA
        rank 1 stream 7   GGEEEEAA
        """
    )
    (row,) = ladder_rows(run)
    assert (row.level, row.time_ns) == ("between ranks, network", 20_000)
    assert breakdown(run)[0].causes[Cause.PEER_WAIT].total_ns == 40_000


def test_an_all_reduce_without_a_size_carries_the_hidden_state_of_its_steps_tokens():
    run = sketch.read(TWO_STEPS.replace("message 65536", "model hidden_size=4096").replace("AA", "BB"))
    (row,) = [row for row in ladder_rows(run) if row.level == "between ranks, peer"]
    assert (row.step_bytes, row.bytes, row.basis) == (8 * 4096 * 2, 2 * 8 * 4096 * 2, "derived")


@pytest.mark.parametrize(("nodes", "level"), [("nodes a a", "inside a node"), ("", "rung unknown")])
def test_a_rung_that_is_not_recorded_is_named_as_far_as_it_is_known(nodes, level):
    run = sketch.read(TWO_STEPS.replace("links 0-1=NV18", "").replace("nodes a a", nodes))
    assert f"between ranks, {level}" in {row.level for row in ladder_rows(run)}
