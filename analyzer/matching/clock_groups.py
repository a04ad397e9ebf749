"""Clocks related to each other so far, while channel after channel is matched."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.matching.clock_fit import ClockFit


@dataclass(slots=True)
class ClockGroups:
    """Sets of ranks whose clocks are related, each rank with the line to its set's first clock.

    Attributes:
        home: the set of each trace, named by the trace whose clock the set keeps; a trace that is absent is alone.
        line: each trace's clock to its set's.
        members: traces of each set.
    """

    home: dict[int, int] = field(default_factory=dict)
    line: dict[int, ClockFit] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)

    def copy(self) -> ClockGroups:
        """The same, to be changed on trial."""
        return ClockGroups(dict(self.home), dict(self.line), {home: list(own) for home, own in self.members.items()})

    def relation(self, own: int, ref: int) -> ClockFit | None:
        """The line from one trace's clock to another's; None where nothing relates them."""
        if own == ref:
            return ClockFit()
        if self.home.get(own, own) != self.home.get(ref, ref):
            return None
        return self.line[own].then(self.line[ref].back())

    def join(self, own: int, ref: int, line: ClockFit) -> None:
        """Relate two traces, and with them their sets; the smaller set moves."""
        for at in (own, ref):
            if at not in self.home:
                self.home[at], self.line[at], self.members[at] = at, ClockFit(), [at]
        if self.home[own] == self.home[ref]:
            return
        if len(self.members[self.home[own]]) > len(self.members[self.home[ref]]):
            own, ref, line = ref, own, line.back()
        left, right = self.home[own], self.home[ref]
        move = self.line[own].back().then(line).then(self.line[ref])
        for at in self.members.pop(left):
            self.home[at], self.line[at] = right, self.line[at].then(move)
            self.members[right].append(at)
