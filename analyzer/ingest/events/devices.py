"""One file that holds the work of several devices: one process that drives them all, or files that a tool merged.

Each device is a rank of its own: a union over devices would be nobody's time. Correlation ids repeat in a merged file,
so a call is given to a device by the title of its process (`RANK 3 - CPU`), else by what it launched.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from analyzer.errors import TraceFormatError
from analyzer.ingest.events import device
from analyzer.ingest.events.merged import shared
from analyzer.ingest.kineto.raw import RawTrace
from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Integers, Mask

_TITLE = re.compile(r"^RANK[ _:-]*(\d+)\b", re.IGNORECASE)

EVERYONE = -1
"""Owner of an event of the host that belongs to no device more than to another."""

Ranked = tuple[int, RawTrace]


def ranks_of(raw: RawTrace) -> tuple[Ranked, ...]:
    """Rank and events of each device; none where the file is of one device.

    Raises:
        TraceFormatError: several processes and several devices, and nothing tells whose launches are whose.
    """
    work = np.flatnonzero(device.is_work(raw))
    key = _keys(raw, work)
    if key is None:
        return ()
    keys, owner_of_work = np.unique(key, axis=0, return_inverse=True)
    titled = _titles(raw)
    stated = [titled.get(process) for process in keys[:, 0].tolist()]
    is_titled = None not in stated and len(set(stated)) == len(stated)
    owner = _owners(raw, work, owner_of_work.reshape(-1), [rank if is_titled else None for rank in stated], titled)
    numbers = [rank for rank in stated if rank is not None] if is_titled else _numbered(raw, keys[:, 1].tolist())
    job = shared(raw.metadata.get("distributedInfo"))
    world = job.get("world_size")
    if isinstance(world, int) and world <= max(numbers):
        del job["world_size"]
    parts = [
        replace(
            raw.take((owner == number) | (owner == EVERYONE)),
            metadata={**raw.metadata, "distributedInfo": job},
            problems=() if number else raw.problems,
        )
        for number in range(len(keys))
    ]
    return tuple(sorted(zip(numbers, parts, strict=True), key=lambda ranked: ranked[0]))


def _keys(raw: RawTrace, work: Integers) -> Integers | None:
    """int64[m, 2]: process and device of each work event; None where all have the same."""
    process, index = raw.process[work], raw.integer("device")[work]
    if work.size == 0 or (process.min() == process.max() and _is_one(index)):
        return None
    filled = index.copy()
    for one in np.unique(process):
        own = process == one
        given = index[own & (index != ABSENT)]
        filled[own & (index == ABSENT)] = given[0] if given.size and _is_one(given) else one
    key = np.stack((process, filled), axis=1)
    return key if np.any(key != key[0]) else None


def _is_one(index: Integers) -> bool:
    given = index[index != ABSENT]
    return given.size == 0 or bool(given.min() == given.max())


def _titles(raw: RawTrace) -> dict[int, int]:
    """Rank of each process whose title states one."""
    named = raw.descriptions.key.where(lambda key: key == "process_name")
    titles = zip(raw.descriptions.process[named].tolist(), raw.descriptions.text.take(named).tolist(), strict=True)
    matched = ((process, _TITLE.match(title)) for process, title in titles)
    return {process: int(match[1]) for process, match in matched if match}


def _numbered(raw: RawTrace, devices: list[int]) -> list[int]:
    """Ranks of devices of which no title states any: by device, behind those of lower ranks' files."""
    job = raw.metadata.get("distributedInfo")
    stated = job.get("rank") if isinstance(job, dict) else None
    if isinstance(stated, int) and stated > 0:
        return [stated * len(devices) + number for number in range(len(devices))]
    return devices if len(set(devices)) == len(devices) and min(devices) >= 0 else list(range(len(devices)))


def _owners(
    raw: RawTrace, work: Integers, owner_of_work: Integers, ranks: list[int | None], titled: dict[int, int]
) -> Integers:
    """int64[n]: which device each event belongs to, EVERYONE where to all."""
    owner = np.full(len(raw), EVERYONE, np.int64)
    owner[work] = owner_of_work
    for process in np.unique(raw.process).tolist():
        own = raw.process == process
        on_device = np.unique(owner_of_work[raw.process[work] == process])
        if on_device.size == 1:
            owner[own] = on_device[0]
        elif process in titled and titled[process] in ranks:
            owner[own] = ranks.index(titled[process])
    if None in ranks:
        _give_launches(raw, work, owner_of_work, owner)
    return owner


def _give_launches(raw: RawTrace, work: Integers, owner_of_work: Integers, owner: Integers) -> None:
    """Give each call to the device whose work it launched; one that launched on several stays everyone's."""
    correlation = raw.integer("correlation")
    calls = np.flatnonzero((owner == EVERYONE) & (correlation != ABSENT))
    linked = correlation[work] != ABSENT
    pairs = np.unique(np.stack((correlation[work], owner_of_work), axis=1)[linked], axis=0)
    if calls.size == 0 or pairs.size == 0:
        return
    keys, first, times = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    slot = np.minimum(np.searchsorted(keys, correlation[calls]), keys.size - 1)
    launched: Mask = keys[slot] == correlation[calls]
    if np.any(times > 1) and np.unique(raw.process[calls[launched]]).size > 1:
        raise TraceFormatError(
            f"{raw.path}: several processes and devices in one file whose launches cannot be told apart; "
            "give each rank's own trace"
        )
    single = launched & (times[slot] == 1)
    owner[calls[single]] = pairs[first[slot[single]], 1]
