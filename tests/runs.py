"""Random runs of known truth: who waits for whom, on which clocks, under which names.

`random_run(seed)` simulates one or two engines of 2 to 64 ranks on true time, then writes down what each rank's
profiler would have seen of it: on its own clock, from its own window, with calls missing and with as much metadata as
the draw allows.
"""

from dataclasses import dataclass, field

import numpy as np

from analyzer.classify import classify
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, Origin, ProcessGroup, Trace

US = 1_000
STEP_CALLS = 24
EPOCH_NS = 1_750_000_000_000_000_000
GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
KERNELS = {
    "all_reduce": "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    "nccl_all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}
RECORDING = ("sequence", "group", "list", "nothing")
"""Metadata: group and number on each call; group on each call; only the list of groups; nothing at all."""


@dataclass
class Draw:
    """The choices of a seed; times in microseconds unless the name says otherwise.

    Where `stragglers`, another rank is late at every collective; where `graph`, a step's kernels have one launch.
    """

    rng: np.random.Generator
    ranks: int = 4
    tp: int = 4
    engines: int = 1
    crossing: bool = False
    recording: str = "group"
    told_by: str = "host"
    late: int | None = None
    late_us: float = 30
    stragglers: bool = False
    graph: bool = False
    jitter_us: float = 2
    end_us: float = 1
    calls: int = 100
    offset_s: float = 0
    drift: float = 0
    missing: float = 0
    shifted: int = 0
    absent: int = 0
    unrecorded: int = 0


@dataclass
class Truth:
    """What is so, whatever the traces say. Lists are by trace, arrays over the trace's activities.

    Attributes:
        late_rank: rank of the run that is late at every collective; None where none is, or its trace is absent, or
            those of all ranks of its tp group are: then nobody is seen to wait for it.
        call: number of the collective, unique over groups; ABSENT for other work.
        group: number of the group; ABSENT for other work.
        wait_ns: waiting for those participants of which the run shows the call.
        offset_ns: of the clock, at the run's start.
        drift: of the clock.
    """

    late_rank: int | None
    call: list = field(default_factory=list)
    group: list = field(default_factory=list)
    wait_ns: list = field(default_factory=list)
    offset_ns: list = field(default_factory=list)
    drift: list = field(default_factory=list)


def draw(seed):
    """What a seed stands for."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.choice([2, 4, 8, 16, 32, 64], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05]))
    jitter = float(rng.uniform(1, 8))
    tp = int(rng.choice([size for size in (2, 4, 8, 16, 64) if size <= ranks]))
    return Draw(
        rng=rng,
        ranks=ranks,
        tp=tp,
        engines=2 if ranks <= 32 and rng.random() < 0.25 else 1,
        crossing=tp < ranks and bool(rng.random() < 0.6),
        recording=str(rng.choice(RECORDING)),
        told_by=str(rng.choice(["host", "placement", "folder", "nothing"], p=[0.4, 0.3, 0.2, 0.1])),
        late=int(rng.integers(ranks)) if rng.random() < 0.8 else None,
        late_us=float(max(15, rng.uniform(4, 8) * jitter)),
        jitter_us=jitter,
        end_us=float(rng.uniform(0.2, 2)),
        calls=int(rng.integers(60, 240)),
        offset_s=float(rng.choice([0, 0.0005, 0.01, 10])),
        drift=float(rng.choice([0, 50e-6])),
        missing=float(rng.choice([0, 0, 0.005, 0.02])),
        shifted=int(rng.choice([0, 0, 3, 20])),
        absent=int(rng.integers(1, max(2, ranks // 4 + 1))) if rng.random() < 0.2 else 0,
        unrecorded=int(rng.choice([0, 5])),
        stragglers=bool(rng.random() < 0.5),
        graph=bool(rng.random() < 0.5),
    )


def random_run(seed):
    """A run and its truth."""
    return build(draw(seed))


def build(choice):
    """The run and the truth of a draw."""
    gone = _gone(choice)
    truth = Truth(_seen_late(choice, gone))
    traces, seen = [], []
    for engine in range(choice.engines):
        calls = simulate(choice, engine)
        shared = _clock(choice)
        for local in range(choice.ranks):
            rank = engine * choice.ranks + local
            rows = _rows(choice, calls, engine, local)
            offset_ns, drift = shared if choice.told_by == "host" else _clock(choice)
            if rank in gone:
                continue
            traces.append(_trace(choice, (engine, local, rank), rows, (offset_ns, drift)))
            seen.append(rows)
            truth.offset_ns.append(offset_ns)
            truth.drift.append(drift)
    truth.call = [rows["call"] for rows in seen]
    truth.group = [rows["group"] for rows in seen]
    truth.wait_ns = _waits(seen)
    return Run(f"{choice.ranks} ranks", tuple(traces)), truth


def _gone(choice):
    """Absent ranks; the first two stay, so that there is something to match."""
    free = np.arange(2, choice.ranks * choice.engines)
    return set(choice.rng.choice(free, min(choice.absent, free.size), replace=False).tolist())


def _seen_late(choice, gone):
    """The late rank, if its trace and that of one of its group are there."""
    if choice.late is None or choice.late in gone:
        return None
    mates = next(members for members in groups(choice, "tp") if choice.late in members)
    return choice.late if set(mates) - gone - {choice.late} else None


def _clock(choice):
    return choice.rng.uniform(-1, 1) * choice.offset_s * 1e9, choice.rng.uniform(-1, 1) * choice.drift


def groups(choice, axis):
    """Rank groups of an axis within an engine."""
    if axis == "tp":
        return [tuple(range(at, at + choice.tp)) for at in range(0, choice.ranks, choice.tp)]
    return [tuple(range(at, choice.ranks, choice.tp)) for at in range(choice.tp)]


def simulate(choice, engine):
    """One engine's calls in program order on true time: (axis, ready, start, end), arrays by rank."""
    rng = choice.rng
    base = np.random.default_rng(choice.calls).uniform(60, 150, 8)  # engines run one program
    ready = np.full(choice.ranks, rng.uniform(0, 5e6))
    out = []
    for at in range(choice.calls):
        axis = "dp" if choice.crossing and at % 9 == 8 else "tp"
        work = (base[at % 8] + rng.normal(0, choice.jitter_us, choice.ranks)).clip(5) * US
        work += rng.uniform(300, 900) * US if at % STEP_CALLS == 0 else 0  # a step begins, for all ranks alike
        if engine == 0 and choice.late is not None:
            work[choice.late] += choice.late_us * US
        elif choice.stragglers:
            work[rng.integers(choice.ranks)] += choice.late_us * US
        start, latest = ready + work, np.empty(choice.ranks)
        for group in groups(choice, axis):
            latest[list(group)] = start[list(group)].max()
        end = latest + (12 + at % 3 * 6) * US + np.abs(rng.normal(0, choice.end_us, choice.ranks)) * US
        out.append((axis, ready, start, end))
        ready = end + US
    return out


def _rows(choice, calls, engine, local):
    """What one rank's profiler sees: a product, then a collective, again and again; columns."""
    rng, rows = choice.rng, []
    first, cut = rng.integers(0, choice.shifted + 1, 2)
    for at in range(first, len(calls) - cut):
        axis, ready, start, end = calls[at]
        numbers = groups(choice, axis)
        group = next(place for place, members in enumerate(numbers) if local in members)
        number = (engine * 2 + (axis == "dp")) * 1000 + group
        rows.append((ready[local], start[local], GEMM, 7, ABSENT, ABSENT, at, axis))
        if rng.random() >= choice.missing:
            kind = "all_reduce" if axis == "tp" else "all_gather"
            lane = 7 if axis == "tp" else 20
            rows.append((start[local], end[local], KERNELS[kind], lane, number * 10_000 + at, number, at, axis))
    columns = ("start", "end", "name", "lane", "call", "group", "at", "axis")
    return {name: np.array(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)}


def _waits(seen):
    """Waiting at each activity for the latest of those that the run shows."""
    latest = {}
    for rows in seen:
        for call, start in zip(rows["call"].tolist(), rows["start"].tolist(), strict=True):
            latest[call] = max(start, latest.get(call, start))
    return [
        np.where(rows["call"] == ABSENT, 0, [latest[call] for call in rows["call"].tolist()] - rows["start"])
        for rows in seen
    ]


def _trace(choice, place, rows, clock):
    _, local, rank = place
    start, end = (
        np.round(rows[side] * (1 + clock[1]) + clock[0]).astype(np.int64) + EPOCH_NS for side in ("start", "end")
    )
    name, n = Labels.of(rows["name"].tolist()), len(start)
    activities = Activities(
        name,
        start,
        np.maximum(end, start),
        np.full(n, local, np.int64),
        rows["lane"].astype(np.int64),
        rows["at"].astype(np.int64) // STEP_CALLS if choice.graph else np.arange(n, dtype=np.int64),
        classify(name.values),
        np.full(n, ABSENT, np.int64),
    )
    none = Events(Labels.of(()), *(np.zeros(0, np.int64) for _ in range(5)))
    return Trace(rank, _origin(choice, place), activities, none, none, none, _records(choice, rows, local))


def _lists(choice, local):
    """Process groups of a rank, as every engine names them: a number of its own for each group of each axis."""
    axes = ("tp", "dp") if choice.crossing else ("tp",)
    found = [("0", tuple(range(choice.ranks)))]
    for axis in axes:
        for number, members in enumerate(groups(choice, axis)):
            if local in members:
                found.append((str(10 * len(found) + 1 + number), members))
    return found


def _origin(choice, place):
    engine, local, _ = place
    told = choice.told_by if choice.engines > 1 else "host"
    listed = choice.recording != "nothing"
    return Origin(
        path=f"run/dp{engine}/rank{local}.json" if told == "folder" else f"run/rank{local}.{engine}.json",
        device="cuda",
        recorded_rank=local,
        world_size=choice.ranks,
        groups=tuple(ProcessGroup(name, "", len(ranks), ranks) for name, ranks in _lists(choice, local))
        if listed
        else (),
        host=f"node-{engine}" if told == "host" and choice.engines > 1 else "",
        placement={"dp": engine} if told == "placement" else {},
    )


def _records(choice, rows, local):
    """Metadata of the collectives, without that of the first few, which were launched before the window."""
    if choice.recording not in ("sequence", "group"):
        return CollectiveRecords.none()
    at = np.flatnonzero(rows["call"] != ABSENT)[choice.unrecorded :]
    named = dict(zip(("world", "tp", "dp"), _lists(choice, local), strict=False))
    axis = rows["axis"][at].tolist()
    n, blank = at.size, Labels.of([""] * at.size)
    absent = np.full(n, ABSENT, np.int64)
    size = (1 + rows["at"][at].astype(np.int64) % 8) * 8192
    return CollectiveRecords(
        activity=at,
        operation=Labels.of("all_reduce" if one == "tp" else "all_gather" for one in axis),
        group=Labels.of(named[one][0] for one in axis),
        description=blank,
        members=Labels.of(str(list(named[one][1])) for one in axis),
        group_size=np.array([len(named[one][1]) for one in axis], np.int64),
        dtype=blank,
        in_bytes=size,
        out_bytes=size,
        sequence=rows["at"][at].astype(np.int64) if choice.recording == "sequence" else absent,
        peer=absent,
        splits=blank,
    )
