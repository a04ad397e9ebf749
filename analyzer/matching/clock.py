"""One clock for all ranks, fitted on the ends of collectives.

All participants of a collective end at nearly the same true time: none can leave before the last has sent. What is left
between two ranks' ends, call after call, is their clocks: an offset and a drift. A constant skew of ends is the clock,
not the network. Starts say nothing: they differ by who comes late.

Where the clocks as recorded agree within what the ends can tell, they are taken as they are. Few ends tell little: they
let the recorded clocks stand as long as ends are no farther apart than the shortest collective took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.matching.anchors import ENOUGH, Anchors, anchors, error_ns, relate, settle
from analyzer.matching.clock_fit import ClockFit
from analyzer.matching.collectives import match
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.stats.arrays import Floats, Integers
from analyzer.units import count

SHARED = "shared clock, confirmed on collective ends"
ALIGNED = "aligned on collective ends"


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """How to read each rank's times on one clock.

    Attributes:
        reference: position in `run.traces` of the rank whose clock counts.
        island: for each trace the position of the reference of those it has anchors with, directly or through others;
            its own where it has none.
        offset_ns: by how much each trace's clock is ahead of the reference's at the trace's own first start; NaN where
            the trace is on another island.
        drift: of each trace's clock against its island's reference, ns per ns.
        origin_ns: where times on the reference's clock count from.
        error_ns: of a comparison of two ranks' times, 19 times of 20; no claim is finer.
        method: in words.
        base_ns: of each trace, where its own times count from.
        fits: of each trace, from its own times to those of its island's reference, both since their bases.
    """

    reference: int
    island: tuple[int, ...]
    offset_ns: Floats
    drift: Floats
    origin_ns: int
    error_ns: int
    method: str
    base_ns: tuple[int, ...]
    fits: tuple[ClockFit, ...]

    def to_reference(self, trace_index: int, times_ns: Integers) -> Floats:
        """float64[n]: times of a trace on the clock of its island's reference, in ns after the origin.

        Between islands nothing is known: their references are read as recorded.
        """
        read = self.fits[trace_index].at((times_ns - self.base_ns[trace_index]).astype(np.float64))
        return read + float(self.base_ns[self.island[trace_index]] - self.origin_ns)

    def is_common(self, *traces: int) -> bool:
        """Whether the traces are on one island; of one trace, whether it is on the reference's."""
        several = traces if len(traces) > 1 else (*traces, self.reference)
        return len({self.island[trace_index] for trace_index in several}) == 1


@once
def clock(run: Run) -> Clock:
    """Offsets, drifts and their error.

    Raises:
        MissingEvidenceError: no collective that two ranks share.
    """
    base_ns = tuple(int(trace.activities.start_ns[0]) if len(trace.activities) else 0 for trace in run.traces)
    anchor_sets = anchors(run, match(run).groups, base_ns)
    if not anchor_sets:
        raise MissingEvidenceError(
            "no collective is seen on two ranks", "record all ranks of the group in the same steps"
        )
    island, fits, errors, shared = _islands(anchor_sets, base_ns)
    reference = max(dict.fromkeys(island), key=lambda home: (island.count(home), -home))
    offset_ns = np.array(
        [
            float(base_ns[trace_index] - base_ns[home]) - fit.offset_ns if home == reference else np.nan
            for trace_index, (home, fit) in enumerate(zip(island, fits, strict=True))
        ]
    )
    return Clock(
        reference=reference,
        island=island,
        offset_ns=offset_ns,
        drift=np.array([-fit.drift / (1 + fit.drift) for fit in fits]),
        origin_ns=base_ns[reference],
        error_ns=max(1, int(np.ceil(max(errors)))),
        method=_method(island, shared),
        base_ns=base_ns,
        fits=fits,
    )


def _islands(
    anchor_sets: list[Anchors], base_ns: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[ClockFit, ...], list[float], list[bool]]:
    """Home and fit of every trace; error, and whether the clocks stand as recorded, of every island."""
    home: dict[int, int] = {}
    fits: dict[int, ClockFit] = {}
    errors: list[float] = []
    shared: list[bool] = []
    for trace_index in sorted({trace_index for anchor_set in anchor_sets for trace_index in anchor_set.traces}):
        if trace_index in home:
            continue
        related = relate(anchor_sets, {trace_index: ClockFit()})
        mine = [anchor_set for anchor_set in anchor_sets if anchor_set.traces[0] in related]
        fitted = settle(mine, related, trace_index)
        raw = {other: ClockFit(float(base_ns[other] - base_ns[trace_index])) for other in fitted}
        error = max(error_ns(anchor_set, fitted) for anchor_set in mine)
        stands = _stands(mine, fitted, raw, error)
        home |= dict.fromkeys(fitted, trace_index)
        fits |= raw if stands else fitted
        errors.append(_stated(mine, raw if stands else fitted, error))
        shared.append(stands)
    alone = range(len(base_ns))
    return (
        tuple(home.get(trace_index, trace_index) for trace_index in alone),
        tuple(fits.get(trace_index, ClockFit()) for trace_index in alone),
        errors,
        shared,
    )


def _few(anchor_sets: list[Anchors]) -> bool:
    return max(len(anchor_set.end_ns) for anchor_set in anchor_sets) < ENOUGH


def _stands(anchor_sets: list[Anchors], fitted: dict[int, ClockFit], raw: dict[int, ClockFit], error: float) -> bool:
    """Whether the clocks as recorded agree within what the ends can tell."""
    if _few(anchor_sets):
        return all(
            error_ns(anchor_set, raw) <= float(anchor_set.shortest_ns.min(initial=np.inf)) for anchor_set in anchor_sets
        )
    return all(
        fit.drift == 0 and abs(fit.offset_ns - raw[trace_index].offset_ns) <= max(error, 1.0)
        for trace_index, fit in fitted.items()
    )


def _stated(anchor_sets: list[Anchors], fits: dict[int, ClockFit], error: float) -> float:
    """The error on the clock that was chosen; few ends fit any clock, which is then good to the shortest collective."""
    chosen = max(error_ns(anchor_set, fits) for anchor_set in anchor_sets)
    if not _few(anchor_sets) or chosen > 0:
        return max(error, chosen)
    return max(float(anchor_set.shortest_ns.min(initial=np.inf)) for anchor_set in anchor_sets)


def _method(island: tuple[int, ...], shared: list[bool]) -> str:
    """In words: how the clocks came together, and which ranks did not."""
    words = SHARED if all(shared) else ALIGNED
    homes = dict.fromkeys(island)
    alone = sum(island.count(home) == 1 for home in homes)
    joined = len(homes) - alone
    if joined > 1:
        words += f"; {joined} sets of ranks without a common anchor, not merged"
    if alone:
        words += f"; {count(alone, 'rank')} without any anchor"
    return words
