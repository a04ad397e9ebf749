"""Which call of one rank is which call of another: by a first lag, then outwards by time on one clock.

Calls may be missing on either rank, so order alone does not carry through a window; the time of the ends on one clock
does, once the clocks' offset and drift are known from a stretch without gaps. Where ends scatter by more than calls
are apart, order decides again, by the lag that prevails around a call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from analyzer.matching.clock_fit import NORMAL, ClockFit, fit, spread
from analyzer.matching.lag import FINEST_NS, Sequence, best_candidate, same
from analyzer.model.events import ABSENT
from analyzer.stats.arrays import Floats, Integers, Mask

GROWTH = 2
"""A stretch known grows by so many of its own lengths to each side at a time."""

NEAR_SHARE = 0.45
"""An end belongs to a call when it is nearer than this share of the distance to the next call of its name."""

REACH_NS = 1_000_000.0
REACH_SPREADS = 20.0
"""And no farther than either: a call that occurs once has no next one."""

AROUND = 15
"""Calls over which a lag must prevail to overrule the nearest end."""

TOUCH_SPREADS = 4.0
"""Two calls may be apart by so many spreads of the ends and still be one."""

_SPAN = 1 << 50
"""More than any window in nanoseconds; keeps tokens apart in one sorted column."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Pairs of calls of two ranks.

    Attributes:
        partner: int64[n], position in the other rank's sequence of each own call, ABSENT where it has none.
        clock_fit: own clock to the other's.
        lag: position on the other rank less the own one, of most pairs.
        count: pairs.
        share: of the calls inside the common window, those that have a partner.
        held: of the calls of the rank that has fewer, those that have a partner.
        scatter_ns: robust spread of the difference of ends, on one clock; about 0 where another channel told the clock.
        skew_ns: robust spread of the difference of starts, on one clock.
        serial: mean square of the step from one end difference to the next, over their variance: 2 for jitter, near
            0 for two timelines that walk apart (von Neumann's ratio).
    """

    partner: Integers
    clock_fit: ClockFit
    lag: int
    count: int
    share: float
    held: float
    scatter_ns: float
    skew_ns: float
    serial: float


def align(
    ref_calls: Sequence, own_calls: Sequence, raw_ns: float, prior: ClockFit | None, *, one_clock: bool
) -> Alignment | None:
    """Pairs of calls that are one collective; None where there are none.

    Args:
        ref_calls: the other rank's calls.
        own_calls: the rank's calls.
        raw_ns: what to add to times of `own_calls` to read them on the other clock if the clocks agree.
        prior: own clock to the other's where calls of another channel told it.
        one_clock: both ranks are on one host.
    """
    if len(ref_calls) == 0 or len(own_calls) == 0:
        return None
    index = _index(ref_calls)
    if prior is None:
        candidate = best_candidate(ref_calls, own_calls, raw_ns, one_clock=one_clock)
        if candidate is None:
            return None
        partner, clock_fit = _grow(index, own_calls, candidate.clock_fit, candidate.begin, candidate.end)
    else:
        partner, clock_fit = _nearest(index, own_calls, prior), prior
    partner = _ordered(ref_calls, own_calls, partner, clock_fit)
    return summary(ref_calls, own_calls, partner, prior)


def in_order(ref_calls: Sequence, own_calls: Sequence, raw_ns: float, prior: ClockFit | None) -> Alignment | None:
    """Pairs of what one rank sends and the other receives, which is first in, first out.

    A send may end long before its receive, so that ends tell little: where both windows hold equally many calls they
    are the same calls; else the ends that differ less tell which end of the longer window is left over.
    """
    size = min(len(ref_calls), len(own_calls))
    if size == 0:
        return None
    reading = prior or ClockFit(raw_ns)
    lags = sorted({0, len(ref_calls) - len(own_calls)})
    own_positions = {lag: np.arange(size) + max(0, -lag) for lag in lags}
    far = {
        lag: float(np.median(np.abs(ref_calls.end_ns[positions + lag] - reading.at(own_calls.end_ns[positions]))))
        for lag, positions in own_positions.items()
    }
    lag = min(lags, key=lambda lag: far[lag])
    partner = np.full(len(own_calls), ABSENT, np.int64)
    partner[own_positions[lag]] = own_positions[lag] + lag
    return summary(ref_calls, own_calls, partner, prior)


def summary(ref_calls: Sequence, own_calls: Sequence, partner: Integers, prior: ClockFit | None) -> Alignment | None:
    """What pairs say of two clocks and of each other; None without any."""
    paired = np.flatnonzero(partner != ABSENT)
    if paired.size == 0:
        return None
    other = partner[paired]
    clock_fit = prior or fit(own_calls.end_ns[paired], ref_calls.end_ns[other])
    rest = ref_calls.end_ns[other] - clock_fit.at(own_calls.end_ns[paired])
    scatter = NORMAL * float(np.median(np.abs(rest))) if prior else clock_fit.spread_ns
    # Few pairs scatter less than they could: what other channels showed of the two clocks still holds.
    clock_fit = ClockFit(clock_fit.offset_ns, clock_fit.drift, max(scatter, clock_fit.spread_ns))
    skew = spread(ref_calls.start_ns[other] - clock_fit.at(own_calls.start_ns[paired]))
    lags, times = np.unique(other - paired, return_counts=True)
    inside = (paired[-1] - paired[0] + 1 + abs(int(other[-1] - other[0])) + 1) / 2
    return Alignment(
        partner=partner,
        clock_fit=clock_fit,
        lag=int(lags[np.argmax(times)]),
        count=int(paired.size),
        share=paired.size / inside,
        held=paired.size / min(len(ref_calls), len(own_calls)),
        scatter_ns=scatter,
        skew_ns=skew,
        serial=_serial(rest),
    )


def _serial(rest: Floats) -> float:
    """Von Neumann's ratio of a series, outliers drawn in."""
    width = spread(rest)
    if rest.size < 3 or width == 0:  # noqa: PLR2004
        return 2.0
    middle = np.median(rest)
    drawn = np.clip(rest, middle - 6 * width, middle + 6 * width)
    return float(np.mean(np.diff(drawn) ** 2) / np.var(drawn))


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The other rank's calls, sorted by token, then by end."""

    ref_calls: Sequence
    order: Integers
    key: Integers
    near_ns: Floats


def _index(ref_calls: Sequence) -> _Index:
    key = ref_calls.token * _SPAN + np.round(ref_calls.end_ns).astype(np.int64)
    order = np.argsort(key, kind="stable")
    key = key[order]
    ahead = np.diff(key).astype(np.float64)
    near = NEAR_SHARE * np.minimum(np.append(ahead, np.inf), np.insert(ahead, 0, np.inf))
    return _Index(ref_calls, order, key, near)


def _nearest(index: _Index, own_calls: Sequence, clock_fit: ClockFit) -> Integers:
    """int64[n]: the call of the same token whose end is nearest on one clock, no call given twice."""
    n = index.key.size
    end_ns = clock_fit.at(own_calls.end_ns)
    key = own_calls.token * _SPAN + np.clip(np.round(end_ns), -_SPAN // 4, _SPAN // 4).astype(np.int64)
    right = np.clip(np.searchsorted(index.key, key), 0, n - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(index.key[left] - key) <= np.abs(index.key[right] - key), left, right)
    far = np.abs(index.key[nearest] - key).astype(np.float64)
    reach = np.minimum(index.near_ns[nearest], max(REACH_NS, REACH_SPREADS * clock_fit.spread_ns))
    other = index.order[nearest]
    fits = (far <= reach) & same(index.ref_calls, own_calls, other, np.arange(len(own_calls)))
    return _once(np.where(fits, other, ABSENT), far)


def _once(partner: Integers, far: Floats) -> Integers:
    """Partners, each kept by the nearest of those that claim it."""
    claimed = np.flatnonzero(partner != ABSENT)
    if claimed.size == 0:
        return partner
    order = claimed[np.lexsort((far[claimed], partner[claimed]))]
    again = np.concatenate(([False], partner[order][1:] == partner[order][:-1]))
    kept: Integers = partner.copy()
    kept[order[again]] = ABSENT
    return kept


def _grow(index: _Index, own_calls: Sequence, clock_fit: ClockFit, begin: int, end: int) -> tuple[Integers, ClockFit]:
    """Partners of all calls, from a stretch whose fit is known outwards, the fit made better on the way."""
    while True:
        more = GROWTH * (end - begin)
        begin, end = max(0, begin - more), min(len(own_calls), end + more)
        stretch = own_calls.take(slice(begin, end))
        partner = _nearest(index, stretch, clock_fit)
        paired = np.flatnonzero(partner != ABSENT)
        if paired.size:
            clock_fit = fit(stretch.end_ns[paired], index.ref_calls.end_ns[partner[paired]])
        if begin == 0 and end == len(own_calls):
            return _nearest(index, own_calls, clock_fit), clock_fit


def _ordered(ref_calls: Sequence, own_calls: Sequence, partner: Integers, clock_fit: ClockFit) -> Integers:
    """Partners by the prevailing lag where the nearest end names another, or none."""
    lag = partner - np.arange(len(own_calls))
    known = np.flatnonzero(partner != ABSENT)
    if known.size == 0 or (known.size == len(own_calls) and np.all(lag == lag[known[0]])):
        return partner
    filled = lag[known[np.clip(np.searchsorted(known, np.arange(len(own_calls))), 0, known.size - 1)]]
    half = AROUND // 2
    around = sliding_window_view(np.pad(filled, half, mode="edge"), 2 * half + 1)
    prevailing = np.partition(around, half, axis=1)[:, half]
    expected = np.arange(len(own_calls)) + prevailing
    fits = (expected >= 0) & (expected < len(ref_calls))
    inside = np.clip(expected, 0, len(ref_calls) - 1)
    fits &= same(ref_calls, own_calls, inside, np.arange(len(own_calls))) & _touch(
        ref_calls, own_calls, inside, clock_fit
    )
    chosen = np.where(fits, inside, partner)
    far = np.abs(ref_calls.end_ns[np.maximum(chosen, 0)] - clock_fit.at(own_calls.end_ns))
    return _once(chosen, np.where(fits, -1.0, far))


def _touch(ref_calls: Sequence, own_calls: Sequence, partner: Integers, clock_fit: ClockFit) -> Mask:
    """bool[n]: on one clock, both calls run at some common instant, up to the jitter of ends."""
    slack = TOUCH_SPREADS * clock_fit.spread_ns + FINEST_NS
    return (ref_calls.start_ns[partner] <= clock_fit.at(own_calls.end_ns) + slack) & (
        clock_fit.at(own_calls.start_ns) <= ref_calls.end_ns[partner] + slack
    )
