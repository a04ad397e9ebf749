"""Steps of one rank as columns, and how they are made of activities that are assigned to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model.events import ABSENT, Labels
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask
from analyzer.steps.names import Phase, StepName
from analyzer.steps.steady import steady


class StepSource(str, Enum):
    """What told one step from the next, surest first."""

    ANNOTATION = "annotation"
    GRAPH_LAUNCH = "graph launch"
    PERIOD = "period"
    NONE = "none"


@dataclass(frozen=True, slots=True, eq=False)
class RankSteps:
    """n steps of one rank in order of start.

    Attributes:
        rank: whose they are.
        source: how they were found.
        reason: the sentence that says how, or why there are none.
        name: n names of annotations; of graph launches and periods the call or activity that opens the step.
        words: what each distinct name says, aligned with `name.values`; None where it says nothing.
        phase: n phases, as in `Phase`.
        host_start_ns: int64[n], begin of the annotation or of the first launch; ABSENT where no launch is recorded.
        host_end_ns: int64[n].
        start_ns: int64[n], start of the first activity; `host_start_ns` where a step launched nothing. On a host
            without an accelerator: begin of the annotation.
        end_ns: int64[n], end of the last activity that ends.
        activities: int64[n], how many belong to it.
        launches: int64[n], calls that launched them.
        left_out: n words why a step is in no statistics: `capture`, `idle`, `first`, `ramp`, `warm-up`, `cut`; "" for
            the steady ones.
        step_of: int64[m], step of each of the trace's activities; ABSENT outside all steps.
    """

    rank: int
    source: StepSource
    reason: str
    name: Labels
    words: tuple[StepName | None, ...]
    phase: Labels
    host_start_ns: Integers
    host_end_ns: Integers
    start_ns: Integers
    end_ns: Integers
    activities: Integers
    launches: Integers
    left_out: Labels
    step_of: Integers

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def span_ns(self) -> Integers:
        """int64[n], first to last activity."""
        return self.end_ns - self.start_ns

    @property
    def requests(self) -> Integers:
        """int64[n], ABSENT where not stated."""
        return self._column([None if word is None else word.requests for word in self.words])

    @property
    def tokens(self) -> Integers:
        """int64[n], ABSENT where not stated."""
        return self._column([None if word is None else word.tokens for word in self.words])

    @property
    def prefill_tokens(self) -> Integers:
        """int64[n], tokens of requests without an output token yet; ABSENT where not stated."""
        return self._column([None if word is None else word.prefill.tokens for word in self.words])

    @property
    def prefill_requests(self) -> Integers:
        """int64[n], requests that these tokens belong to; ABSENT where not stated."""
        return self._column([None if word is None else word.prefill.requests for word in self.words])

    @property
    def reused_tokens(self) -> Integers:
        """int64[n], keys and values that these requests had in the cache; ABSENT where not stated."""
        return self._column([None if word is None else word.prefill.reused_tokens for word in self.words])

    @property
    def is_speculative(self) -> Mask:
        """bool[n]: more tokens than requests are decoded."""
        flags = [word is not None and word.is_speculative for word in self.words]
        return np.array(flags or [False], np.bool_)[self.name.codes]

    @property
    def is_steady(self) -> Mask:
        """bool[n]: in statistics."""
        return self.left_out.where(lambda word: word == "")

    @property
    def outside(self) -> int:
        """Activities that belong to no step."""
        return int(np.count_nonzero(self.step_of == ABSENT))

    @property
    def period_ns(self) -> Integers:
        """int64[n], start of a step to the start of the next that is not idle; ABSENT for the last, and idle ones."""
        period = np.full(len(self), ABSENT, np.int64)
        ran = np.flatnonzero((self.activities > 0) & self.phase.where(lambda word: word != Phase.IDLE.value))
        ran = ran[np.argsort(self.start_ns[ran], kind="stable")]
        period[ran[:-1]] = np.diff(self.start_ns[ran])
        return period

    def time_within(self, time: Intervals) -> Integers:
        """int64[n], how much of each step's span lies in a set of instants."""
        return time.within(self.start_ns, self.end_ns)

    def _column(self, values: list[int | None]) -> Integers:
        table = [ABSENT if value is None else value for value in values]
        return np.array(table or [ABSENT], np.int64)[self.name.codes]


@dataclass(frozen=True, slots=True, eq=False)
class StepCut:
    """Steps before they are measured.

    Attributes:
        source: how they were found.
        reason: the sentence that says how.
        name: n names.
        words: aligned with `name.values`.
        phase: n phases.
        host_start_ns: int64[n], ABSENT where unknown.
        host_end_ns: int64[n].
        step_of: int64[m], step of each activity.
        is_whole: bool[n], False where the recording cut the step short.
    """

    source: StepSource
    reason: str
    name: Labels
    words: tuple[StepName | None, ...]
    phase: Sequence[Phase]
    host_start_ns: Integers
    host_end_ns: Integers
    step_of: Integers
    is_whole: Mask


def measured(trace: Trace, cut: StepCut, launches: Integers) -> RankSteps:
    """Device windows, counts and steady steps of a cut.

    Args:
        trace: the rank's.
        cut: steps of it.
        launches: int64[m], row of each activity's launch.
    """
    n = len(cut.name)
    inside = np.flatnonzero(cut.step_of != ABSENT)
    step = cut.step_of[inside]
    counted = np.bincount(step, minlength=n).astype(np.int64)
    start, end = cut.host_start_ns.copy(), cut.host_end_ns.copy()
    if trace.origin.device != "cpu":
        start, end = _windows(trace, inside, step, start)
    known = launches[inside] != ABSENT
    calls = len(trace.calls)
    pairs = np.sort(step[known] * calls + launches[inside][known])
    launched = pairs[np.diff(pairs, prepend=ABSENT) != 0] // max(calls, 1)
    phase = Labels.of(phase.value for phase in cut.phase)
    made = RankSteps(
        rank=trace.rank,
        source=cut.source,
        reason=cut.reason,
        name=cut.name,
        words=cut.words,
        phase=phase,
        host_start_ns=cut.host_start_ns,
        host_end_ns=cut.host_end_ns,
        start_ns=start,
        end_ns=end,
        activities=counted,
        launches=np.bincount(launched, minlength=n).astype(np.int64),
        left_out=Labels.of([""] * n),
        step_of=cut.step_of,
    )
    return _with_steady(made, cut)


def none_found(trace: Trace, reason: str) -> RankSteps:
    """No steps, and why."""
    empty, nothing = np.zeros(0, np.int64), Labels.of(())
    outside = np.full(len(trace.activities), ABSENT, np.int64)
    columns = (empty, empty, empty, empty, empty, empty)
    return RankSteps(trace.rank, StepSource.NONE, reason, nothing, (), nothing, *columns, nothing, outside)


def _windows(trace: Trace, inside: Integers, step: Integers, fallback_ns: Integers) -> tuple[Integers, Integers]:
    """First start and last end of the activities of each step."""
    start, end = fallback_ns.copy(), fallback_ns.copy()
    order = np.argsort(step, kind="stable")
    rows, step = inside[order], step[order]
    if rows.size:
        opens = np.flatnonzero(np.concatenate(([True], step[1:] != step[:-1])))
        start[step[opens]] = trace.activities.start_ns[rows[opens]]
        end[step[opens]] = np.maximum.reduceat(trace.activities.end_ns[rows], opens)
    return start, end


def _with_steady(made: RankSteps, cut: StepCut) -> RankSteps:
    words = steady(made.phase, made.requests, made.tokens, made.span_ns, made.activities)
    words = ["cut" if not whole and not word else word for word, whole in zip(words, cut.is_whole, strict=True)]
    return replace(made, left_out=Labels.of(words))
