"""Holistic Trace Analysis as the oracle: where all collectives are NCCL's, our columns give its temporal breakdown.

Its classes are other than ours: compute is every kernel that is not NCCL's by name (layout copies, fills by a kernel
and cache writes too), non-compute is what NCCL, memcpy and memset add to that. So the columns are summed up its way here.

It leaves out what it cannot tie to a step. With more than one `ProfilerStep` in a trace it keeps a device entry only
where the launch was recorded and started before the end of the last step; by default it drops all of the last step
too, which its own option includes. Work that was launched before the recording began, which opens the window of many
traces, so falls away: it is cut from our columns by the same rule. It also takes every event that states a stream for
device work, among them the host operations that Inductor writes: these are read from the file and put beside our
columns. A second test takes both out of the files that it reads, and nothing out of our columns.
"""

import gzip
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from analyzer.ingest.events.device import WORK
from analyzer.ingest.hta import second_opinion
from analyzer.ingest.load import load
from analyzer.intervals import Intervals
from analyzer.measures.breakdown import breakdown

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_spec("hta") is None, reason="traceinsight is not installed; make oracle installs it"),
]
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
NO_CORPUS = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the fetched trace corpus is not at hand; it is never committed"
)


def corpus(test):
    return pytest.mark.corpus(NO_CORPUS(test))


ROUNDING_NS = 10
"""It adds up doubles of microseconds: one of 6.3e12 µs (the modded_nanogpt sets) holds steps of 1 ns."""
WHOLE = (
    "ao_ep_moe_b200",
    "hta_dlrm_a100",
    "hta_sampled_2rank_of_128",
    "param_dlrm_8rank",
    "torchrec_resnet18_2rank",
    "hta_small/nccl_data.json.gz",
    "amd_hpctraining/merged_nccl_only.json.gz",
)
"""All launches recorded and no host operation with a stream: nothing is cut or added."""
CUT = (
    "torchrec_a2a_optimizer_4rank",
    "torchrec_a2a_optimizer2_4rank",
    "torchrec_a2a_optimizer4_4rank",
    "torchrec_a2a_qcomm_4rank",
    "modded_nanogpt_8rank",
    "modded_nanogpt_before_after/modded-nanogpt-current-gpu-rank-00-chrome-trace.json.gz",
    "modded_nanogpt_before_after/modded-nanogpt-hook-gpu-rank-00-chrome-trace.json.gz",
)
"""Their windows open on work whose launches lie before the recording; modded_nanogpt has Inductor's operations too."""
NOTHING = Intervals.empty()
NARROW = "tracelens_mi300_ddp_resnet"
"""Also all NCCL, but pandas 3 does not let traceinsight 0.6.1 read it."""


def terms(compute, busy):
    """Window, compute, non-compute and idle of two sets of time."""
    window_ns = int(busy.end_ns[-1] - busy.start_ns[0])
    return [window_ns, compute.total_ns, busy.total_ns - compute.total_ns, window_ns - busy.total_ns]


def is_compute(name):
    return not name.startswith(("nccl", "Memcpy", "Memset"))


def here(trace, rows=slice(None), more=NOTHING):
    """The four figures of the chosen activities, with more time that counts as compute."""
    chosen = trace.activities.take(rows)
    compute = chosen.name.where(is_compute)
    return terms(Intervals.from_arrays(chosen.start_ns[compute], chosen.end_ns[compute]) | more, chosen.union() | more)


def there(row):
    return [row["window_ns"], row["compute_ns"], row["non_compute_ns"], row["idle_ns"]]


def steps(trace):
    return trace.annotations.take(trace.annotations.name.where(lambda name: name.startswith("ProfilerStep#")))


def kept(trace):
    """Activities that it keeps: launched by a recorded call that starts no later than the last step ends."""
    if len(set(steps(trace).name.tolist())) < 2:
        return np.ones(len(trace.activities), np.bool_)
    calls = trace.calls.start_ns <= steps(trace).end_ns.max()
    return np.isin(trace.activities.correlation, trace.calls.correlation[calls])


def document(trace):
    return json.loads(gzip.decompress(Path(trace.origin.path).read_bytes()))


def states_stream(event):
    """A host event that states a stream, as the `cpu_op` of a Triton kernel does."""
    stream = event.get("args", {}).get("stream")
    return event.get("ph") == "X" and event["cat"] not in WORK and isinstance(stream, int) and stream >= 0


def host_work(trace):
    """The time that it takes for device work beside our activities."""
    held = document(trace)
    found = [event for event in held["traceEvents"] if states_stream(event)]
    start = np.array([held.get("baseTimeNanoseconds", 0) + round(1000 * event["ts"]) for event in found], np.int64)
    length = np.array([round(1000 * event["dur"]) for event in found], np.int64)
    return Intervals.from_arrays(start, start + length)


@cache
def opinions(name):
    """A set as read here, and what Holistic Trace Analysis says of each rank."""
    run = load(CORPUS / name)
    return run, second_opinion(run)["breakdown"]


@corpus
@pytest.mark.parametrize("name", WHOLE)
def test_its_figures_are_ours_summed_up_its_way(name):
    run, rows = opinions(name)
    for trace, row in zip(run.traces, rows, strict=True):
        assert there(row) == pytest.approx(here(trace), abs=ROUNDING_NS, rel=0)


@corpus
@pytest.mark.parametrize("name", WHOLE)
def test_its_idle_time_is_what_our_breakdown_leaves_of_the_window(name):
    run, rows = opinions(name)
    for part, row in zip(breakdown(run), rows, strict=True):
        assert row["idle_ns"] == pytest.approx(part.window.total_ns - part.device_busy_ns, abs=ROUNDING_NS, rel=0)


@corpus
@pytest.mark.parametrize("name", CUT)
def test_its_figures_are_ours_without_the_work_that_was_launched_before_the_recording(name):
    run, rows = opinions(name)
    for trace, row in zip(run.traces, rows, strict=True):
        assert there(row) == pytest.approx(here(trace, kept(trace), host_work(trace)), abs=ROUNDING_NS, rel=0)


@corpus
@pytest.mark.parametrize("name", [CUT[1], CUT[6]])
def test_a_file_without_step_marks_and_host_streams_leaves_it_nothing_to_cut(name, tmp_path):
    run = load(CORPUS / name)
    trace = run.traces[0]
    held = document(trace)
    for event in held["traceEvents"]:
        event["name"] = str(event.get("name", "")).replace("ProfilerStep#", "Step ")
        if states_stream(event):
            del event["args"]["stream"]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(held))
    row = second_opinion(load(path))["breakdown"][0]
    assert there(row) == pytest.approx(here(trace), abs=ROUNDING_NS, rel=0)


@corpus
def test_an_rccl_set_agrees_or_is_unknown_with_the_cure():
    run, (row,) = opinions(NARROW)
    if "unknown" in row:
        assert row["unknown"].endswith("; pip install 'pandas<3' cures it")
    else:
        assert there(row) == pytest.approx(here(run.traces[0], kept(run.traces[0])), abs=ROUNDING_NS, rel=0)


# One rank, drawn by hand, µs:
#   host   |step 1: op 0-40, launch 10-14       |step 2: op 60-110, launch 70-74, sync 80-104|
#   gemm   20-40                                90-100
#   NCCL          30-50
#   copy                              84-86
#   and a kernel 0-8 whose launch was not recorded.
def drawn(folder, rank, events):
    """A trace file of one rank; events are (category, name, start, end, stream or None, correlation or None)."""
    rows = []
    for category, name, start, end, stream, correlation in events:
        args = {} if correlation is None else {"correlation": correlation}
        place = {"pid": 4711, "tid": 4711}
        if stream is not None:
            args |= {"stream": stream, "device": rank}
            place = {"pid": rank, "tid": stream}
        rows.append({"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "args": args, **place})
    path = folder / f"rank{rank}.json"
    path.write_text(
        json.dumps({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": rows})
    )


def one_rank(late=0):
    return [
        ("user_annotation", "ProfilerStep#1", 0, 60, None, None),
        ("user_annotation", "ProfilerStep#2", 60, 112, None, None),
        ("cpu_op", "aten::mm", 1, 40, None, None),
        ("cuda_runtime", "cudaLaunchKernel", 10, 14, None, 1),
        ("cuda_runtime", "cudaLaunchKernel", 16, 18, None, 2),
        ("cpu_op", "aten::mm", 62, 110, None, None),
        ("cuda_runtime", "cudaMemcpyAsync", 66, 68, None, 3),
        ("cuda_runtime", "cudaLaunchKernel", 70, 74, None, 4),
        ("cuda_runtime", "cudaDeviceSynchronize", 80, 104, None, 5),
        ("kernel", "gemm", 0, 8, 7, 99),
        ("kernel", "gemm", 20, 40, 7, 1),
        ("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 30 + late, 50, 20, 2),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 84, 86, 7, 3),
        ("kernel", "gemm", 90, 100, 7, 4),
    ]


def test_a_drawn_run_is_told_rank_by_rank(tmp_path):
    drawn(tmp_path, 0, one_rank())
    drawn(tmp_path, 1, one_rank(late=12))
    said = second_opinion(load(tmp_path))
    same = {"window_ns": 80_000, "compute_ns": 30_000, "device_entries": 4, "other_entries": 0, "entries_read": 5}
    assert said["breakdown"] == [
        {"rank": 0, **same, "non_compute_ns": 12_000, "idle_ns": 38_000},
        {"rank": 1, **same, "non_compute_ns": 10_000, "idle_ns": 40_000},
    ]


def test_the_critical_path_is_that_of_the_rank_the_others_wait_for(tmp_path):
    drawn(tmp_path, 0, one_rank())
    drawn(tmp_path, 1, one_rank(late=12))
    path = second_opinion(load(tmp_path))["critical_path"]
    # Of step 2: 18 µs of the operation itself, 2 and 4 µs of two calls; a blocking call weighs nothing.
    assert (path["rank"], path["annotation"], path["length_ns"]) == (1, "ProfilerStep#2", 24_000)
    assert path["bound_ns"] == {"cpu_bound": 24_000}
    assert path["longest"][:2] == [
        {"name": "aten::mm", "time_ns": 18_000},
        {"name": "cudaLaunchKernel", "time_ns": 4_000},
    ]


def test_a_list_of_events_at_the_top_is_unknown_to_it(tmp_path):
    drawn(tmp_path, 0, one_rank())
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(json.loads(path.read_text())["traceEvents"]))
    said = second_opinion(load(path))
    assert said["breakdown"][0]["unknown"] == "it stopped with AttributeError: 'list' object has no attribute 'items'"
