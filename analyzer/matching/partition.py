"""Groups across those already found: which split of the ranks the ends of a channel bear out.

An engine of several axes has a group of each axis through every rank. Once the groups of the axis that communicates
most are found, a channel that says nothing of its own groups can be theirs, of all ranks, of a recorded list, or can
cross them: rank i of each. Each split claims that the ends within its groups keep together; an analysis of variance of
those ends, each rank's clock taken out of it, tells the right split from the others although calls are few, because
all ranks speak at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.matching.instances import EngineInstance
from analyzer.stats.arrays import Floats, Integers
from analyzer.stats.tests import f_tail

SURE = 1e-3
"""Chance, at most, that a split's ends keep closer together than another's though both are alike."""

LIKE_FOUND = 2.0
"""Ends of one group scatter by no more than so many times those of the groups already found on the same devices."""

MOST = 0.5
"""Of the known groups: so many must be blocks of one size before others are held to it."""

CLOCK_TERMS = 2
"""Offset and drift, taken out of each rank's ends."""

FEWEST_CALLS = 5
"""Without which no group is chosen among several."""

GroupSplit = tuple[tuple[int, ...], ...]
"""Disjoint groups of two ranks or more, as positions in `run.traces`."""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group that is known, and the robust spread of the difference of two of its ranks' ends."""

    traces: tuple[int, ...]
    scatter_ns: float


def group_splits(
    instance: EngineInstance, traces: tuple[int, ...], sets: list[tuple[int, ...]], known_groups: list[KnownGroup]
) -> list[GroupSplit]:
    """Every split of these ranks that may be: as recorded lists say, else along and across known groups."""
    if sets:
        return list(dict.fromkeys(_with_others(first, sets) for first in sets))
    width, number = (
        _width(instance, [group.traces for group in known_groups]),
        dict(zip(instance.traces, instance.numbers, strict=True)),
    )
    if width is None:
        return []
    along = _split(traces, [number[trace_index] // width for trace_index in traces])
    across = _split(traces, [number[trace_index] % width for trace_index in traces])
    return [split for split in dict.fromkeys((along, across, (tuple(sorted(traces)),))) if split]


def _with_others(first: tuple[int, ...], sets: list[tuple[int, ...]]) -> GroupSplit:
    """A recorded group with all those that can exist beside it, larger ones first."""
    chosen, taken = [first], set(first)
    for members in sets:
        if taken.isdisjoint(members):
            chosen.append(members)
            taken.update(members)
    return tuple(sorted(chosen))


def blocks(instance: EngineInstance, traces: tuple[int, ...], known: list[tuple[int, ...]]) -> GroupSplit:
    """These ranks in the blocks of consecutive numbers that known groups mostly are; () where they are not."""
    width, number = _width(instance, known), dict(zip(instance.traces, instance.numbers, strict=True))
    return () if width is None else _split(traces, [number[trace_index] // width for trace_index in traces])


def _width(instance: EngineInstance, known: list[tuple[int, ...]]) -> int | None:
    """Ranks of a group if most known ones are in blocks of consecutive numbers of one size; None where they are not.

    Absent ranks leave a group without its ends, so that the size is the least that keeps known groups apart.
    """
    number = dict(zip(instance.traces, instance.numbers, strict=True))
    whole = instance.size or max(instance.numbers) + 1
    for width in (size for size in range(2, whole) if whole % size == 0):
        homes = [{number[trace_index] // width for trace_index in members} for members in known]
        alone = sum(len(home) == 1 for home in homes)
        if alone > MOST * len(homes) and len(set().union(*homes)) == sum(map(len, homes)):
            return width
    return None


def _split(traces: tuple[int, ...], label: list[int]) -> GroupSplit:
    groups: dict[int, list[int]] = {}
    for trace_index, key in zip(traces, label, strict=True):
        groups.setdefault(key, []).append(trace_index)
    return tuple(sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1))


def borne_out(
    traces: tuple[int, ...], end_ns: Floats, tried: list[GroupSplit], known_groups: list[KnownGroup]
) -> GroupSplit | None:
    """The split whose ends keep together as those of known groups do and closer than in any other.

    None where calls are too few or the splits too much alike.

    Args:
        traces: of the p columns.
        end_ns: float64[k, p], ends of one call a line, NaN where a rank has none.
        tried: the splits.
        known_groups: the groups already known.
    """
    column_of = {trace_index: column for column, trace_index in enumerate(traces)}
    scored = []
    for split in tried:
        square, freedom = _within(
            end_ns, [np.array([column_of[trace_index] for trace_index in group], np.int64) for group in split]
        )
        if freedom > 0:
            scored.append((square, freedom, split))
    if len(scored) < 2:  # noqa: PLR2004 (there is nothing to choose from)
        return None
    (least, freedom, best), *others = sorted(scored, key=lambda one: one[0])
    # Two ends differ by the root of 2 more than one end from its mean.
    usual = max(group.scatter_ns for group in known_groups)
    if np.sqrt(2 * least) > LIKE_FOUND * usual:
        return None
    is_clear = all(f_tail(square / max(least, 1.0), other, freedom) < SURE for square, other, _ in others)
    return best if is_clear else None


def _within(end_ns: Floats, groups: list[Integers]) -> tuple[float, int]:
    """Mean square of ends about their group's mean in each call, clocks taken out, and its degrees of freedom."""
    total, freedom = 0.0, 0
    for columns in groups:
        ends = end_ns[:, columns]
        ends = ends[np.count_nonzero(np.isfinite(ends), axis=1) > 1]
        if np.count_nonzero(np.isfinite(ends), axis=0).min() < FEWEST_CALLS:
            continue
        middle = np.nanmean(ends, axis=1)
        time = middle - middle.mean()
        time /= max(float(np.abs(time).max()), 1.0)
        rest = ends - middle[:, None]
        for column in rest.T:
            has = np.isfinite(column)
            slope, offset = np.polyfit(time[has], column[has], 1)
            column[has] -= offset + slope * time[has]
        total += float(np.nansum(np.square(rest)))
        freedom += np.count_nonzero(np.isfinite(rest)) - len(ends) - CLOCK_TERMS * (columns.size - 1)
    return total / max(freedom, 1), freedom
