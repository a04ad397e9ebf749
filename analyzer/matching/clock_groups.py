"""Clocks related to each other so far, while channel after channel is matched."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.matching.clock_fit import ClockFit


@dataclass(slots=True)
class ClockGroups:
    """Sets of ranks whose clocks are related, each rank with the fit to its set's first clock.

    Attributes:
        home: the set of each trace, named by the trace whose clock the set keeps; a trace that is absent is alone.
        fit: each trace's clock to its set's.
        members: traces of each set.
    """

    home: dict[int, int] = field(default_factory=dict)
    fit: dict[int, ClockFit] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)

    def copy(self) -> ClockGroups:
        """The same, to be changed on trial."""
        return ClockGroups(
            dict(self.home), dict(self.fit), {home: list(traces) for home, traces in self.members.items()}
        )

    def relation(self, trace_index: int, ref: int) -> ClockFit | None:
        """The fit from one trace's clock to another's; None where nothing relates them."""
        if trace_index == ref:
            return ClockFit()
        if self.home.get(trace_index, trace_index) != self.home.get(ref, ref):
            return None
        return self.fit[trace_index].then(self.fit[ref].back())

    def join(self, trace_index: int, ref: int, fit: ClockFit) -> None:
        """Relate two traces, and with them their sets; the smaller set moves."""
        for member in (trace_index, ref):
            if member not in self.home:
                self.home[member], self.fit[member], self.members[member] = member, ClockFit(), [member]
        if self.home[trace_index] == self.home[ref]:
            return
        if len(self.members[self.home[trace_index]]) > len(self.members[self.home[ref]]):
            trace_index, ref, fit = ref, trace_index, fit.back()
        left, right = self.home[trace_index], self.home[ref]
        move = self.fit[trace_index].back().then(fit).then(self.fit[ref])
        for member in self.members.pop(left):
            self.home[member], self.fit[member] = right, self.fit[member].then(move)
            self.members[right].append(member)
