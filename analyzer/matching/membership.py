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


def ties(known: Known, channel: Channel) -> list[MatchedGroup]:
    """The groups of a channel; ranks that belong to none, or about which nothing can be told, are in none."""
    traces = tuple(channel.calls)
    if not channel.world.certain:
        found = _clusters(known, channel, traces)
    elif channel.is_recorded:
        found = [joined(known, channel, traces)]
    else:
        found = _undeclared(known, channel, traces)
    kept = [tie for tie in found if tie.aligned]
    for tie in kept:
        for at, part in tie.aligned.items():
            known.frames.join(at, tie.ref, part.line)
    if channel.is_densest:
        known.found.setdefault(channel.world, []).extend(KnownGroup(tie.traces, tie.scatter_ns) for tie in kept)
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
    """Groups of a channel in the one way that the ends of all its ranks together bear out; [] where they tell none."""
    found = known.found.get(channel.world, [])
    if channel.is_densest or not found:
        return []
    trial = _related(known, channel, [part.traces for part in found])
    whole = joined(trial, channel, tuple(channel.calls))
    end = ends(whole)
    tried = group_splits(channel.world, whole.traces, [one for one in sets if set(one) <= set(whole.traces)], found)
    way = borne_out(whole.traces, end, tried, found) or ()
    return [joined(trial, channel, members) for members in way]


def _related(known: Known, channel: Channel, found: list[tuple[int, ...]]) -> Known:
    """What is known, if all ranks make the channel's calls alike: each known group related by its best aligned rank."""
    ref = max(channel.calls, key=lambda at: (len(channel.calls[at]), -at))
    frames = known.frames.copy()
    trial = replace(known, frames=frames)
    for members in found:
        parts = {at: pair(trial, channel, at, ref)[0] for at in members if at in channel.calls and at != ref}
        sound = {at: part for at, part in parts.items() if part is not None}
        if sound:
            best = max(sound, key=lambda at: (sound[at].count, -sound[at].scatter_ns))
            frames.join(best, ref, sound[best].line)
    return trial


def _candidates(known: Known, channel: Channel) -> list[tuple[int, ...]]:
    """Known rank groups, cut down to the traces with calls of this channel; two or more of them each."""
    place = dict(zip(channel.world.numbers, channel.world.traces, strict=True))
    groups = {
        tuple(place[number] for number in group.ranks if number in place)
        for at in channel.calls
        for group in known.run.traces[at].origin.groups
    }
    position = {trace.rank: at for at, trace in enumerate(known.run.traces)}
    for axis in known.run.layout.groups.values():
        groups |= {tuple(position[rank] for rank in ranks if rank in position) for ranks in axis}
    sets = {tuple(sorted(at for at in group if at in channel.calls)) for group in groups}
    return sorted((found for found in sets if len(found) > 1), key=lambda found: (-len(found), found))


def _chosen(known: Known, channel: Channel, sets: list[tuple[int, ...]]) -> list[MatchedGroup]:
    """Of known groups the largest whose ends keep together, unless another keeps together about as well.

    A part of a group need not be compared where it keeps together no better. Few calls must decide by far.
    """
    trials = {members: joined(known, channel, members) for members in sets}
    sound = {
        members: tie
        for members, tie in trials.items()
        if len(tie.traces) == len(members)
        and all(_end_together(part, TIED) and part.count >= LEAST_CHOICE for part in tie.aligned.values())
    }
    found: list[MatchedGroup] = []
    taken: set[int] = set()
    for members, tie in sound.items():
        parts = [other for mates, other in sound.items() if set(mates) < set(members)]
        rivals = [
            other for mates, other in trials.items() if not set(mates) <= set(members) and set(mates) & set(members)
        ]
        far = (tie.scatter_ns + JITTER_NS) * TIGHTER
        is_few = min(part.count for part in tie.aligned.values()) < FEWEST
        if (
            taken.isdisjoint(members)
            and all((part.scatter_ns + JITTER_NS) * TIGHTER > tie.scatter_ns + JITTER_NS for part in parts)
            and not (is_few and any(rival.aligned and rival.scatter_ns + JITTER_NS < far for rival in rivals))
        ):
            found.append(tie)
            taken.update(members)
    return found


def _clusters(known: Known, channel: Channel, traces: tuple[int, ...]) -> list[MatchedGroup]:
    """Groups of ranks whose ends keep together, where nothing else tells them.

    One rank after another gathers those that end with it. Few calls tell only whether all ranks end together.
    """
    found: list[MatchedGroup] = []
    left = sorted(traces, key=lambda at: (-len(channel.calls[at]), at))
    while left:
        ref = left[0]
        pairs = {at: pair(known, channel, at, ref) for at in left[1:]}
        if not found and _is_whole(known, channel, [part for part, _ in pairs.values()]):
            known.whole.add(channel.world)
            return [joined(known, channel, traces)]
        near = {at: part for at, (part, _) in pairs.items() if part is not None and _end_together(part)}
        near = _one_of_each(channel.world, ref, _closest(near))
        found.append(MatchedGroup(channel, ref, near, frozenset(at for at in near if pairs[at][1])))
        left = [at for at in left[1:] if at not in near]
    found = _evened(known, channel, found)
    fewest = LEAST_CHOICE if channel.is_recorded else FEWEST if channel.is_densest else ENOUGH
    return [tie for tie in found if all(part.count >= fewest for part in tie.aligned.values())]


def _evened(known: Known, channel: Channel, found: list[MatchedGroup]) -> list[MatchedGroup]:
    """The same groups, but one that is several blocks where the others are one block each is parted if its ends are.

    Groups that others hold in step end nearly together; pooled over all their ranks the ends tell them apart.
    """
    several = [tie.traces for tie in found if tie.aligned]
    even: list[MatchedGroup] = []
    for tie in found:
        parted = blocks(channel.world, tie.traces, several) if channel.world.certain and tie.aligned else ()
        if len(parted) > 1:
            alike = [
                KnownGroup(other.traces, other.scatter_ns) for other in found if other.aligned and other is not tie
            ]
            way = borne_out(tie.traces, ends(tie), [(tie.traces,), parted], alike)
            if way == parted:
                even += [joined(known, channel, members) for members in parted]
                continue
        even.append(tie)
    return even


def _is_whole(known: Known, channel: Channel, parts: list[Alignment | None]) -> bool:
    """Whether all ranks of the instance end together, as far as a channel of few calls can tell.

    A channel that is not the one with most calls may say so only after that one did: ranks that are held in step by
    other collectives end together by chance.
    """
    if not channel.world.certain or len(parts) + 1 < len(channel.world.traces):
        return False
    if not channel.is_densest and channel.world not in known.whole:
        return False
    return all(part is not None and _may_be_together(part) for part in parts)


def _may_be_together(part: Alignment) -> bool:
    """Whether nothing speaks against two ranks' calls being those of one collective."""
    if part.count >= FEWEST:
        return _end_together(part)
    jitters = part.scatter_ns <= END_NS and part.serial >= SERIAL[0]
    tied = part.scatter_ns <= TIED * part.skew_ns
    return part.count >= LEAST and min(part.share, part.held) >= COMMON and (tied or jitters)


def _closest(near: dict[int, Alignment]) -> dict[int, Alignment]:
    """Those whose ends scatter like those of the closest, as far as so many pairs can tell two scatters apart."""
    if not near or min(part.count for part in near.values()) < FEWEST:
        return near
    least = min(part.scatter_ns for part in near.values())
    return {
        at: part
        for at, part in near.items()
        if part.scatter_ns <= least * (ALIKE + ALIKE_PAIRS / part.count**0.5) + FINEST_NS
    }


def _one_of_each(world: EngineInstance, ref: int, near: dict[int, Alignment]) -> dict[int, Alignment]:
    """One trace of each rank number: the closest, if it is so by far; none of the reference's own number."""
    number = dict(zip(world.traces, world.numbers, strict=True))
    kept: dict[int, Alignment] = {}
    by_number: dict[int, list[int]] = {}
    for at in near:
        by_number.setdefault(number[at], []).append(at)
    for rank, several in by_number.items():
        several.sort(key=lambda at: near[at].scatter_ns)
        first, *others = several
        if rank != number[ref] and all(
            near[at].scatter_ns + JITTER_NS >= TIGHTER * (near[first].scatter_ns + JITTER_NS) for at in others
        ):
            kept[first] = near[first]
    return kept


def _end_together(part: Alignment, tied_few: float = TIED_FEW) -> bool:
    """Whether the ends of two ranks' calls keep together as those of one collective do.

    Args:
        part: their alignment.
        tied_few: share of the starts' scatter that few pairs may show.
    """
    many = part.count >= FEWEST
    tied = part.count >= LEAST and part.scatter_ns <= (TIED if many else tied_few) * part.skew_ns
    least, most = SERIAL
    walk = max(least, min(most, 2 - SERIAL_PAIRS / part.count**0.5))
    jitters = many and part.serial >= walk and part.scatter_ns <= END_NS
    return min(part.share, part.held) >= COMMON and (tied or jitters)
