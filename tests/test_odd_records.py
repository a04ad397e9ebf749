"""Records are checked before claims are made of them: every odd input with its right value, and one of another kind."""

import json

import odd_records as odd
import pytest

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import TraceFormatError
from analyzer.ingest.load import load
from analyzer.plugins import offers

RULES = list(offers(rules, "check").values())
ALL = {rule.code for rule in RULES if rule.rests_on}
RCCL_GEMM, TRITON = "Cijk_Alik_Bljk_BBS_BH_MT128x128x64", "triton_poi_fused_add_mul_0"


def diagnosed(*places):
    """The report of what lies there."""
    return diagnose(load(*places), RULES)


def shares(report):
    """Compute of each rank's window."""
    return [round(row.compute_ns / row.window_ns, 3) for row in report.breakdown.per_rank]


def found(report):
    """Codes of the findings that warn."""
    return {row.rule for row in report.findings if row.severity != "info"}


def unasked(report):
    """Codes of the rules that could not be asked."""
    return {row.rule for row in report.rules if row.outcome == "unknown"}


# Entries of no duration, and durations that are all zero


@pytest.mark.parametrize(
    ("device", "name", "count", "took", "marks_first"),
    [(odd.H100, odd.GEMM, 400, 25, False), (odd.MI300X, odd.CIJK, 300, 60, False), (odd.H100, TRITON, 250, 33, True)],
)
def test_an_entry_of_no_duration_takes_nothing_off_a_kernel(tmp_path, device, name, count, took, marks_first):
    file = odd.back_to_back(device, name=name, count=count, took=took, marks_first=marks_first)
    report = diagnosed(file.write(tmp_path))
    (row,) = report.breakdown.per_rank
    assert (row.window_ns, row.compute_ns) == (count * took * 1000, count * took * 1000)
    assert (report.run.warnings, report.findings) == ([], [])


@pytest.mark.parametrize(("device", "count"), [(odd.H100, 16), (odd.MI300X, 50)])
def test_durations_that_are_all_zero_are_no_durations(tmp_path, device, count):
    file = odd.File(device)
    for at in range(count):
        file.kernel(1000 + 60 * at, 0, launched=900 + 60 * at)
    report = diagnosed(file.write(tmp_path))
    text = "device entry with a duration of 0, as all have: how long anything ran was not recorded"
    assert report.run.warnings == [f"{text} ×{count}"]
    assert report.verdict == "device time is unknown: device entry with a duration of 0, as all have"
    assert (report.findings, report.scaling.bounds) == ([], [])
    assert unasked(report) >= ALL


# Records that are lost


@pytest.mark.parametrize(
    ("device", "held", "lost", "whole_every", "short"), [(odd.MI300X, 500, 163, 5, 16), (odd.H100, 300, 90, 4, 15)]
)
def test_replays_with_a_hole_lack_kernels_and_idle_time_is_unknown(tmp_path, device, held, lost, whole_every, short):
    report = diagnosed(odd.replays(device, held=held, lost=lost, whole_every=whole_every).write(tmp_path))
    assert report.run.warnings == [
        (
            f"{short} of 20 graph replays lack kernels that another replay of their graph holds, at least "
            f"{short * lost:,}: what ran there reads as idle time"
        )
    ]
    assert report.verdict.startswith("records are missing, how long the device was idle is unknown: at least ")
    assert {"Q101", "Q601", "Q602", "Q603"} <= unasked(report)
    assert (report.findings, report.scaling.bounds) == ([], [])


def test_another_graph_with_fewer_kernels_lacks_none(tmp_path):
    assert diagnosed(odd.two_graphs().write(tmp_path)).run.warnings == []


@pytest.mark.parametrize(
    ("device", "count", "held", "kernel_us", "missing"),
    [(odd.MI300X, 10, 8, 100, 72), (odd.H100, 12, 40, 30, 440)],
)
def test_replays_of_which_one_alone_has_its_kernels(tmp_path, device, count, held, kernel_us, missing):
    report = diagnosed(odd.emptied_replays(device, count=count, held=held, kernel_us=kernel_us).write(tmp_path))
    assert report.run.warnings == [
        (
            f"{count - 1} of {count} graph replays lack kernels that another replay of their graph holds, at least "
            f"{missing}: what ran there reads as idle time"
        )
    ]
    assert found(report) == set()
    assert "Q602" in unasked(report)


@pytest.mark.parametrize(
    ("device", "count", "period", "lost", "missing"), [(odd.MI300X, 2000, 21, 0.3, 588), (odd.H100, 900, 40, 0.2, 169)]
)
def test_launches_without_kernels_are_no_launch_bound_run(tmp_path, device, count, period, lost, missing):
    report = diagnosed(odd.lost_launches(device, count=count, period=period, lost=lost).write(tmp_path))
    text = "launch without a kernel: what it ran is missing from every sum and reads as idle time"
    assert report.run.warnings == [f"{text} ×{missing}"]
    assert found(report) == set()
    assert "Q602" in unasked(report)
    (row,) = report.breakdown.per_rank
    assert row.sync_causes.unknown_ns == row.sync_ns > 0  # why a device idles is not told from records that are lost


def test_one_lost_launch_of_many_changes_no_verdict(tmp_path):
    file = odd.File()
    for at in range(400):
        start = 1000 + 60 * at
        file.launch(start - 9, 4) if at == 200 else file.kernel(start, 20, launched=start - 9, call=4)
    report = diagnosed(file.write(tmp_path))
    assert len(report.run.warnings) == 1
    assert found(report) == {"Q602"}


@pytest.mark.parametrize(
    ("device", "name", "call_us", "rounds"), [(odd.H100, TRITON, 299_990, 40), (odd.MI300X, RCCL_GEMM, 20_000, 20)]
)
def test_first_use_of_a_kernel_is_one_call_and_not_launch_bound_work(tmp_path, device, name, call_us, rounds):
    report = diagnosed(odd.first_use(device, call_us=call_us, name=name, rounds=rounds).write(tmp_path))
    (warning,) = report.run.warnings
    assert warning.startswith(f"first use of a kernel: the device was idle for {round(call_us / 1000)}")
    assert "Q602" not in found(report)
    assert "Q602" in unasked(report)


@pytest.mark.parametrize(("device", "name"), [(odd.H100, "capture_32_FULL"), (odd.MI300X, "capture_512_PIECEWISE")])
def test_a_capture_alone_is_no_serving(tmp_path, device, name):
    file = odd.File(device).operation(name, 0, 58_000, "user_annotation")
    for start in (100, 57_000):
        file.kernel(start, 2, "fill_kernel", launched=start - 50)
    report = diagnosed(file.write(tmp_path))
    assert report.run.warnings[0].startswith("nothing but the capture of graphs was recorded: ")
    assert report.verdict == "device time is unknown: nothing but the capture of graphs was recorded"
    assert report.findings == []


def test_a_capture_without_a_name_is_told_by_its_calls(tmp_path):
    file = odd.File().launch(1000, 2, call="StreamBeginCapture")
    for at in range(100):
        file.launch(1010 + 10 * at, 5)
    file.launch(2100, 2, call="StreamEndCapture").kernel(2200, 3, launched=2190)
    (warning,) = diagnosed(file.write(tmp_path)).run.warnings
    assert warning.startswith("nothing but the capture of graphs was recorded: ")


# A device of which nothing was recorded


@pytest.mark.parametrize(("device", "call"), [(odd.H100, "nccl:all_reduce"), (odd.MI300X, "c10d::allreduce_")])
def test_host_operations_are_neither_compute_nor_communication_of_a_device(tmp_path, device, call):
    for rank in range(2):
        file = odd.File(device, host=4000 + rank)
        for at in range(100):
            file.operation("aten::linear", 1000 + 100 * at, 40).operation(call, 1045 + 100 * at, 30)
        file.write(tmp_path, f"rank{rank}.pt.trace.json", rank=rank, world=2)
    report = diagnosed(tmp_path)
    assert report.verdict == "device time is unknown: a device is listed but none of its work was recorded"
    assert report.run.warnings == ["a device is listed but none of its work was recorded ×2 (ranks 0-1)"]
    assert [(row.compute_ns, row.communication_ns, row.movement_ns) for row in report.breakdown.per_rank] == [
        (0, 0, 0)
    ] * 2
    assert all(row.sync_causes.unknown_ns == row.window_ns for row in report.breakdown.per_rank)
    assert (report.collectives, report.findings, report.scaling.bounds) == ([], [], [])
    assert [row.verdict for row in report.questions[1:4]] == ["unknown"] * 3


def test_runtime_calls_without_device_records_are_no_device_time(tmp_path):
    file = odd.File("NVIDIA GeForce RTX 4060")
    for start in (1000, 439_000, 877_000):
        file.operation("aten::randn", start, 350_000).operation("aten::copy_", start + 350_050, 86_800)
        file.complete("cuda_runtime", "cudaMemcpyAsync", start + 350_060, 86_500, 4000, 4000, correlation=start)
    report = diagnosed(file.write(tmp_path))
    assert report.verdict == "device time is unknown: a device is listed but none of its work was recorded"
    assert report.findings == []


def test_a_host_run_beside_an_idle_device_is_read_as_one_of_the_host(tmp_path):
    file = odd.File()
    for at in range(20):
        file.operation("aten::linear", 1000 + 100 * at, 40)
        file.operation("gloo:all_reduce", 1045 + 100 * at, 30, "user_annotation")
    report = diagnosed(file.write(tmp_path))
    assert report.run.warnings == [
        "a device is listed but none of its work was recorded: host operations are shown instead"
    ]
    assert shares(report) == [0.405]


# Stamps far from all others


def _stamped(at, count, **base):
    """Kernels of 80 µs every 100 µs from a time on, and some more at other stamps."""
    file = odd.File()
    for number in range(10):
        file.kernel(at + 100 * number, 80, launched=at + 100 * number - 30)
    for stamp in count:
        file.kernel(stamp, 5)
    return file.document(**base)


@pytest.mark.parametrize(
    ("stamps", "at", "base_ns"),
    [
        ([0.0] * 20, 6_672_431_682_905.5, 0),  # never stamped
        ([0.0], 1_700_000_000_000_000.0, 0),  # one of them, absolute times
        ([5_000_000.0 - 950_400_000_000], 950_400_000_000.0, odd.BASE_NS),  # eleven days behind, with a clock base
        ([1_700_000_000_000_000.0] * 2, 5_000.0, odd.BASE_NS),  # of another epoch
        ([5_000_000_000_000.0], 5_000_000_000.0, odd.BASE_NS),  # in ns among µs
    ],
)
def test_stamps_far_from_all_others_are_left_out_and_counted(tmp_path, stamps, at, base_ns):
    report = diagnosed(odd.write(tmp_path, "trace.json", _stamped(at, stamps, base_ns=base_ns)))
    times = f" ×{len(stamps)}" if len(stamps) > 1 else ""
    assert report.run.warnings == [
        (
            "event stamped an hour or more from all others (zero, another epoch or unit), left out: its time is missing from "
            f"every sum{times}"
        )
    ]
    (row,) = report.breakdown.per_rank
    assert (row.window_ns, row.compute_ns) == (980_000, 800_000)


def test_a_start_that_is_no_number_is_left_out_and_counted(tmp_path):
    document = _stamped(5_000.0, [5_100.0])
    document["traceEvents"][-1]["ts"] = float("nan")
    report = diagnosed(odd.write(tmp_path, "trace.json", document))
    assert [warning.partition(",")[0] for warning in report.run.warnings] == [
        "event with broken JSON",
        "complete event whose start is no number or out of range",
    ]
    assert shares(report) == [0.816]


# Several devices in one file


@pytest.mark.parametrize(
    ("file", "compute"),
    [
        (odd.two_devices(), [0.816, 0.426]),
        (odd.two_devices((30, 70, 10), odd.MI300X), [0.323, 0.722, 0.11]),
        (odd.by_turns(), [0.526, 0.526]),
        (odd.merged(), [0.91, 0.456]),
        (odd.merged((20, 40, 80), odd.H100, title="rank{} {}"), [0.183, 0.365, 0.728]),
    ],
    ids=["one process", "three devices", "by turns", "merged", "merged by another tool"],
)
def test_each_device_of_a_file_is_a_rank(tmp_path, file, compute):
    report = diagnosed(file.write(tmp_path))
    assert (report.run.ranks, shares(report)) == (list(range(len(compute))), compute)
    text = f"one file holds the work of {len(compute)} devices: each is shown as a rank of its own ×{len(compute)}"
    assert report.run.warnings == [f"{text} (ranks 0-{len(compute) - 1})"]
    run = load(tmp_path)
    assert all((trace.calls.correlation >= 0).all() for trace in run.traces)
    assert {len(trace.calls) for trace in run.traces} <= {0, len(run.traces[0].activities)}


def test_the_devices_of_a_rank_that_states_its_world(tmp_path):
    report = diagnosed(odd.by_turns().write(tmp_path, rank=0, world=2))
    assert (report.run.ranks, report.run.world_size, shares(report)) == ([0, 1], 2, [0.526, 0.526])


def test_a_merged_file_that_does_not_say_whose_launches_are_whose_is_refused(tmp_path):
    folder = odd.merged(title="").write(tmp_path)
    with pytest.raises(TraceFormatError, match=r"cannot be told apart; give each rank's own trace$"):
        load(folder / "trace.json")


@pytest.mark.parametrize(
    "last", [{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 2100}, None]
)
def test_the_second_of_two_traces_in_one_file_is_not_read_and_said(tmp_path, last):
    documents = [_stamped(1000.0, [], base_ns=odd.BASE_NS + late) for late in (0, 10**11)]
    for document in documents:
        document["traceEvents"] += [last] if last else []
    report = diagnosed(odd.write(tmp_path, "trace.json", "".join(map(json.dumps, documents))))
    assert report.run.warnings == ["text behind the end of the JSON, not read: perhaps a second trace in the same file"]
    assert shares(report) == [0.816]


# Traces that are no ranks of one job


def _two(folder, second, *, world=2, **stated):
    odd.pair_rank().write(folder, "rank0.pt.trace.json", rank=0, world=world)
    return second.write(folder, "rank1.pt.trace.json", rank=1, **{"world": 2} | stated)


def test_two_ranks_of_one_job_are_no_misfit(tmp_path):
    assert diagnosed(_two(tmp_path, odd.pair_rank(3.0))).run.warnings == []


@pytest.mark.parametrize(("apart_s", "text"), [(3600, "3,600 s"), (10, "10.0 s")])
def test_ranks_of_other_times_are_said(tmp_path, apart_s, text):
    report = diagnosed(_two(tmp_path, odd.pair_rank(3.0), base_ns=odd.BASE_NS + apart_s * 10**9))
    assert report.run.warnings == [
        (
            f"the traces are 2 sets recorded at other times, up to {text} apart: different runs, or clocks that are wrong by "
            "as much"
        )
    ]
    assert {"Q101", "Q301", "Q302", "Q303", "Q603"} <= unasked(report)
    assert report.scaling.bounds == []


@pytest.mark.parametrize("unit", [1000.0, 1_000_000.0])
def test_a_rank_that_counts_in_another_unit_is_said(tmp_path, unit):
    report = diagnosed(_two(tmp_path, odd.pair_rank(3.0, unit=unit)))
    assert report.run.warnings[0].endswith("and each kernel takes as many times longer: another unit of time")
    assert report.findings == []


@pytest.mark.parametrize("rounds", [80, 60])
def test_a_rank_recorded_much_longer_is_said(tmp_path, rounds):
    report = diagnosed(_two(tmp_path, odd.pair_rank(3.0, rounds=rounds)))
    assert report.run.warnings[0].endswith("rank 0 for 940 µs: shares of such windows do not compare")
    assert report.run.warnings[0].startswith("rank 1 was recorded for ")
    assert found(report) == set()


@pytest.mark.parametrize("world", [64, 4])
def test_ranks_of_worlds_of_other_sizes_are_said(tmp_path, world):
    report = diagnosed(_two(tmp_path, odd.pair_rank(3.0), world=world))
    assert report.run.warnings[0] == f"the traces state worlds of 2 and {world} ranks: they are of different jobs"
    assert {"Q101", "Q301", "Q603"} <= unasked(report)


@pytest.mark.parametrize(
    "name", ["h_1.1700000000000000000 (1).pt.trace.json", "copy/h_1.1700000000000000000.pt.trace.json"]
)
def test_one_file_under_two_names_is_one_rank(tmp_path, name):
    file = odd.pair_rank()
    file.write(tmp_path, "h_1.1700000000000000000.pt.trace.json")
    file.write((tmp_path / name).parent, (tmp_path / name).name)
    report = diagnosed(tmp_path)
    assert report.run.ranks == [0]
    assert report.run.warnings[0] == (
        "file that holds the same records as another, left out: one recording under two names"
    )
