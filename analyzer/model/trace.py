"""One rank: what its trace file holds, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.stats.arrays import Integers


class Doubt(str, Enum):
    """What the records cannot carry once something is wrong with them."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    MOVEMENT = "movement"
    IDLE = "idle time"
    LAUNCHES = "launches"
    STEPS = "steps"


EVERYTHING = frozenset(Doubt)


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the report should know about how a trace was read.

    Attributes:
        text: what was found and what follows from it.
        count: how often; 1 where counting makes no sense.
        doubts: what is unreliable because of it: rules that rest on it are silent.
    """

    text: str
    count: int = 1
    doubts: frozenset[Doubt] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveRecords:
    """What the framework wrote down about k collective activities.

    Attributes:
        activity: int64[k], row in the trace's activities.
        operation: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send`, `recv`, …
        group: name of the process group, "" where not recorded.
        description: description of the process group, "" or "undefined" where nobody gave one.
        members: ranks of the group as recorded, "[0, 1, 2, 3]"; may be shortened by "..." or empty.
        group_size: int64[k], ABSENT where not recorded.
        dtype: element type as recorded.
        in_bytes: int64[k], bytes of this rank's input tensor, ABSENT where not recorded.
        out_bytes: int64[k], bytes of this rank's output tensor, ABSENT where not recorded.
        sequence: int64[k], counts calls within a group, equal over ranks; ABSENT where not recorded.
        peer: int64[k], the other rank of a send or recv; ABSENT elsewhere.
        splits: "in;out" split sizes as recorded, "" for even splits.
    """

    activity: Integers
    operation: Labels
    group: Labels
    description: Labels
    members: Labels
    group_size: Integers
    dtype: Labels
    in_bytes: Integers
    out_bytes: Integers
    sequence: Integers
    peer: Integers
    splits: Labels

    @classmethod
    def none(cls) -> CollectiveRecords:
        """Metadata of no collective at all."""
        text, empty = Labels.of(()), np.zeros(0, np.int64)
        return cls(empty, text, text, text, text, empty, text, empty, empty, empty, empty, text)

    def __len__(self) -> int:
        return int(self.activity.size)

    def kept(self, rows: Integers, of: int) -> CollectiveRecords:
        """Metadata of those whose activities are kept, with their new rows.

        Args:
            rows: int64, the activities that are kept, ascending.
            of: how many there were.
        """
        new = np.full(of, ABSENT, np.int64)
        new[rows] = np.arange(rows.size)
        stays = new[self.activity] != ABSENT
        return CollectiveRecords(
            new[self.activity][stays],
            self.operation.take(stays),
            self.group.take(stays),
            self.description.take(stays),
            self.members.take(stays),
            self.group_size[stays],
            self.dtype.take(stays),
            self.in_bytes[stays],
            self.out_bytes[stays],
            self.sequence[stays],
            self.peer[stays],
            self.splits.take(stays),
        )


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A process group that the rank is a member of, as torch recorded it."""

    name: str
    description: str
    size: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace came from and what it says about itself.

    Attributes:
        path: file as found.
        device: `cuda`, `rocm`, `npu`, `xpu`, `mtia`, `mlu`, or `cpu` for a host without an accelerator.
        device_name: as the driver calls it, "" where not recorded.
        recorded_rank: rank that the trace states, None where it does not.
        world_size: of the default process group, None where not recorded.
        groups: process groups this rank is in; `group_count` counts those of all ranks.
        group_count: number of process groups of the job, None where not recorded.
        host: host name, "" where unknown.
        processes: process titles (`VLLM::Worker_TP0`, `sglang::scheduler`, …).
        versions: engine and library versions (`vllm`, `cuda_runtime`, `nccl`, …).
        placement: coordinates that the file name states (`tp`, `dp`, `pp`, `ep`, `dcp`).
        stage: `prefill` or `decode` where the file name states it, else "".
        settings: profiler switches that were on (`with_stack`, `record_shapes`, `profile_memory`, `with_flops`).
    """

    path: str
    device: str
    device_name: str = ""
    recorded_rank: int | None = None
    world_size: int | None = None
    groups: tuple[ProcessGroup, ...] = ()
    group_count: int | None = None
    host: str = ""
    processes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    placement: dict[str, int] = field(default_factory=dict)
    stage: str = ""
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One rank's trace.

    Attributes:
        rank: unique within its run.
        origin: file, device, and what it says about itself.
        activities: work on the device in order of start, overruns already clipped.
        calls: runtime and driver calls on the host (`cudaLaunchKernel`, `hipGraphLaunch`, …); `correlation` set.
        ops: framework operations on the host (`vllm::all_reduce`, `aten::item`, …), as far as they were read.
        annotations: named ranges on the host (`execute_context_…`, `ProfilerStep#3`, `step[DECODE bs=8]`, …).
        collectives: metadata of collective activities.
        notes: what reading found.
        is_cut: work at its ends that does not belong to the window was taken out.
    """

    rank: int
    origin: Origin
    activities: Activities
    calls: Events
    ops: Events
    annotations: Events
    collectives: CollectiveRecords
    notes: tuple[Note, ...] = ()
    is_cut: bool = False

    @property
    def window(self) -> Intervals:
        """From the first to the last activity; empty where there is none."""
        if len(self.activities) == 0:
            return Intervals.empty()
        return Intervals.single(int(self.activities.start_ns[0]), int(self.activities.end_ns.max()))


OF_OTHER_TIMES = frozenset((Doubt.COMMUNICATION, Doubt.COMPUTE))
"""What does not compare between ranks that were not recorded together."""
