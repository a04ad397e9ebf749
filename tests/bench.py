"""Cost of reading a trace beside Holistic Trace Analysis: CPU seconds and peak memory of fresh processes.

Run as `python tests/bench.py --peer PYTHON`, where PYTHON is an interpreter that has `traceinsight` installed
(`pip install traceinsight` into an environment of its own: it brings 90 packages). Without --peer only our own
figures are taken. The trace is made anew each time, always the same: 1,000,000 events, some 220 MB, in the layout of
torch's own writer, with the mix of a training job recorded with stacks and shapes.
"""
# ruff: noqa: T201 - a script

import argparse
import gzip
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = (
    "import sys; from analyzer.ingest.load import load; from analyzer.ingest.detail import Detail; "
    "from analyzer.measures.breakdown import breakdown; breakdown(load(sys.argv[1], detail=Detail.BREAKDOWN))"
)
PEER = "import sys; from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_dir=sys.argv[2]).get_temporal_breakdown(visualize=False)"

EVENTS = 1_000_000
RUNS = 3
OPS_A_STEP = 2000
BASE_NS = 1_735_632_360_000_000_000
PID, TID, DEVICE, COMPUTE, NCCL = 4242, 4242, 0, 7, 23
PACK_LEVEL = 6

HEAD = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    }
  ],
  "cuda_runtime_version": 12080,
  "record_shapes": 1,
  "with_stack": 1,
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 1, "nccl_version": "2.21.5"},
  "traceEvents": [
"""
TAIL = f"""
  ],
  "traceName": "/tmp/rank0.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": {BASE_NS}
}}
"""

KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float>>(int)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)",
)
COLLECTIVES = (
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "allreduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "_allgather_base"),
)
OPERATIONS = ("aten::empty_strided", "aten::copy_", "aten::mm", "aten::add_", "aten::_to_copy", "aten::layer_norm")
FRAMES = (
    "torch/nn/modules/module.py(1747): _call_impl",
    "<built-in method linear of type object at 0x7f2b>",
    "nn.Module: Linear_7",
)


class Writer:
    """Writes events of a clock that runs on, one operation after the other."""

    def __init__(self, out):
        self._out = out
        self._random = random.Random(0)
        self._host_ns = 1_000_000_000_000
        self._device_ns = self._host_ns
        self.n = 0
        self._correlation = 0

    def step(self, number, operations):
        start_ns = self._host_ns
        for _ in range(operations):
            self._operation()
        self._span(
            "user_annotation",
            f"ProfilerStep#{number}",
            PID,
            TID,
            start_ns,
            self._host_ns,
            f'"External id": {number}, "Ev Idx": {number}',
        )

    def _operation(self):
        """Some twelve events, of which one is on the device."""
        draw = self._random.random()
        self._correlation += 1
        start_ns, self._host_ns = self._host_ns, self._host_ns + 20_000 + self._random.randrange(30_000)
        for depth in range(4 if draw < 0.5 else 5):
            frame = f'"Python parent id": {self.n}, "Python id": {self.n + 1}'
            self._span("python_function", FRAMES[depth % 3], PID, TID, start_ns + depth, self._host_ns - depth, frame)
        for depth in range(4):
            shapes = f', "Concrete Inputs": ["", ""], "Input Dims": [[{self._correlation % 97}, 4096], []]'
            args = f'"External id": {self.n}, "Ev Idx": {self.n}{shapes if depth == 3 else ""}'
            self._span(
                "cpu_op",
                OPERATIONS[(self._correlation + depth) % 6],
                PID,
                TID,
                start_ns + 10 + depth,
                self._host_ns - 10 - depth,
                args,
            )
        call = f'"External id": {self.n}, "cbid": 211, "correlation": {self._correlation}'
        self._span("cuda_runtime", "cudaLaunchKernel", PID, TID, self._host_ns - 9_000, self._host_ns - 5_000, call)
        self._flow("s", PID, TID, self._host_ns - 9_000)
        self._on_device(draw)
        if draw < 0.2:
            self._memory()

    def _on_device(self, draw):
        start_ns = max(self._device_ns, self._host_ns + 5_000)
        end_ns = self._device_ns = start_ns + 1_000 + self._random.randrange(38_000)
        common = f'"External id": {self.n}, "device": {DEVICE}, "context": 1, "stream": %d, "correlation": {self._correlation}'
        shape = '"grid": [256, 1, 1], "block": [128, 1, 1]'
        if draw < 0.06:
            name, operation = COLLECTIVES[self._correlation % 2]
            meta = (
                f'"Collective name": "{operation}", "In msg nelems": 4194304, "Out msg nelems": 4194304, "Group size": 8, "dtype": "BFloat16", '
                '"In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", '
                '"Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"'
            )
            self._span("kernel", name, DEVICE, NCCL, start_ns, end_ns, f"{common % NCCL}, {shape}, {meta}")
        elif draw < 0.12:
            name = "Memcpy DtoD (Device -> Device)"
            self._span(
                "gpu_memcpy",
                name,
                DEVICE,
                COMPUTE,
                start_ns,
                end_ns,
                f'{common % COMPUTE}, "bytes": 4096, "memory bandwidth (GB/s)": 11.25',
            )
        else:
            self._span(
                "kernel",
                KERNELS[self._correlation % 4],
                DEVICE,
                COMPUTE,
                start_ns,
                end_ns,
                f"{common % COMPUTE}, {shape}",
            )
        self._flow("f", DEVICE, NCCL if draw < 0.06 else COMPUTE, start_ns, ', "bp": "e"')

    def _span(self, category, name, pid, tid, start_ns, end_ns, args):
        times = f'"ts": {start_ns // 1000}.{start_ns % 1000:03}, "dur": {(end_ns - start_ns) // 1000}.{(end_ns - start_ns) % 1000:03}'
        head = f'"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}'
        self._put(f'{head},\n    {times},\n    "args": {{\n      {args}\n    }}')

    def _flow(self, phase, pid, tid, at_ns, more=""):
        where = f'"ph": "{phase}", "id": {self._correlation}, "pid": {pid}, "tid": {tid}, "ts": {at_ns // 1000}.{at_ns % 1000:03}'
        self._put(f'{where},\n    "cat": "ac2g", "name": "ac2g"{more}')

    def _memory(self):
        where = f'"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {PID}, "tid": {TID}'
        args = f'"Total Allocated": {self.n * 512}, "Device Type": 1, "Device Id": 0, "Addr": 139926520725504, "Bytes": 512'
        self._put(
            f'{where},\n    "ts": {self._host_ns // 1000}.{self._host_ns % 1000:03},\n    "args": {{\n      {args}\n    }}'
        )

    def _put(self, event):
        self._out.write(f"{',' if self.n else ''}\n  {{\n    {event}\n  }}")
        self.n += 1


def make(folder, events=EVENTS):
    """Write the trace plain and packed, each in a folder of its own."""
    plain, packed = (folder / form / "rank0.json" for form in ("plain", "packed"))
    plain.parent.mkdir()
    with plain.open("w", encoding="utf-8", newline="\n") as out:
        out.write(HEAD.rstrip("\n"))
        writer, number = Writer(out), 0
        while writer.n < events:
            writer.step(number, OPS_A_STEP)
            number += 1
        out.write(TAIL)
    packed = packed.with_suffix(".json.gz")
    packed.parent.mkdir()
    with plain.open("rb") as source, gzip.open(packed, "wb", PACK_LEVEL) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return plain, packed, writer.n


def cost(python, program, path):
    """CPU seconds, of the process and its children, and peak MB of a fresh process."""
    process = subprocess.Popen(
        [python, "-c", program, str(path), str(path.parent)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{python} failed on {path}:\n{said}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def compare(path, peer):
    """Median cost of both, taken in turns."""
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(cost(sys.executable, OURS, path))
        if peer:
            theirs.append(cost(peer, PEER, path))
    _row(path.parent.name, "shardscope", ours)
    if theirs:
        _row(path.parent.name, "HTA", theirs)
        seconds, memory = (
            statistics.median(b) / statistics.median(a)
            for a, b in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
        )
        print(f"{path.parent.name:8} {'ratio':12} {seconds:6.1f} x CPU {'':15} {memory:8.1f} x memory")


def _row(form, who, runs):
    seconds, memory = zip(*runs, strict=True)
    spread = f"[{min(seconds):.2f}-{max(seconds):.2f}]"
    print(
        f"{form:8} {who:12} {statistics.median(seconds):6.2f} s CPU {spread:15} {statistics.median(memory):8.0f} MB peak"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has traceinsight")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--forms", nargs="*", choices=["plain", "packed"], default=["plain", "packed"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain, packed, n = make(Path(folder), chosen.events)
        print(
            f"{n:,} events, {plain.stat().st_size / 1e6:.1f} MB plain, {packed.stat().st_size / 1e6:.1f} MB packed, {RUNS} runs each, in turns"
        )
        for path in (plain, packed):
            if path.parent.name in chosen.forms:
                compare(path, chosen.peer)


if __name__ == "__main__":
    main()
