"""Which kernel of one rank is the same collective as which kernel of another.

Identity is the process group and the sequence number where the trace has them; else the process group and the order
of calls, shifted by as many calls as the windows start apart; else, for kernels of which nothing is recorded, the
ranks whose calls end together. Process groups of two engine instances are never one, whatever their names.

A collective has one call on each of its ranks. Calls that are missing on one rank leave the others matched; a call
that no other rank shows has no collective. Kernels that share name and stream but belong to several communicators,
none of them recorded, are matched for the group that most of them belong to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from analyzer.matching.calls import CallTable, read_calls
from analyzer.matching.channels import channels
from analyzer.matching.clock_groups import ClockGroups
from analyzer.matching.groups import MatchedGroup
from analyzer.matching.instances import EngineInstance, engine_instances
from analyzer.matching.membership import matched_groups
from analyzer.matching.pairs import Known
from analyzer.matching.table import table
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.model.trace import Trace
from analyzer.once import once
from analyzer.stats.arrays import Floats, Integers
from analyzer.units import count, ranks


class Method(str, Enum):
    """How the collectives of a group were told from each other, surest first."""

    SEQUENCE = "process group and sequence number"
    ORDER = "process group and order"
    ENDS = "order and common ends"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Ranks that communicate, with their collectives in order.

    Attributes:
        traces: positions in `run.traces` of the p ranks that take part.
        ranks: their ranks, ascending.
        absent: members whose traces are not in the run, as the job numbers them.
        size: ranks of the group, absent ones included.
        name: of the process group, "" where not recorded.
        method: how its collectives were matched.
        first: id of the first collective; the k of the group are numbered onwards.
        row: int64[k, p], row in each trace's activities, ABSENT where a rank shows no such call.
        kind: k operations.
        size_bytes: int64[k], the larger of input and output of a rank; ABSENT where not recorded.
        shift: by how many calls each rank's window starts after that of the rank that shows most.
    """

    traces: tuple[int, ...]
    ranks: tuple[int, ...]
    absent: tuple[int, ...]
    size: int
    name: str
    method: Method
    first: int
    row: Integers
    kind: tuple[str, ...]
    size_bytes: Integers
    shift: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Distinct operations."""
        return tuple(dict.fromkeys(self.kind))


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """The collectives of a run.

    Attributes:
        groups: those with one collective or more, most calls first.
        collective: for each trace int64[n] over its activities: id of the collective, ABSENT where there is none.
        calls: communication calls of each trace.
        matched: those of them that are in a collective.
        absent: ranks that a process group or the world size names and of which there is no trace, as the job numbers
            them; of all engine instances together.
        instances: engine instances, as positions in `run.traces`.
        told_by: what tells the instances apart, "" where there is one.
    """

    groups: tuple[Group, ...]
    collective: tuple[Integers, ...]
    calls: tuple[int, ...]
    matched: tuple[int, ...]
    absent: tuple[int, ...]
    instances: tuple[tuple[int, ...], ...]
    told_by: str

    def __len__(self) -> int:
        return sum(len(group) for group in self.groups)

    @property
    def share(self) -> float:
        """Share of all communication calls that are matched; 0 where there are none."""
        return sum(self.matched) / max(sum(self.calls), 1)

    @property
    def method(self) -> str:
        """In words, for the report."""
        used = [method.value for method in Method if any(group.method is method for group in self.groups)]
        words = [" and ".join(used) if used else "none"]
        moved = [abs(shift) for group in self.groups for shift in group.shift if shift]
        if moved:
            words.append(f"windows start up to {count(max(moved), 'call')} apart")
        if len(self.instances) > 1:
            words.append(f"{len(self.instances)} engine instances, told apart by {self.told_by}")
        if self.absent:
            words.append(f"ranks without a trace: {ranks(self.absent)}")
        return "; ".join(words)


@once
def match(run: Run) -> Matching:
    """Every collective of the run that two ranks or more show. Linear in calls and in ranks."""
    call_table = read_calls(run)
    known = Known(run, call_table, ClockGroups())
    instances = engine_instances(run)
    blocks_by_group: dict[tuple[EngineInstance, str, tuple[int, ...], int], list[_Block]] = {}
    for instance in instances:
        for channel_index, channel in enumerate(channels(run, call_table, instance)):
            recorded_index = channel_index if channel.is_recorded else ABSENT
            for matched in matched_groups(known, channel):
                block = _block(run, call_table, matched)
                if len(block.end_ns):
                    blocks_by_group.setdefault((instance, channel.name, matched.traces, recorded_index), []).append(
                        block
                    )
    groups: list[Group] = []
    for (instance, *_), blocks in blocks_by_group.items():
        groups.append(_group(run, call_table, instance, blocks, sum(len(group) for group in groups)))
    return _matching(run, call_table, instances, groups)


def _matching(run: Run, call_table: CallTable, instances: tuple[EngineInstance, ...], groups: list[Group]) -> Matching:
    """Groups as a column of each trace."""
    collective = tuple(np.full(len(trace.activities), ABSENT, np.int64) for trace in run.traces)
    for group in groups:
        for column, trace_index in enumerate(group.traces):
            has = np.flatnonzero(group.row[:, column] != ABSENT)
            collective[trace_index][group.row[has, column]] = group.first + has
    return Matching(
        groups=tuple(sorted(groups, key=lambda group: -len(group))),
        collective=collective,
        calls=tuple(len(calls) for calls in call_table.calls),
        matched=tuple(int(np.count_nonzero(ids != ABSENT)) for ids in collective),
        absent=tuple(sorted({rank for instance in instances for rank in instance.absent} | _missing(groups))),
        instances=tuple(instance.traces for instance in instances),
        told_by=next((instance.told_by for instance in instances if instance.told_by), ""),
    )


def _missing(groups: list[Group]) -> set[int]:
    return {rank for group in groups for rank in group.absent}


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Collectives of one channel and group: rows of activities, codes of kinds, bytes, ends on one clock."""

    matched: MatchedGroup
    row: Integers
    kind: Integers
    size_bytes: Integers
    end_ns: Floats


def _block(run: Run, call_table: CallTable, matched: MatchedGroup) -> _Block:
    """A matched group's table, its calls as rows of activities."""
    positions, end_ns = table(matched, call_table.kind)
    row = np.full(positions.shape, ABSENT, np.int64)
    kind = np.full(len(positions), ABSENT, np.int64)
    size_bytes = np.full(len(positions), ABSENT, np.int64)
    for column, trace_index in enumerate(matched.traces):
        has = positions[:, column] != ABSENT
        calls = matched.channel.calls[trace_index].take(positions[has, column])
        row[has, column] = calls.row
        kind[has] = np.where(kind[has] == ABSENT, calls.kind, kind[has])
        size_bytes[has] = np.maximum(size_bytes[has], _message_bytes(run.traces[trace_index])[calls.row])
    return _Block(matched, row, kind, size_bytes, end_ns)


def _group(run: Run, call_table: CallTable, instance: EngineInstance, blocks: list[_Block], first: int) -> Group:
    """Blocks of equal ranks as one group, in order of time."""
    main = max(blocks, key=lambda block: len(block.kind)).matched
    order = np.argsort(np.concatenate([block.end_ns for block in blocks]), kind="stable")
    kind = np.concatenate([block.kind for block in blocks])[order]
    absent = _absent(instance, main)
    return Group(
        traces=main.traces,
        ranks=tuple(run.traces[trace_index].rank for trace_index in main.traces),
        absent=absent,
        size=len(main.traces) + len(absent),
        name=main.channel.name,
        method=_method(blocks),
        first=first,
        row=np.concatenate([block.row for block in blocks])[order],
        kind=tuple(
            "send_recv" if call_table.kind[code] in ("send", "recv") else call_table.kind[code] for code in kind
        ),
        size_bytes=np.concatenate([block.size_bytes for block in blocks])[order],
        shift=tuple(main.aligned[trace_index].lag if trace_index in main.aligned else 0 for trace_index in main.traces),
    )


def _absent(instance: EngineInstance, matched: MatchedGroup) -> tuple[int, ...]:
    """Members by the instance's numbers without a trace; where the group is not recorded, of the whole instance."""
    number = dict(zip(instance.traces, instance.numbers, strict=True))
    present = {number[trace_index] for trace_index in matched.traces}
    members = matched.channel.numbers if present <= set(matched.channel.numbers) else ()
    if not matched.channel.is_recorded and present == set(instance.numbers):
        members = tuple(range(instance.size or 0))
    return tuple(sorted(set(members) - set(instance.numbers)))


def _method(blocks: list[_Block]) -> Method:
    if not blocks[0].matched.channel.is_recorded:
        return Method.ENDS
    numbered = all(len(block.matched.by_sequence) == len(block.matched.aligned) for block in blocks)
    return Method.SEQUENCE if numbered else Method.ORDER


def _message_bytes(trace: Trace) -> Integers:
    """int64[n] over the trace's activities, ABSENT where not recorded."""
    column = np.full(len(trace.activities), ABSENT, np.int64)
    records = trace.collectives
    column[records.activity] = np.maximum(records.in_bytes, records.out_bytes)
    return column
