"""Channels: calls that can only be matched with each other.

A recorded process group is a channel, of whatever kinds. Calls without a record are a channel for each kernel name:
one communicator's kernels may share a name with another's, which the groups of a channel then tell apart. A pair of
ranks that sends one way is a channel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

import numpy as np

from analyzer.matching.calls import CallColumns, CallTable
from analyzer.matching.instances import EngineInstance
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.stats.arrays import Integers

LANE_SHARE = 0.5
"""Streams tell communicators of one kernel name apart when each next one has less than this share of the calls."""


class CallSort(Enum):
    """What the calls of a channel share."""

    RECORDED = "process group"
    UNRECORDED = "kernel name"
    ONE_WAY = "sender and receiver"


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """Calls of several ranks among which collectives are looked for.

    Attributes:
        instance: engine instance.
        name: of the process group, "" where not recorded.
        numbers: members by the instance's numbers as recorded, () where not recorded in full.
        sort: how its calls are told from others.
        is_densest: on each of its ranks no channel has more calls.
        calls: by position in `run.traces`; at least one call each.
    """

    instance: EngineInstance
    name: str
    numbers: tuple[int, ...]
    sort: CallSort
    is_densest: bool
    calls: dict[int, CallColumns]

    @property
    def is_recorded(self) -> bool:
        """The group is recorded; all traces with calls are of one group."""
        return self.sort is not CallSort.UNRECORDED

    @property
    def is_one_way(self) -> bool:
        """Sends of one rank and receives of another."""
        return self.sort is CallSort.ONE_WAY


def channels(run: Run, call_table: CallTable, instance: EngineInstance) -> list[Channel]:
    """Channels of one engine instance with two ranks or more: recorded ones first, larger ones first."""
    one_way = [call_table.kind.index(kind) for kind in ("send", "recv") if kind in call_table.kind]
    recorded: dict[int, dict[int, CallColumns]] = {}
    by_name: dict[tuple[int, int], dict[int, CallColumns]] = {}
    pairs: dict[tuple[int, int], dict[int, CallColumns]] = {}
    for trace_index, number in zip(instance.traces, instance.numbers, strict=True):
        calls = call_table.calls[trace_index]
        is_one_way = np.isin(calls.kind, one_way)
        if instance.certain:
            _add_pairs(pairs, trace_index, number, (calls.take(is_one_way), call_table, instance))
        rest = calls.take(~is_one_way)
        group = rest.group if run.traces[trace_index].origin.device == "cpu" else _adopted(rest)
        for code in np.unique(group):
            in_group = rest.take(group == code)
            if code == ABSENT:
                for key, named in _by_name_and_lane(in_group).items():
                    by_name.setdefault(key, {})[trace_index] = named
            else:
                recorded.setdefault(int(code), {})[trace_index] = in_group
    unnamed = _same_lanes(by_name)
    most = _most((*recorded.values(), *unnamed))
    candidates = [_recorded(call_table.group[code], instance, calls, most) for code, calls in recorded.items()]
    candidates += [Channel(instance, "", (), CallSort.UNRECORDED, _is_densest(calls, most), calls) for calls in unnamed]
    candidates += [
        Channel(instance, "", key, CallSort.ONE_WAY, is_densest=False, calls=calls) for key, calls in pairs.items()
    ]
    several = [channel for channel in candidates if len(channel.calls) > 1]
    return sorted(several, key=lambda channel: (channel.is_one_way, not channel.is_recorded, -_count(channel.calls)))


def _most(by_channel: tuple[dict[int, CallColumns], ...]) -> dict[int, int]:
    """The most calls that one channel has on each trace."""
    most: dict[int, int] = {}
    for calls in by_channel:
        for trace_index, trace_calls in calls.items():
            most[trace_index] = max(len(trace_calls), most.get(trace_index, 0))
    return most


def _is_densest(calls: dict[int, CallColumns], most: dict[int, int]) -> bool:
    return all(len(trace_calls) == most[trace_index] for trace_index, trace_calls in calls.items())


def _count(calls: dict[int, CallColumns]) -> int:
    return sum(len(trace_calls) for trace_calls in calls.values())


def _adopted(calls: CallColumns) -> Integers:
    """Group of each call; one without a record is of the group that alone has its name on its stream.

    Kernels launched before the window have no record, their successors on the stream have one.
    """
    group: Integers = calls.group.copy()
    known = group != ABSENT
    if known.all() or not known.any():
        return group
    key = calls.lane * (int(calls.name.max()) + 1) + calls.name
    seen = np.unique(np.stack((key[known], group[known])), axis=1)
    keys, first, times = np.unique(seen[0], return_index=True, return_counts=True)
    index = np.minimum(np.searchsorted(keys, key), keys.size - 1)
    alone = ~known & (keys[index] == key) & (times[index] == 1)
    group[alone] = seen[1][first[index]][alone]
    return group


def _by_name_and_lane(calls: CallColumns) -> dict[tuple[int, int], CallColumns]:
    """Calls of each name, split by lane where lanes differ much in calls: (name, position of the lane) -> calls."""
    by_lane: dict[tuple[int, int], CallColumns] = {}
    for name in np.unique(calls.name):
        named = calls.take(calls.name == name)
        lanes, count = np.unique(named.lane, return_counts=True)
        order = np.argsort(-count, kind="stable")
        if np.all(count[order][1:] < LANE_SHARE * count[order][:-1]):
            for position, lane in enumerate(lanes[order]):
                by_lane[int(name), position] = named.take(named.lane == lane)
        else:
            by_lane[int(name), ABSENT] = named
    return by_lane


def _same_lanes(by_lane: dict[tuple[int, int], dict[int, CallColumns]]) -> list[dict[int, CallColumns]]:
    """Channels of a name by lane where every rank splits alike, else of the name on all lanes."""
    chosen: list[dict[int, CallColumns]] = []
    names = dict.fromkeys(name for name, _ in by_lane)
    for name in names:
        mine = {position: calls for (other, position), calls in by_lane.items() if other == name}
        if len({tuple(calls) for calls in mine.values()}) == 1:
            chosen += mine.values()
            continue
        traces = dict.fromkeys(trace_index for calls in mine.values() for trace_index in calls)
        chosen.append(
            {
                trace_index: _joined([calls[trace_index] for calls in mine.values() if trace_index in calls])
                for trace_index in traces
            }
        )
    return chosen


def _joined(by_lane: list[CallColumns]) -> CallColumns:
    """Calls of several lanes in order of start."""
    columns = [np.concatenate(column) for column in zip(*(_columns(lane_calls) for lane_calls in by_lane), strict=True)]
    order = np.argsort(columns[1], kind="stable")
    return CallColumns(*(column[order] for column in columns))


def _columns(calls: CallColumns) -> tuple[np.ndarray, ...]:
    return tuple(getattr(calls, name) for name in calls.__slots__)


def _recorded(key: str, instance: EngineInstance, calls: dict[int, CallColumns], most: dict[int, int]) -> Channel:
    """The channel of a process group "name|members"."""
    name, _, members = key.partition("|")
    return Channel(instance, name, _members(members), CallSort.RECORDED, _is_densest(calls, most), calls)


def _members(text: str) -> tuple[int, ...]:
    """Ranks of "[0, 1, 2]"; () where the list is shortened or is none."""
    try:
        ranks = json.loads(text)
    except ValueError:
        return ()
    return tuple(ranks) if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks) else ()


def _add_pairs(
    pairs: dict[tuple[int, int], dict[int, CallColumns]],
    trace_index: int,
    number: int,
    seen: tuple[CallColumns, CallTable, EngineInstance],
) -> None:
    """Sort one rank's sends and receives by (from, to); in a group of two the peer is the other one."""
    calls, call_table, instance = seen
    peers = calls.peer.copy()
    for code in np.unique(calls.group):
        listed = _members(call_table.group[code].partition("|")[2]) if code != ABSENT else ()
        others = set(listed or (instance.numbers if instance.size in (len(instance.numbers), None) else ())) - {number}
        if len(others) == 1:
            peers[(calls.group == code) & (peers == ABSENT)] = next(iter(others))
    for code in np.unique(calls.kind):
        sends = call_table.kind[int(code)] == "send"
        for peer in np.unique(peers[calls.kind == code]):
            key = (number, int(peer)) if sends else (int(peer), number)
            if peer != ABSENT:
                pairs.setdefault(key, {})[trace_index] = calls.take((calls.kind == code) & (peers == peer))
