"""Which ranks a channel's collectives join: as recorded, else the ranks whose calls end together."""

from __future__ import annotations

from dataclasses import replace

from analyzer.matching.align import Alignment
from analyzer.matching.channels import Channel
from analyzer.matching.groups import COMMON, MatchedGroup, ends, joined
from analyzer.matching.instances import EngineInstance
from analyzer.matching.lag import FINEST_NS
from analyzer.matching.pairs import Known, pair
from analyzer.matching.partition import KnownGroup, blocks, borne_out, group_splits

FEWEST = 24
"""Pairs of which von Neumann's ratio says something, and a robust spread is good to a fifth."""

ENOUGH = 48
"""Pairs that it takes where no list of rank groups narrows the choice, unless the channel has most calls of all:
groups that rarely communicate are held in step by those in between, and end together by chance."""

LEAST = 3
LEAST_CHOICE = 5
"""Pairs without which nothing is told of who belongs together, and without which no group is chosen among several."""

SERIAL = (1.0, 1.5)
SERIAL_PAIRS = 7.0
"""Von Neumann's ratio below which ends walk apart: 2 less the last over the root of the pairs, between the first two.
Jitter gives 2 ± 2/sqrt(pairs); a walk gives less than 0.5, one that later collectives pull back up to 1.4."""

END_NS = 5_000.0
"""Scatter of the ends of one collective on devices, at most: 1 to 4 µs in NCCL, DeepEP and custom all-reduces."""

TIED = 0.33
TIED_FEW = 0.2
"""Ends scatter by less than this share of the starts' scatter: the ranks wait for each other."""

TIGHTER = 3.0
"""A smaller group is the right one when its ends scatter so many times less than those of a larger one."""

ALIKE = 1.3
ALIKE_PAIRS = 6.0
"""Two scatters of n pairs are alike within the sum of the first and the second over the root of n: real ranks differ
by the first, estimates by the second."""

JITTER_NS = 1_000.0
"""Differences of scatter below this tell nothing."""


def matched_groups(known: Known, channel: Channel) -> list[MatchedGroup]:
    """The groups of a channel; ranks that belong to none, or about which nothing can be told, are in none."""
    traces = tuple(channel.calls)
    if not channel.instance.certain:
        groups = _clusters(known, channel, traces)
    elif channel.is_recorded:
        groups = [joined(known, channel, traces)]
    else:
        groups = _undeclared(known, channel, traces)
    kept = [group for group in groups if group.aligned]
    for group in kept:
        for trace_index, alignment in group.aligned.items():
            known.clocks.join(trace_index, group.ref, alignment.clock_fit)
    if channel.is_densest:
        known.groups.setdefault(channel.instance, []).extend(
            KnownGroup(group.traces, group.scatter_ns) for group in kept
        )
    return kept


def _undeclared(known: Known, channel: Channel, traces: tuple[int, ...]) -> list[MatchedGroup]:
    """Groups of a channel whose calls do not say theirs: of the rank groups that are known, else as ends tell."""
    sets = _candidates(known, channel)
    if parted := _parted(known, channel, sets):
        return parted
    if not sets:
        return _clusters(known, channel, traces)
    if len(sets) == 1 and sets[0] == tuple(sorted(traces)):
        return [joined(known, channel, traces)]
    return _chosen(known, channel, sets)


def _parted(known: Known, channel: Channel, sets: list[tuple[int, ...]]) -> list[MatchedGroup]:
    """Groups of a channel in the one split that ends of all its ranks together bear out; [] where they tell none."""
    known_groups = known.groups.get(channel.instance, [])
    if channel.is_densest or not known_groups:
        return []
    trial = _related(known, channel, [group.traces for group in known_groups])
    whole = joined(trial, channel, tuple(channel.calls))
    end = ends(whole)
    tried = group_splits(
        channel.instance, whole.traces, [one for one in sets if set(one) <= set(whole.traces)], known_groups
    )
    split = borne_out(whole.traces, end, tried, known_groups) or ()
    return [joined(trial, channel, members) for members in split]


def _related(known: Known, channel: Channel, groups: list[tuple[int, ...]]) -> Known:
    """What is known, if all ranks make the channel's calls alike: each known group related by its best aligned rank."""
    ref = max(channel.calls, key=lambda trace_index: (len(channel.calls[trace_index]), -trace_index))
    clocks = known.clocks.copy()
    trial = replace(known, clocks=clocks)
    for members in groups:
        alignments = {
            trace_index: pair(trial, channel, trace_index, ref)[0]
            for trace_index in members
            if trace_index in channel.calls and trace_index != ref
        }
        sound = {trace_index: alignment for trace_index, alignment in alignments.items() if alignment is not None}
        if sound:
            best = max(sound, key=lambda trace_index: (sound[trace_index].count, -sound[trace_index].scatter_ns))
            clocks.join(best, ref, sound[best].clock_fit)
    return trial


def _candidates(known: Known, channel: Channel) -> list[tuple[int, ...]]:
    """Known rank groups, cut down to the traces with calls of this channel; two or more of them each."""
    by_number = dict(zip(channel.instance.numbers, channel.instance.traces, strict=True))
    groups = {
        tuple(by_number[number] for number in group.ranks if number in by_number)
        for trace_index in channel.calls
        for group in known.run.traces[trace_index].origin.groups
    }
    by_rank = {trace.rank: trace_index for trace_index, trace in enumerate(known.run.traces)}
    for axis in known.run.layout.groups.values():
        groups |= {tuple(by_rank[rank] for rank in ranks if rank in by_rank) for ranks in axis}
    sets = {tuple(sorted(trace_index for trace_index in group if trace_index in channel.calls)) for group in groups}
    return sorted((members for members in sets if len(members) > 1), key=lambda members: (-len(members), members))


def _chosen(known: Known, channel: Channel, sets: list[tuple[int, ...]]) -> list[MatchedGroup]:
    """Of known groups the largest whose ends keep together, unless another keeps together about as well.

    A part of a group need not be compared where it keeps together no better. Few calls must decide by far.
    """
    trials = {members: joined(known, channel, members) for members in sets}
    sound = {
        members: group
        for members, group in trials.items()
        if len(group.traces) == len(members)
        and all(
            _end_together(alignment, TIED) and alignment.count >= LEAST_CHOICE for alignment in group.aligned.values()
        )
    }
    chosen: list[MatchedGroup] = []
    taken: set[int] = set()
    for members, group in sound.items():
        inner_groups = [other for mates, other in sound.items() if set(mates) < set(members)]
        rivals = [
            other for mates, other in trials.items() if not set(mates) <= set(members) and set(mates) & set(members)
        ]
        far = (group.scatter_ns + JITTER_NS) * TIGHTER
        is_few = min(alignment.count for alignment in group.aligned.values()) < FEWEST
        if (
            taken.isdisjoint(members)
            and all((inner.scatter_ns + JITTER_NS) * TIGHTER > group.scatter_ns + JITTER_NS for inner in inner_groups)
            and not (is_few and any(rival.aligned and rival.scatter_ns + JITTER_NS < far for rival in rivals))
        ):
            chosen.append(group)
            taken.update(members)
    return chosen


def _clusters(known: Known, channel: Channel, traces: tuple[int, ...]) -> list[MatchedGroup]:
    """Groups of ranks whose ends keep together, where nothing else tells them.

    One rank after another gathers those that end with it. Few calls tell only whether all ranks end together.
    """
    groups: list[MatchedGroup] = []
    left = sorted(traces, key=lambda trace_index: (-len(channel.calls[trace_index]), trace_index))
    while left:
        ref = left[0]
        pairs = {trace_index: pair(known, channel, trace_index, ref) for trace_index in left[1:]}
        if not groups and _is_whole(known, channel, [alignment for alignment, _ in pairs.values()]):
            known.whole.add(channel.instance)
            return [joined(known, channel, traces)]
        near = {
            trace_index: alignment
            for trace_index, (alignment, _) in pairs.items()
            if alignment is not None and _end_together(alignment)
        }
        near = _one_of_each(channel.instance, ref, _closest(near))
        groups.append(
            MatchedGroup(channel, ref, near, frozenset(trace_index for trace_index in near if pairs[trace_index][1]))
        )
        left = [trace_index for trace_index in left[1:] if trace_index not in near]
    groups = _evened(known, channel, groups)
    fewest = LEAST_CHOICE if channel.is_recorded else FEWEST if channel.is_densest else ENOUGH
    return [group for group in groups if all(alignment.count >= fewest for alignment in group.aligned.values())]


def _evened(known: Known, channel: Channel, groups: list[MatchedGroup]) -> list[MatchedGroup]:
    """The same groups, but one that is several blocks where the others are one block each is parted if its ends are.

    Groups that others hold in step end nearly together; pooled over all their ranks the ends tell them apart.
    """
    several = [group.traces for group in groups if group.aligned]
    even: list[MatchedGroup] = []
    for group in groups:
        parted = blocks(channel.instance, group.traces, several) if channel.instance.certain and group.aligned else ()
        if len(parted) > 1:
            alike = [
                KnownGroup(other.traces, other.scatter_ns) for other in groups if other.aligned and other is not group
            ]
            split = borne_out(group.traces, ends(group), [(group.traces,), parted], alike)
            if split == parted:
                even += [joined(known, channel, members) for members in parted]
                continue
        even.append(group)
    return even


def _is_whole(known: Known, channel: Channel, alignments: list[Alignment | None]) -> bool:
    """Whether all ranks of the instance end together, as far as a channel of few calls can tell.

    A channel that is not the one with most calls may say so only after that one did: ranks that are held in step by
    other collectives end together by chance.
    """
    if not channel.instance.certain or len(alignments) + 1 < len(channel.instance.traces):
        return False
    if not channel.is_densest and channel.instance not in known.whole:
        return False
    return all(alignment is not None and _may_be_together(alignment) for alignment in alignments)


def _may_be_together(alignment: Alignment) -> bool:
    """Whether nothing speaks against two ranks' calls being those of one collective."""
    if alignment.count >= FEWEST:
        return _end_together(alignment)
    jitters = alignment.scatter_ns <= END_NS and alignment.serial >= SERIAL[0]
    tied = alignment.scatter_ns <= TIED * alignment.skew_ns
    return alignment.count >= LEAST and min(alignment.share, alignment.held) >= COMMON and (tied or jitters)


def _closest(near: dict[int, Alignment]) -> dict[int, Alignment]:
    """Those whose ends scatter like those of the closest, as far as so many pairs can tell two scatters apart."""
    if not near or min(alignment.count for alignment in near.values()) < FEWEST:
        return near
    least = min(alignment.scatter_ns for alignment in near.values())
    return {
        trace_index: alignment
        for trace_index, alignment in near.items()
        if alignment.scatter_ns <= least * (ALIKE + ALIKE_PAIRS / alignment.count**0.5) + FINEST_NS
    }


def _one_of_each(instance: EngineInstance, ref: int, near: dict[int, Alignment]) -> dict[int, Alignment]:
    """One trace of each rank number: the closest, if it is so by far; none of the reference's own number."""
    number = dict(zip(instance.traces, instance.numbers, strict=True))
    kept: dict[int, Alignment] = {}
    by_number: dict[int, list[int]] = {}
    for trace_index in near:
        by_number.setdefault(number[trace_index], []).append(trace_index)
    for rank, several in by_number.items():
        several.sort(key=lambda trace_index: near[trace_index].scatter_ns)
        first, *others = several
        if rank != number[ref] and all(
            near[trace_index].scatter_ns + JITTER_NS >= TIGHTER * (near[first].scatter_ns + JITTER_NS)
            for trace_index in others
        ):
            kept[first] = near[first]
    return kept


def _end_together(alignment: Alignment, tied_few: float = TIED_FEW) -> bool:
    """Whether the ends of two ranks' calls keep together as those of one collective do.

    Args:
        alignment: theirs.
        tied_few: share of the starts' scatter that few pairs may show.
    """
    many = alignment.count >= FEWEST
    tied = alignment.count >= LEAST and alignment.scatter_ns <= (TIED if many else tied_few) * alignment.skew_ns
    least, most = SERIAL
    walk = max(least, min(most, 2 - SERIAL_PAIRS / alignment.count**0.5))
    jitters = many and alignment.serial >= walk and alignment.scatter_ns <= END_NS
    return min(alignment.share, alignment.held) >= COMMON and (tied or jitters)
