"""Which steps are like the others: the steady ones, over which statistics are made."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyzer.model.events import ABSENT, Labels
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.names import Phase

FEWEST = 4
"""Steps of a phase below which none is left out: three are the least that have a middle."""

RAMP_SHARE = 0.5
"""Of the median batch, below which leading and trailing steps are a ramp: load still arrives, or runs dry."""

WARM_UP_RATIO = 3.0
"""Times the median, above which leading steps are warm-up: first graph upload, first collective, clocks still low."""


def steady(phase: Labels, requests: Integers, tokens: Integers, span_ns: Integers, activities: Integers) -> list[str]:
    """Why each of n steps is left out of statistics, "" where it is not.

    Args:
        phase: n phases.
        requests: int64[n], ABSENT where unknown.
        tokens: int64[n], ABSENT where unknown.
        span_ns: int64[n].
        activities: int64[n].
    """
    words = np.full(len(phase), "", dtype="<U8")
    words[phase.where(lambda word: word == Phase.CAPTURE.value)] = "capture"
    words[phase.where(lambda word: word == Phase.IDLE.value) | (activities == 0)] = "idle"
    working = np.flatnonzero(words == "")
    for value in phase.values:
        rows = working[phase.where(lambda word, value=value: word == value)[working]]  # type: ignore[misc]
        if rows.size < FEWEST:
            continue
        if rows[0] == working[0]:
            words[rows[0]] = "first"
        ramp = rows[_ramp(requests[rows])]
        words[ramp[words[ramp] == ""]] = "ramp"
        rows = rows[words[rows] == ""]
        cost = _cost(Phase(value), tokens[rows], span_ns[rows])
        if cost is not None:
            words[rows[_leading(cost > WARM_UP_RATIO * np.median(cost))]] = "warm-up"
    return [str(word) for word in words]


def _ramp(requests: Integers) -> Mask:
    """Leading and trailing steps with far fewer requests than the median step."""
    if np.any(requests == ABSENT):
        return np.zeros(requests.size, np.bool_)
    thin = requests < RAMP_SHARE * np.median(requests)
    return _leading(thin) | _leading(thin[::-1])[::-1]


def _cost(phase: Phase, tokens: Integers, span_ns: Integers) -> npt.NDArray[np.float64] | None:
    """What makes steps of a phase alike: time, or time per token where lengths differ by design; None: nothing."""
    if phase in {Phase.PREFILL, Phase.MIXED}:
        return None if np.any(tokens <= 0) else span_ns / tokens
    return span_ns.astype(np.float64)


def _leading(flags: Mask) -> Mask:
    """The flags before the first that is not set."""
    return np.logical_and.accumulate(flags)
