"""What collectives cross, how fast they are without waiting, and what they should take."""

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.ingest.load import load
from analyzer.measures.links import links
from analyzer.model.topology import Topology
from analyzer.sketch import sketch

EIGHT_H100 = Path(__file__).resolve().parents[2] / "shared/traces/modded_nanogpt_8rank"
H100 = "device NVIDIA H100 80GB HBM3"


def drawn(*facts, message=16 << 20, late=""):
    """Two ranks that reduce for 80 µs, the second late by so many columns."""
    return sketch.read(
        "\n".join(
            [
                *("layout tp=2", f"message {message}", *facts),
                f"rank 0 stream 7   GGGG{'A' * len(late)}AAAAAAAA",
                f"rank 1 stream 7   GGGG{late}AAAAAAAA",
            ]
        )
    )


def only(run):
    (use,) = links(run)
    return use


@pytest.mark.parametrize(
    ("facts", "rung", "nodes"),
    [
        (("nodes a a", "links 0-1=NV18"), "peer", 1),
        (("nodes a a", "links 0-1=PHB"), "pcie", 1),
        (("nodes a a", "links 0-1=SYS"), "socket", 1),
        (("nodes a a",), "node", 1),
        (("nodes a b",), "network", 2),
        ((), "unknown", None),
    ],
)
def test_the_rung_is_the_farthest_link_of_the_group(facts, rung, nodes):
    use = only(drawn(*facts))
    assert (use.rung, use.nodes) == (rung, nodes)


def test_bus_bandwidth_is_of_the_transfer_without_waiting():
    use = only(drawn("nodes a a", late="...."))
    assert (use.transfer_ns, use.message_bytes) == (80_000, 16 << 20)
    assert use.busbw_bytes_per_s == pytest.approx(2 * 1 / 2 * (16 << 20) / 80e-6)


def test_sixteen_mebibytes_between_two_h100_of_a_node_are_held_to_the_measured_table():
    use = only(drawn("nodes a a", "links 0-1=NV18", H100))
    assert use.expected.source == "table"
    assert use.expected.time_ns == pytest.approx(82_170, rel=0.001)
    assert (use.bound, use.band, use.in_node) == ("bandwidth", "normal", None)


@pytest.mark.parametrize(
    ("message", "bound", "band"),
    [
        (16 << 20, "bandwidth", "normal"),
        (4 << 20, "bandwidth", "low"),
        (1 << 20, "bandwidth", "slow"),
        (1024, "latency", "slow"),
    ],
)
def test_the_band_says_how_the_transfer_compares(message, bound, band):
    use = only(drawn("nodes a a", H100, message=message))
    assert (use.bound, use.band) == (bound, band)


def test_a_large_message_in_no_time_means_that_its_size_or_rung_is_wrong():
    assert only(drawn("nodes a a", H100, message=256 << 20)).band == "implausible"


def test_a_group_over_nodes_is_compared_with_the_same_size_inside_one():
    use = only(drawn("nodes a b", H100))
    assert use.in_node.time_ns == pytest.approx(82_170, rel=0.001)
    assert use.expected.time_ns > 2 * use.in_node.time_ns


def test_what_runs_mostly_under_compute_is_not_graded():
    run = sketch.read(
        f"""
        layout tp=2
        nodes a a
        message 1024
        {H100}
        rank 0 stream 7   GGGGGGGGGG
        rank 0 stream 9   ..AAAAAA..
        rank 1 stream 7   GGGGGGGGGG
        rank 1 stream 9   ..AAAAAA..
        """
    )
    assert (only(run).transfer_ns, only(run).band) == (60_000, "unknown")


def test_without_a_topology_nothing_is_expected_but_inside_one_node():
    nccl = only(drawn(H100, message=1024))
    custom = sketch.read(
        f"""
        {H100}
        rank 0 stream 7   GGBGG
        rank 1 stream 7   GGBGG
        """
    )
    assert (nccl.is_custom, nccl.expected, nccl.rung) == (False, None, "unknown")
    assert nccl.in_node.source == "table"
    assert (only(custom).is_custom, only(custom).expected, only(custom).rung) == (True, None, "unknown")


@pytest.mark.slow
@pytest.mark.skipif(not EIGHT_H100.is_dir(), reason="the recorded traces are not here")
def test_eight_h100_of_a_recorded_run_gather_and_scatter_as_the_tables_say():
    run = load(EIGHT_H100)
    placed = replace(run, topology=Topology(dict.fromkeys(run.ranks, "one"), "declared"))
    shown = {use.kind: use for use in links(placed) if use.message_bytes}
    speeds = {kind: (use.busbw_bytes_per_s / 1e9, use.expected_busbw_bytes_per_s / 1e9) for kind, use in shown.items()}
    assert speeds["all_gather"] == pytest.approx((294, 285), rel=0.01)
    assert speeds["reduce_scatter"] == pytest.approx((247, 295), rel=0.01)
    assert {use.band for use in shown.values()} == {"normal"}
