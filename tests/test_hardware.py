"""A site's own figures: read from nccl-tests, written as TOML, used before the figures that ship."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from kineto_files import write

from analyzer.__main__ import shardscope
from analyzer.errors import TraceFormatError
from analyzer.ingest.hardware import read_hardware, to_toml
from analyzer.ingest.load import load
from analyzer.ingest.nccl_tests import read_nccl_tests
from analyzer.measures.expected import Call, expected
from analyzer.measures.links import links
from analyzer.model.hardware import Hardware, LinkFigures, MeasuredCurve
from analyzer.sketch import sketch

H100 = "NVIDIA H100 80GB HBM3"
HEAD = """\
# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 67108864 step: 256(factor) warmup iters: 5 iters: 20
# Using devices"""
COLUMNS = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"""


def devices(*places):
    """Lines of ranks in order, one a (host, device number)."""
    return "\n".join(
        f"#  Rank {rank:2d} Group  0 Pid {1000 + rank:6d} on {host:>10} device {device:2d} [0000:1b:00] {H100}"
        for rank, (host, device) in enumerate(places)
    )


def row(n_bytes, time_us, factor):
    algbw = n_bytes / time_us / 1e3
    timed = f"{time_us:7.5g}  {algbw:6.2f}  {factor * algbw:6.2f}      0"
    return f"{n_bytes:12d}  {n_bytes // 4:12d}     float     sum      -1  {timed}  {timed}"


PAIR = "\n".join(
    [HEAD, devices(("alpha", 0), ("alpha", 1)), COLUMNS, row(1024, 7.5, 1), row(262144, 14, 1), row(67108864, 500, 1)]
)


def test_nccl_tests_tell_operation_ranks_nodes_device_sizes_and_times():
    assert read_nccl_tests(PAIR, "out.log") == [
        MeasuredCurve("all_reduce", 2, 1, H100, "nccl-tests on alpha", (1024, 262144, 67108864), (7.5, 14.0, 500.0))
    ]


def test_tests_one_after_another_are_told_apart():
    second = HEAD.replace("all_reduce_perf", "alltoall_perf")
    places = [(host, at) for host in ("alpha", "beta") for at in range(2)]
    text = "\n".join([PAIR, "# Avg bus bandwidth    : 70.1", second, devices(*places), row(67108864, 500, 0.75)])
    assert [(found.operation, found.ranks, found.nodes) for found in read_nccl_tests(text, "out.log")] == [
        ("all_reduce", 2, 1),
        ("all_to_all", 4, 2),
    ]


def test_an_older_version_that_does_not_name_its_test_is_told_by_its_file_or_by_option():
    old = PAIR.replace("# Collective test starting: all_reduce_perf\n", "")
    assert read_nccl_tests(old, "all_reduce_2gpus.log")[0].operation == "all_reduce"
    assert read_nccl_tests(old, "out.log", "all_reduce")[0].operation == "all_reduce"
    with pytest.raises(TraceFormatError, match="pass --operation all_reduce"):
        read_nccl_tests(old, "out.log")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "no row of nccl-tests in 1 lines"),
        (f"{HEAD}\n{row(1024, 7.5, 1)}", "which says what ran"),
        (PAIR.replace("Rank  1", "Rank  0"), "lists a rank twice"),
        (f"{HEAD}\n{devices(*(('a', at) for at in range(8)))}\n{row(67108864, 500, 1)}", "on 8 ranks has 1.75"),
    ],
)
def test_output_that_cannot_be_trusted_is_one_clear_line(text, says):
    with pytest.raises(TraceFormatError, match=says):
        read_nccl_tests(text, "out.log")


def test_the_command_writes_a_file_that_is_read_back_as_it_was(tmp_path):
    (tmp_path / "out.log").write_text(PAIR)
    done = CliRunner().invoke(
        shardscope,
        ["hardware", str(tmp_path / "out.log"), "-o", str(tmp_path / "hardware.toml")],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    series = read_nccl_tests(PAIR, "out.log")
    assert read_hardware(tmp_path / "hardware.toml") == Hardware(series=tuple(series))
    assert (tmp_path / "hardware.toml").read_text() == to_toml(series)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema = 2", "schema 2, this version reads schema 1"),
        ("[link.warp]\nhop_us = 1.0", "no such link: warp; the links are nvlink, pcie, network"),
        ("[link.pcie]\nbandwith = 1.0", "unknown field `bandwith`"),
        ("[link.pcie]\nhop_us = 0.0", "not above 0"),
        (
            '[[measured]]\noperation = "all_reduce"\nranks = 2\nmessage_bytes = [2, 1]\ntime_us = [1.0, 1.0]',
            "ascending",
        ),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path, text, says):
    (tmp_path / "hardware.toml").write_text(text)
    with pytest.raises(TraceFormatError, match=says):
        read_hardware(tmp_path / "hardware.toml")


def test_what_the_site_measured_comes_before_the_tables():
    site = Hardware(
        series=(MeasuredCurve("all_reduce", 2, 1, H100, "own", (1024, 1 << 20, 1 << 26), (10.0, 40.0, 900.0)),)
    )
    here = expected(Call("all_reduce", 1 << 20, 2), H100, site)
    assert (round(here.time_ns), here.source, here.says) == (
        40_000,
        "table",
        "measured on 2 ranks of H100-SXM5-80GB here",
    )
    assert expected(Call("all_reduce", 1 << 20, 4), H100, site).source == "line"
    assert expected(Call("all_gather", 1 << 20, 2), H100, site) == expected(Call("all_gather", 1 << 20, 2), H100)


def test_a_link_as_stated_replaces_the_tables_of_that_link_only():
    site = Hardware({"network": LinkFigures(25.0, 3.0)})
    across = expected(Call("all_reduce", 64 << 20, 16, 2), H100, site)
    assert across.time_ns == pytest.approx(6_600 + 28 * 600 + 2 * 3_000 + 2 * 15 / 16 * (64 << 20) / 25)
    assert (across.source, across.says) == (
        "constants",
        "NCCL's constants for a ring of 16 ranks, over the link as stated",
    )
    assert expected(Call("all_reduce", 1024, 2), H100, site) == expected(Call("all_reduce", 1024, 2), H100)


def test_a_machine_that_no_table_has_is_known_by_what_is_stated():
    call = Call("all_reduce", 1 << 20, 2)
    assert expected(call, "Unheard-of 9000") is None
    assert expected(call, "Unheard-of 9000", Hardware({"pcie": LinkFigures(10.0)})).source == "constants"


def test_the_file_beside_the_traces_and_the_option_both_set_what_is_expected(tmp_path):
    run = sketch.read(
        f"layout tp=2\nnodes a a\nmessage 1048576\ndevice {H100}\n"
        "rank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA"
    )
    series = [MeasuredCurve("all_reduce", 2, 1, "", "own", (1024, 1 << 20, 1 << 26), (10.0, 40.0, 900.0))]
    place = write(run, tmp_path / "run")
    (place / "run.json").write_text('{"topology": {"nodes": {"0": "a", "1": "a"}}}')
    (place / "hardware.toml").write_text(to_toml(series))
    assert [round(use.expected.time_ns) for use in links(load(place))] == [40_000]
    assert [round(use.expected.time_ns) for use in links(replace(run, hardware=Hardware(series=tuple(series))))] == [
        40_000
    ]
    stated = tmp_path / "stated.toml"
    stated.write_text(to_toml([replace(series[0], time_us=(10.0, 80.0, 900.0))]))
    command = ["diagnose", str(place), "--hardware", str(stated), "--format", "json"]
    done = CliRunner().invoke(shardscope, command, catch_exceptions=False)
    assert [row["link"]["expected_ns"] for row in json.loads(done.stdout)["collectives"]] == [80_000]
