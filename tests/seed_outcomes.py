"""What the analyzer says of a random run, held against what is so. `python tests/seed_outcomes.py 0 1000` prints it."""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from runs import build, draw

from analyzer.matching.clock import clock
from analyzer.matching.collectives import match
from analyzer.measures.skew import late_rank, late_ranks
from analyzer.measures.waits import WaitVerdict, waits
from analyzer.model.events import ABSENT


@dataclass(frozen=True)
class Outcome:
    """One seed; times are totals over all ranks, ns.

    Attributes:
        seed: of the run.
        late: the rank that is late at every call, None where there is none.
        named: the persistent late rank of the run as the analyzer has it.
        names: ranks called persistent by their own doing, one a group at most, of `asked` groups.
        wait_ns: as found; true_ns: as it is; known_ns: as it is in the calls that are matched.
        error_ns: what the stated clock error can add up to over the matched calls.
        matched: share of the calls that two ranks or more show.
        fused: collectives with calls of two groups.
        mixed: collectives with calls of several collectives of one group.
        inconclusive: groups whose verdict is that, of `asked`.
    """

    seed: int
    late: int | None
    named: int | None
    names: tuple[int, ...]
    asked: int
    wait_ns: int
    true_ns: int
    known_ns: int
    error_ns: int
    matched: float
    fused: int
    mixed: int
    inconclusive: int

    @property
    def is_right(self):
        """The late rank is named, or none where none is."""
        return self.named == self.late

    @property
    def off(self):
        """By what share waiting is off in the calls that are matched."""
        return (self.wait_ns - self.known_ns) / max(self.known_ns, 1)

    @property
    def is_wait_right(self):
        """Waiting in the calls that are matched is within 5 % of what is so, or within the stated error."""
        return abs(self.wait_ns - self.known_ns) <= max(0.05 * self.known_ns, self.error_ns)

    @property
    def is_total_right(self):
        """The same of all calls that could be matched."""
        return abs(self.wait_ns - self.true_ns) <= max(0.05 * self.true_ns, self.error_ns)


@dataclass(frozen=True)
class Judged:
    """Many seeds: shares of runs and counts.

    `worst_off` is of those beyond the stated clock error; `lost` are runs with 2 % or more of their calls unmatched.
    """

    runs: int
    right: float
    falsely_named: int
    without_late: int
    false_names: int
    groups: int
    wait_right: float
    total_right: float
    worst_off: float
    fused: int
    mixed: int
    matched_least: float
    lost: int
    inconclusive: int


def judged(outcomes):
    """Figures over outcomes."""
    n = len(outcomes)
    return Judged(
        runs=n,
        right=sum(one.is_right for one in outcomes) / n,
        falsely_named=sum(one.late is None and one.named is not None for one in outcomes),
        without_late=sum(one.late is None for one in outcomes),
        false_names=sum(len(set(one.names) - {one.late}) for one in outcomes),
        groups=sum(one.asked for one in outcomes),
        wait_right=sum(one.is_wait_right for one in outcomes) / n,
        total_right=sum(one.is_total_right for one in outcomes) / n,
        worst_off=max(
            (one.off for one in outcomes if abs(one.wait_ns - one.known_ns) > one.error_ns), key=abs, default=0.0
        ),
        fused=sum(one.fused > 0 for one in outcomes),
        mixed=sum(one.mixed > 0 for one in outcomes),
        matched_least=min(one.matched for one in outcomes),
        lost=sum(one.matched < 0.98 for one in outcomes),
        inconclusive=sum(one.inconclusive for one in outcomes),
    )


def outcome(seed):
    """Build a seed's run and ask the analyzer."""
    run, truth = build(draw(seed))
    found, told = match(run), waits(run)
    late, named = late_ranks(run), late_rank(run)
    fused, mixed = _mixed(found, truth.group), _mixed(found, truth.call)
    times = Counter(call for column in truth.call for call in column.tolist() if call != ABSENT)
    pairs = zip(truth.wait_ns, found.collective, strict=True)
    return Outcome(
        seed=seed,
        late=truth.late_rank,
        named=None if named is None else named.rank,
        names=tuple(one.rank for one in late if one.is_persistent and one.is_own),
        asked=len(late),
        wait_ns=sum(int(column.sum()) for column in told.wait_ns),
        true_ns=sum(int(column.sum()) for column in truth.wait_ns),
        known_ns=sum(int(column[ids != ABSENT].sum()) for column, ids in pairs),
        error_ns=clock(run).error_ns * sum(found.matched),
        matched=sum(found.matched) / sum(count for count in times.values() if count > 1),
        fused=fused,
        mixed=mixed - fused,
        inconclusive=sum(part.verdict is WaitVerdict.INCONCLUSIVE for part in told.groups),
    )


def _mixed(found, true):
    """Collectives whose calls are truly of several."""
    mixed = 0
    for group in found.groups:
        of = np.full(group.row.shape, ABSENT)
        for place, at in enumerate(group.traces):
            has = group.row[:, place] != ABSENT
            of[has, place] = true[at][group.row[has, place]]
        least = np.where(of == ABSENT, np.iinfo(np.int64).max, of).min(axis=1)
        mixed += int(np.count_nonzero(least < of.max(axis=1)))
    return mixed


def main(first, last):
    """A line for each seed that is not right in everything, then the figures."""
    outcomes = []
    for seed in range(first, last):
        one = outcome(seed)
        outcomes.append(one)
        faults = {
            "fused": one.fused,
            "mixed": one.mixed,
            "late rank": not one.is_right,
            "wait": not one.is_wait_right,
            "total wait": not one.is_total_right,
            "names": len(set(one.names) - {one.late}),
            "unmatched": one.matched < 0.98,
        }
        if words := ", ".join(word for word, is_so in faults.items() if is_so):
            print(f"{seed}: {words}: matched {one.matched:.4f}, wait off {one.off:+.4f}, late {one.late},")  # noqa: T201
            print(f"  names {one.names}; {draw(seed)}", flush=True)  # noqa: T201
    print(judged(outcomes))  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
