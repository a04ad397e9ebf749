"""Numbers read as people write them."""

import pytest

from analyzer import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_999, "10.0 µs"),
        (12_345, "12.3 µs"),
        (99_999_999, "100 ms"),
        (1_234_500_000, "1.23 s"),
    ],
)
def test_durations_show_three_digits(ns, text):
    assert units.duration(ns) == text


def test_a_share_that_is_not_nothing_never_reads_as_nothing():
    assert units.share(0.0001) == "<0.1 %"
    assert units.share(0) == "0.0 %"
    assert units.share(0.125) == "12.5 %"


def test_runs_of_ranks_are_shortened():
    assert units.ranks([5, 0, 1, 2]) == "0-2, 5"


def test_sizes_are_binary_and_rates_decimal():
    assert units.size(1536) == "1.50 KiB"
    assert units.rate(45e9) == "45.0 GB/s"
