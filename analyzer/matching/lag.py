"""How many calls two ranks' windows start apart: the lag at which their calls end in step.

The participants of a collective end together. On two clocks the ends of one and the same call differ by the clocks'
offset, so at the right lag the difference of the n-th ends is constant up to the jitter of an end, and at a wrong lag
it carries the variation of the time between calls. Candidate lags are voted for by equal times between calls, the
rare ones first, in n log n; each is judged by what remains of the difference of ends on its longest unbroken run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.matching.clock_fit import ClockFit, fit
from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Floats, Integers, Mask

BLOCK_CALLS = 2048
"""The lag is looked for on so many calls, from the middle of a window: fewer calls are missing among them."""

PEAKS = 4
"""Lags that a vote proposes."""

WIDTHS_NS = (2e3, 2e4, 2e5, 2e6)
"""Times between calls are equal in steps of these: the jitter of ends on devices is 1 to 4 µs, on hosts up to ms."""

VOTES = 4
"""So many votes a call are counted."""

FINEST_NS = 300.0
"""Differences of spread below this are the clocks' own steps; Kineto rounds to 1 ns or to 1 µs."""

BREAK_NS = 3_000.0
BREAK_SPREADS = 8.0
BREAK_SHARE = 0.25
"""A run is broken where the difference of ends jumps by more than the time, the usual jump and the share of the time
between calls: a call is missing on one rank, which moves the difference by a whole time between calls."""

RUN_SHARE = 0.25
"""A lag whose longest run is less than this share of the longest of all lags is no candidate."""

SHORTEST_RUN = 5
"""Pairs of which the spread says something."""

_PRIME, _OTHER_PRIME = 0x9E3779B1, 0x85EBCA77


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One rank's n calls of one channel in order of start.

    Attributes:
        token: int64[n], equal on all ranks for calls that may be the same.
        size_bytes: int64[n], ABSENT where unknown; two known sizes that differ are two calls.
        start_ns, end_ns: float64[n], on the rank's own clock.
    """

    token: Integers
    size_bytes: Integers
    start_ns: Floats
    end_ns: Floats

    def __len__(self) -> int:
        return int(self.token.size)

    def take(self, rows: Integers | slice) -> Sequence:
        """The chosen calls, which keep their order."""
        return Sequence(self.token[rows], self.size_bytes[rows], self.start_ns[rows], self.end_ns[rows])


@dataclass(frozen=True, slots=True)
class LagCandidate:
    """A lag and what speaks for it.

    Attributes:
        lag: position on the other rank less the own one.
        clock_fit: own clock to the other's, fitted on the run.
        begin, end: own positions of the longest unbroken run.
        overlap: calls that both windows hold at this lag.
        apart_ns: how far the clocks are apart if the lag is right.
    """

    lag: int
    clock_fit: ClockFit
    begin: int
    end: int
    overlap: int
    apart_ns: float

    @property
    def misfit_ns(self) -> float:
        """What the run leaves unexplained; short runs are trusted less, the shortest not at all."""
        if self.end - self.begin < SHORTEST_RUN:
            return np.inf
        return (self.clock_fit.spread_ns + FINEST_NS) * (1 + SHORTEST_RUN / (self.end - self.begin))


def best_candidate(ref_calls: Sequence, own_calls: Sequence, raw_ns: float, *, one_clock: bool) -> LagCandidate | None:
    """The best lag between two sequences; None where no lag makes two calls agree.

    Args:
        ref_calls: the other rank's calls.
        own_calls: the rank's calls.
        raw_ns: what to add to times of `own_calls` to read them on the other clock if the clocks agree.
        one_clock: both ranks are on one host: of lags that fit alike the one with the smaller offset is right.
    """
    candidates: list[LagCandidate] = []
    for begin, end in _blocks(len(own_calls)):
        lags = _lags(ref_calls, own_calls, raw_ns, begin, end)
        tried = (_judge(ref_calls, own_calls, lag, raw_ns, begin, end) for lag in lags)
        candidates += [judged for judged in tried if judged is not None]
    if not candidates:
        return None
    longest = max(judged.end - judged.begin for judged in candidates)
    candidates = [judged for judged in candidates if judged.end - judged.begin >= RUN_SHARE * longest]
    best = min(candidates, key=lambda judged: judged.misfit_ns)
    alike = 1 + 4 / np.sqrt(best.end - best.begin)
    equal = [judged for judged in candidates if judged.misfit_ns <= alike * best.misfit_ns]
    if one_clock:
        return min(equal, key=lambda judged: (judged.apart_ns, -judged.overlap))
    return min(equal, key=lambda judged: (-judged.overlap, judged.apart_ns))


def _blocks(size: int) -> list[tuple[int, int]]:
    """Stretches of a window to look at: all of a small one, else its middle and both ends."""
    if size <= 2 * BLOCK_CALLS:
        return [(0, size)]
    middle = (size - BLOCK_CALLS) // 2
    return [(begin, begin + BLOCK_CALLS) for begin in (middle, 0, size - BLOCK_CALLS)]


def _lags(ref_calls: Sequence, own_calls: Sequence, raw_ns: float, begin: int, end: int) -> list[int]:
    """Lags worth judging."""
    by_clock = np.searchsorted(ref_calls.end_ns, own_calls.end_ns[begin:end] + raw_ns) - np.arange(begin, end)
    near = int(np.median(by_clock))
    lags = {0, len(ref_calls) - len(own_calls), near - 1, near, near + 1}
    stretch = own_calls.take(slice(begin, end))
    for width in WIDTHS_NS:
        for half in (0.0, 0.5):
            lags.update(_elected(_paces(ref_calls, width, half), _paces(stretch, width, half), begin))
    return sorted(lags)


def _paces(calls: Sequence, width_ns: float, half: float) -> Integers:
    """int64[n - 1]: a number for the name of each call but the first and the time since the one before it."""
    pace = np.floor(np.diff(calls.end_ns) / width_ns + half).astype(np.int64)
    return (calls.token[1:] * _PRIME) ^ (pace * _OTHER_PRIME)


def _elected(ref_paces: Integers, own_paces: Integers, begin: int) -> list[int]:
    """Lags that most equal paces vote for; the rarer a pace on the other rank, the more its vote weighs.

    Votes are counted from the rarest pace on until they are as many as calls, which keeps them linear.
    """
    order = np.argsort(ref_paces, kind="stable")
    left, right = (np.searchsorted(ref_paces[order], own_paces, side=side) for side in ("left", "right"))
    times = right - left
    voters = np.flatnonzero(times)
    voters = voters[np.argsort(times[voters], kind="stable")]
    voters = voters[
        : np.searchsorted(np.cumsum(times[voters]), VOTES * (ref_paces.size + own_paces.size), side="right")
    ]
    if voters.size == 0:
        return []
    count = times[voters]
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    lag = order[np.repeat(left[voters], count) + nth] - np.repeat(voters, count)
    weight = np.bincount(lag + own_paces.size, weights=np.repeat(1 / count, count))
    top = np.argsort(weight)[-PEAKS:]
    return [int(shifted) - own_paces.size - begin for shifted in top if weight[shifted] > 0]


def _judge(
    ref_calls: Sequence, own_calls: Sequence, lag: int, raw_ns: float, begin: int, end: int
) -> LagCandidate | None:
    """What speaks for a lag between own positions begin and end; None where nothing agrees."""
    first, last = max(begin, -lag), min(end, len(ref_calls) - lag)
    if first >= last:
        return None
    agree = same(ref_calls, own_calls, np.arange(first, last) + lag, np.arange(first, last))
    if not agree.any():
        return None
    gap = ref_calls.end_ns[first + lag : last + lag] - own_calls.end_ns[first:last]
    start, stop = _longest_run(gap, agree, np.diff(own_calls.end_ns[first:last]))
    clock_fit = fit(
        own_calls.end_ns[first + start : first + stop], ref_calls.end_ns[first + lag + start : first + lag + stop]
    )
    middle = own_calls.end_ns[first + (start + stop) // 2]
    return LagCandidate(
        lag=lag,
        clock_fit=clock_fit,
        begin=first + start,
        end=first + stop,
        overlap=min(len(own_calls), len(ref_calls) - lag) - max(0, -lag),
        apart_ns=abs(float(clock_fit.offset_ns + clock_fit.drift * middle) - raw_ns),
    )


def same(ref_calls: Sequence, own_calls: Sequence, ref_positions: Integers, own_positions: Integers) -> Mask:
    """bool[n]: pairs that agree in token, and in size where both know it."""
    left, right = ref_calls.size_bytes[ref_positions], own_calls.size_bytes[own_positions]
    sized = (left == ABSENT) | (right == ABSENT) | (left == right)
    agree: Mask = (ref_calls.token[ref_positions] == own_calls.token[own_positions]) & sized
    return agree


def _longest_run(gap: Floats, agree: Mask, pace: Floats) -> tuple[int, int]:
    """Begin and end of the longest stretch of agreeing pairs in which the gap does not jump.

    Args:
        gap: float64[n], difference of ends.
        agree: bool[n].
        pace: float64[n - 1], time between calls.
    """
    step = np.abs(np.diff(gap))
    both = agree[1:] & agree[:-1]
    usual = float(np.quantile(step[both], 0.25)) if both.any() else 0.0
    joined = both & (step <= np.maximum(BREAK_SHARE * pace, max(BREAK_NS, BREAK_SPREADS * usual)))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], joined, [False])).astype(np.int8)))
    if edges.size == 0:
        first = int(np.argmax(agree))
        return first, first + 1
    length = edges[1::2] - edges[::2]
    best = int(np.argmax(length))
    return int(edges[2 * best]), int(edges[2 * best + 1]) + 1
