"""Small Kineto files whose records are odd in one way, written out event by event; all times in µs."""

import json
import random

GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
CIJK = "Cijk_Ailk_Bljk_HHS_BH_MT128x128"
ATTENTION = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
H100, MI300X = "NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"
BASE_NS = 1_782_967_788_000_000_000


class File:
    """Events of one file, in the order in which they are added."""

    def __init__(self, device=H100, *, host=4000):
        self.events, self.device, self.host, self.last = [], device, host, 0
        self.prefix = "hip" if "AMD" in device else "cuda"

    def complete(self, category, name, start, took, pid, tid, **args):
        """One complete event."""
        event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": round(start, 3)}
        self.events.append(event | {"dur": round(took, 3), "args": args})
        return self

    def correlation(self):
        """The next one."""
        self.last += 1
        return self.last

    def launch(self, start, took=5, correlation=None, call="LaunchKernel"):
        """A call that launches."""
        correlation = correlation or self.correlation()
        return self.complete(
            "cuda_runtime", f"{self.prefix}{call}", start, took, self.host, self.host, correlation=correlation
        )

    def kernel(self, start, took, name=GEMM, *, launched=None, call=5, correlation=None, gpu=0, pid=None, **args):
        """A kernel, and the call that launched it where `launched` says when."""
        correlation = correlation or self.correlation()
        args = {"stream": 7, "device": gpu, "correlation": correlation, **args}
        self.complete("kernel", name, start, took, gpu if pid is None else pid, 7, **args)
        return self if launched is None else self.launch(launched, call, correlation)

    def operation(self, name, start, took, category="cpu_op"):
        """A host operation."""
        return self.complete(category, name, start, took, self.host, self.host)

    def title(self, pid, name):
        """What a process is called."""
        self.events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
        return self

    def document(self, rank=None, world=None, base_ns=BASE_NS):
        """The whole file; the rank is stated where one is given."""
        devices = [{"id": at, "name": self.device, "numSms": 132} for at in range(2)]
        held = {"schemaVersion": 1, "deviceProperties": devices, "baseTimeNanoseconds": base_ns}
        if rank is not None:
            ranks = list(range(world))
            group = {"pg_name": "3", "pg_desc": "tp", "pg_size": world, "ranks": ranks}
            held["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": [group]}
        return held | {"traceEvents": self.events}

    def write(self, folder, name="trace.json", **stated):
        """Write the file into the folder, which is given back."""
        return write(folder, name, self.document(**stated))


def write(folder, name, document):
    """Write one document, or text as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))
    return folder


def back_to_back(device, *, name, count, took, marks_first):
    """Kernels without a gap, each with an entry of no duration at its end or at its start."""
    file = File(device)
    for at in range(count):
        start = 1000 + took * at
        mark = start if marks_first else start + took
        file.kernel(mark, 0, ATTENTION, launched=start - 300)
        file.kernel(start, took, name, launched=start - 290)
    return file


def replays(device, *, held, lost, whole_every, kernel_us=19.8):
    """20 replays of one graph with a stretch of kernel records lost from most of them; each is a decode step."""
    file, draw = File(device), random.Random(1)
    period = (kernel_us + 0.2) * held + 40
    for replay in range(20):
        start, correlation = 1000 + period * replay, file.correlation()
        file.launch(start - 40, 12, correlation, "GraphLaunch")
        gone = 0 if replay % whole_every == 0 else lost
        first = draw.randrange(held // 10, held - lost - held // 10)
        for at in range(held):
            if not first <= at < first + gone:
                name = GEMM if at % 2 else ATTENTION
                file.kernel(start + (kernel_us + 0.2) * at, kernel_us, name, correlation=correlation)
        file.operation("execute_context_0(0)_generation_128(128)", start - 60, 80, "user_annotation")
    return file


def two_graphs(device=H100):
    """Whole replays of two graphs by turns, of which the second lacks kernels of the first's middle."""
    file, start = File(device), 1000.0
    for replay in range(20):
        correlation = file.correlation()
        file.launch(start - 40, 12, correlation, "GraphLaunch")
        names = [GEMM, ATTENTION, GEMM, REDUCE, GEMM, ATTENTION] if replay % 2 else [GEMM, ATTENTION]
        for name in names:
            file.kernel(start, 19.8, name, correlation=correlation)
            start += 20
        start += 30
    return file


def emptied_replays(device, *, count, held, kernel_us):
    """Graph replays of which only the first has its kernels, each followed by a small eager kernel."""
    file, period = File(device), kernel_us * held + 200
    for replay in range(count):
        start, correlation = 1000 + period * replay, file.correlation()
        file.launch(start - 40, 30, correlation, "GraphLaunch")
        for at in range(held if replay == 0 else 0):
            file.kernel(start + kernel_us * at, kernel_us - 2, CIJK, correlation=correlation)
        file.kernel(start + period - 60, 20, "argmax_kernel", launched=start + period - 90)
    return file


def lost_launches(device, *, count, period, lost):
    """Launches of equal kernels, some of which have no record."""
    file, draw = File(device), random.Random(2)
    for at in range(count):
        start = 1000 + period * at
        if draw.random() < lost:
            file.launch(start - 9, 4)
        else:
            file.kernel(start, period - 1, launched=start - 9, call=4)
    return file


def first_use(device, *, call_us, name, rounds):
    """One launch call that loads a module, then rounds of work launched ahead of time."""
    file = File(device).kernel(1000, 100, launched=990)
    start = 1100 + call_us + 10
    file.kernel(start, 50, name, launched=1105, call=call_us)
    start += 60
    for _ in range(rounds):
        file.kernel(start, 800, launched=start - 600)
        file.kernel(start + 805, 8000, REDUCE, launched=start - 500)
        start += 8810
    return file


def by_turns(slots=20, device=H100, took=100.0):
    """Kernels on device 0 and 1 by turns, without launches."""
    file = File(device)
    for at in range(slots):
        file.kernel(1000 + took * at, took, gpu=at % 2)
    return file


def two_devices(busy=(80, 40), device=H100, *, rounds=10, period=100):
    """One process that drives two devices."""
    file = File(device)
    for at in range(rounds):
        start = 1000 + period * at
        for gpu, took in enumerate(busy):
            file.kernel(start, took, launched=start - 30 + 6 * gpu, gpu=gpu)
    return file


def merged(busy=(100, 50), device=MI300X, *, title="RANK {} - {}", rounds=200, period=110):
    """Ranks in one file, made by a tool that shifts process ids; correlation ids are those of each rank."""
    file = File(device)
    for rank, took in enumerate(busy):
        gpu_pid, file.host = 2 + 100_000_001 * rank, 3_194_582 + 100_000_001 * rank
        if title:
            file.title(gpu_pid, title.format(rank, "GPU")).title(file.host, title.format(rank, "CPU"))
        for at in range(rounds):
            start = 1_106_964_729_000 + period * at + 55 * rank
            file.kernel(start, took, CIJK, launched=start - 40, correlation=at + 1, gpu=2 + rank, pid=gpu_pid)
    return file


def pair_rank(late=0.0, *, rounds=8, unit=1.0, shift=0.0):
    """One of two ranks: rounds of a product and an all-reduce with its metadata."""
    file = File()
    for at in range(rounds):
        start = 1000 + 120 * at + shift
        said = {"Collective name": "allreduce", "In msg nelems": 8192, "Out msg nelems": 8192, "Group size": 2}
        said |= {"dtype": "BFloat16", "Process Group Name": "3", "Process Group Description": "tp", "Seq": at}
        said |= {"Process Group Ranks": "[0, 1]"}
        file.kernel(start * unit, 60 * unit)
        file.kernel((start + 60) * unit, (40 + late) * unit, REDUCE, **said)
    return file
