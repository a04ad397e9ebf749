"""Small inputs with known answers: M01 to M12 of the case list, where other tools go wrong."""

import json

import pytest

from analyzer.ingest.load import load
from analyzer.measures.breakdown import breakdown
from analyzer.model.kind import Cause, Kind

STEPS = 50
GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TRUTH = {Kind.COMPUTE: 3_000_000, Kind.COMMUNICATION: 2_000_000, Kind.MOVEMENT: 250_000, Kind.SYNC: 735_000}


def _kernel(name, ts, dur, rank, category="kernel", **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": rank,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": {"stream": 7, "device": rank, **args},
    }


def _events(collective, rank, extra=()):
    events = []
    for step in range(STEPS):
        start = 1000.0 + 120 * step
        events += [
            _kernel(GEMM, start, 60.0, rank),
            _kernel(collective, start + 60, 40.0, rank),
            _kernel("Memcpy DtoH (Device -> Pinned)", start + 100, 5.0, rank, "gpu_memcpy", bytes=4096),
        ]
        events += [make(start, rank) for make in extra]
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 9,
                "tid": 9,
                "ts": start,
                "dur": 119.0,
                "args": {},
            }
        )
    return events


def _write(folder, events_of, *, names="rank{}.pt.trace.json", info=True, dump=json.dumps):
    for rank in (0, 1):
        file = {"schemaVersion": 1, "deviceProperties": [{"id": rank, "name": "NVIDIA H100"}]}
        if info:
            file["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        file |= {"baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events_of(rank)}
        (folder / names.format(rank)).write_text(dump(file))
    return folder


def _totals(folder):
    return [{kind: part.term(kind).total_ns for kind in Kind} for part in breakdown(load(folder))]


@pytest.mark.parametrize(
    "collective",
    [
        NCCL,
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*)",
        "void sglang::cross_device_reduce_2stage<__nv_bfloat16, 2>(sglang::RankData*)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(AllReduceFusionPattern)1, __nv_bfloat16, 2, true, false>",
        "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*, int*)",
        "void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*, void*, int*)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 2>(c10::BFloat16*)",
        "void quickreduce::allreduce_prototype_twoshot<quickreduce::CodecQ4, __half>(__half const*)",
    ],
    ids=["M01", "M02", "M03", "M04", "M05 dispatch", "M05 combine", "M06", "M07"],
)
def test_a_collective_of_any_library_is_communication(tmp_path, collective):
    assert _totals(_write(tmp_path, lambda rank: _events(collective, rank))) == [TRUTH, TRUTH]


def test_m08_synchronisation_events_on_the_stream_are_no_work(tmp_path):
    def wait(start, rank):
        return _kernel("Stream Wait Event", start + 105, 15.0, rank, "cuda_sync", cuda_sync_kind="Stream Wait Event")

    assert _totals(_write(tmp_path, lambda rank: _events(NCCL, rank, [wait]))) == [TRUTH, TRUTH]


def test_m09_files_without_blanks_keep_their_ranks(tmp_path):
    folder = _write(
        tmp_path,
        lambda rank: _events(NCCL, rank),
        names="t{}_xyz.json",
        dump=lambda file: json.dumps(file, separators=(",", ":")),
    )
    assert load(folder).ranks == (0, 1)


def test_m10_ranks_come_from_file_names_where_the_files_state_none(tmp_path):
    run = load(_write(tmp_path, lambda rank: _events(NCCL, rank), info=False))
    assert run.ranks == (0, 1)
    assert _totals(tmp_path) == [TRUTH, TRUTH]


def test_m11_step_markers_are_not_needed(tmp_path):
    folder = _write(
        tmp_path, lambda rank: [event for event in _events(NCCL, rank) if event["cat"] != "user_annotation"]
    )
    assert _totals(folder) == [TRUTH, TRUTH]


def test_m12_a_corrupt_duration_is_clipped_to_its_successor_and_said(tmp_path):
    def damaged(rank):
        events = _events(NCCL, rank)
        if rank == 0:
            next(event for event in events if event["name"] == GEMM and event["ts"] == 1000.0 + 120 * 20)["dur"] = (
                1_600_000.0
            )
        return events

    run = load(_write(tmp_path, damaged))
    assert [{kind: part.term(kind).total_ns for kind in Kind} for part in breakdown(run)] == [TRUTH, TRUTH]
    assert [note.text for note in run.traces[0].notes] == [
        "1 device entry ran into the next one on its stream (a corrupt duration): clipped, 1.60 s taken off"
    ]
    assert run.traces[1].notes == ()


def test_dependent_launch_is_no_fault_and_counts_once(tmp_path):
    def overlapping(rank):
        return [_kernel(GEMM, 1000.0, 50.0, rank, correlation=1), _kernel(GEMM, 1045.4, 50.0, rank, correlation=2)]

    run = load(_write(tmp_path, overlapping))
    assert run.traces[0].notes == ()
    assert breakdown(run)[0].compute.total_ns == 95_400


def test_a_launch_in_the_gap_tells_the_host_from_the_device(tmp_path):
    def events(rank):
        def call(name, ts, dur, correlation=None):
            args = {"correlation": correlation} if correlation else {}
            return {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": name,
                "pid": 9,
                "tid": 9,
                "ts": ts,
                "dur": dur,
                "args": args,
            }

        return [
            _kernel(GEMM, 1000.0, 100.0, rank, correlation=1),
            _kernel(GEMM, 1200.0, 100.0, rank, correlation=2),
            call("cudaLaunchKernel", 990.0, 5.0, 1),
            call("cudaStreamSynchronize", 1000.0, 130.0),
            call("cudaLaunchKernel", 1160.0, 5.0, 2),
        ]

    causes = breakdown(load(_write(tmp_path, events)))[0].causes
    assert {cause: time.total_ns for cause, time in causes.items() if time.total_ns} == {
        Cause.HOST_SYNC: 30_000,
        Cause.HOST_LAUNCH: 45_000,
        Cause.STREAM_WAIT: 25_000,
    }
