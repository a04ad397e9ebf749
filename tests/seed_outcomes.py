"""What the analyzer says of a random run, held against what is so. `python tests/seed_outcomes.py 0 1000` prints it."""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from runs import build, draw

from analyzer.measures.clock import clock
from analyzer.measures.collectives import match
from analyzer.measures.skew import late_rank, late_ranks
from analyzer.measures.waits import Verdict, waits
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
        wrong: collectives with calls of two collectives of one group.
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
    wrong: int
    inconclusive: int

    @property
    def is_right(self):
        """The late rank is named, or none where none is."""
        return self.named == self.late

    def is_wait_right(self, truth_ns):
        """Waiting is within 5 % of what is so, or within the stated error."""
        return abs(self.wait_ns - truth_ns) <= max(0.05 * truth_ns, self.error_ns)


def outcome(seed):
    """Build a seed's run and ask the analyzer."""
    run, truth = build(draw(seed))
    found, told = match(run), waits(run)
    late, named = late_ranks(run), late_rank(run)
    fused, wrong = _mixed(found, truth.group), _mixed(found, truth.call)
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
        wrong=wrong - fused,
        inconclusive=sum(part.verdict is Verdict.INCONCLUSIVE for part in told.groups),
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
    """A line for each seed that is not right in everything."""
    for seed in range(first, last):
        one = outcome(seed)
        faults = {
            "FUSED": one.fused,
            "MIXED": one.wrong,
            "LATE": not one.is_right,
            "WAIT-OF-MATCHED": not one.is_wait_right(one.known_ns),
            "wait": not one.is_wait_right(one.true_ns),
            "names": len(set(one.names) - {one.late}),
            "unmatched": one.matched < 0.98,
        }
        words = " ".join(word for word, is_so in faults.items() if is_so) or "ok"
        off = (one.wait_ns - one.known_ns) / max(one.known_ns, 1)
        off_all = (one.wait_ns - one.true_ns) / max(one.true_ns, 1)
        share = f"matched {one.matched:.4f} wait {off:+.4f} all {off_all:+.4f}"
        late = f"late {one.late} named {one.named} names {one.names}"
        print(seed, words, "|", share, late, f"inconclusive {one.inconclusive}/{one.asked}", draw(seed), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
