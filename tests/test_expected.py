"""Expected times of collectives: held to the measured tables with the size under test left out."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from analyzer.measures.curves import TimeCurve, doubt, read_curves
from analyzer.measures.expected import COLLECTIVES, EXCHANGES, Call, expected, expected_exchange, platform

H100 = "NVIDIA H100 80GB HBM3"
DATA = Path(__file__).resolve().parents[1] / "analyzer/data"
FETCHED = Path(__file__).resolve().parents[2] / "shared/data"


def errors(table, size, keys):
    """Relative error of each inner point of each curve, estimated from the others."""
    series = defaultdict(lambda: defaultdict(list))
    with (DATA / table).open() as lines:
        for row in csv.DictReader(lines):
            series[tuple(row[key] for key in keys)][float(row[size])].append(float(row["time_us"]) * 1e3)
    found = defaultdict(list)
    for key, points in series.items():
        times = {at: float(np.median(values)) for at, values in points.items()}
        for at in sorted(times)[1:-1]:
            left = TimeCurve.of({other: time for other, time in times.items() if other != at})
            found[key].append(abs(left.at(at) / times[at] - 1))
    return found


@pytest.mark.parametrize(
    ("operation", "points", "median", "ninetieth"),
    [
        ("all_reduce", 1320, 0.030, 0.180),
        ("all_gather", 323, 0.034, 0.157),
        ("reduce_scatter", 323, 0.035, 0.177),
        ("all_to_all", 266, 0.040, 0.175),
    ],
)
def test_a_size_left_out_is_estimated_within_five_percent_in_the_median(operation, points, median, ninetieth):
    found = errors("collectives.csv", "message_bytes", COLLECTIVES)
    own = np.concatenate([values for key, values in found.items() if key[2] == operation and values])
    assert (own.size, np.median(own), np.quantile(own, 0.9)) == (
        points,
        pytest.approx(median, abs=0.002),
        pytest.approx(ninetieth, abs=0.003),
    )
    assert np.median(own) <= 0.05
    assert np.quantile(own, 0.9) <= 0.20


def test_a_number_of_tokens_left_out_is_estimated_as_well():
    own = np.concatenate(list(errors("expert_exchanges.csv", "tokens_per_rank", EXCHANGES).values()))
    assert (own.size, np.median(own), np.quantile(own, 0.9)) == (
        1784,
        pytest.approx(0.014, abs=0.002),
        pytest.approx(0.074, abs=0.003),
    )


@pytest.mark.skipif(not FETCHED.exists(), reason="the measured tables are not at hand")
@pytest.mark.parametrize(
    ("own", "theirs", "size"),
    [("collectives.csv", "collectives.csv", "bytes"), ("expert_exchanges.csv", "ep_alltoall.csv", "tokens_per_rank")],
)
def test_the_tables_of_the_package_hold_every_figure_measured(own, theirs, size):
    mine = read_curves(own, "message_bytes" if size == "bytes" else size, "source")
    with (FETCHED / theirs).open() as lines:
        rows = list(csv.DictReader(lines))
    assert (DATA / own).read_text().count("\n") - 1 == len(rows)
    assert {key for (key,) in mine} == {row["source"] for row in rows}


def test_a_measured_size_is_what_was_measured():
    told = expected(Call("all_reduce", 1 << 20, 8), H100)
    assert (round(told.time_ns), told.source) == (25_400, "table")
    assert told.says == "measured on 8 ranks of H100-SXM5-80GB"
    assert (told.low_ns, told.high_ns) == (pytest.approx(told.time_ns / 1.2), pytest.approx(told.time_ns * 1.2))


def test_an_engines_own_all_reduce_is_quicker_than_that_of_nccl_for_small_messages():
    own = expected(Call("all_reduce", 65536, 8, is_custom=True), H100)
    nccl = expected(Call("all_reduce", 65536, 8), H100)
    assert own.time_ns < nccl.time_ns / 2


def test_beyond_the_sizes_measured_the_range_widens_and_says_so():
    told = expected(Call("all_reduce", 1 << 31, 8), H100)
    assert told.says.endswith("beyond the sizes measured (512 B to 512 MiB)")
    assert told.high_ns / told.time_ns == pytest.approx(1.2 + 2 * 0.25)


def test_another_number_of_ranks_is_scaled_as_a_ring():
    told = expected(Call("all_reduce", 1 << 20, 6), H100)
    assert (told.source, told.says) == ("line", "measured on 4 ranks of H100-SXM5-80GB, scaled to 6 as a ring")


def test_over_nodes_without_a_table_nccls_constants_are_left():
    told = expected(Call("all_reduce", 65536, 16, nodes=2), H100)
    assert (told.source, told.high_ns / told.low_ns) == ("constants", pytest.approx(8.0))


def test_nothing_is_expected_of_links_that_nobody_measured():
    assert platform("AMD Instinct MI300X") is None
    assert expected(Call("all_reduce", 65536, 8), "AMD Instinct MI300X") is None
    assert expected(Call("all_reduce", 65536, 1), H100) is None


def test_an_expert_exchange_is_looked_up_by_tokens():
    told = expected_exchange(H100, "deepep_ll", "dispatch", 64, (8, 1))
    assert (round(told.time_ns), told.says) == (
        79_376,
        "measured with vllm-0.24-deepep_ll on 8 ranks of H100-SXM5-80GB",
    )
    assert expected_exchange(H100, "deepep_ll", "dispatch", 64, (7, 1)) is None


def test_the_range_inside_holds_ninety_percent():
    assert doubt(TimeCurve.of({1.0: 10.0, 2.0: 20.0, 4.0: 40.0}), 3.0) == pytest.approx(1.2)


def test_a_reduction_over_nodes_has_all_nics_of_a_node_and_an_exchange_between_pairs_its_own():
    reduced = expected(Call("all_reduce", 1 << 30, 16, 2), H100)
    exchanged = expected(Call("all_to_all", 1 << 30, 16, 2), H100)
    assert reduced.time_ns == pytest.approx(6_600 + 28 * 600 + 2 * 2_700 + 2 * 15 / 16 * (1 << 30) / 360)
    assert exchanged.time_ns == pytest.approx(6_600 + 14 * 600 + 1 * 2_700 + 15 / 16 * (1 << 30) / 50)
    assert reduced.says == "NCCL's constants for a ring of 16 ranks, one 400 Gbit/s NIC a rank assumed"
    assert (reduced.high_ns / reduced.time_ns, reduced.time_ns / reduced.low_ns) == pytest.approx((4, 2))
