"""Metrics of a gate, each with its verdict: times by statistics over runs, exact quantities by what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from statistics import median

import numpy as np

from analyzer.compare.exact import ExactRow, State, exact_rows
from analyzer.compare.significance import Change, RunDifference, called, hinted, run_difference
from analyzer.compare.timed import SMALL_NS, SMALL_SHARE, TERMS
from analyzer.gate.baseline import Record
from analyzer.gate.settings import GateSettings
from analyzer.stats.tests import holm
from analyzer.units import count, share

GATED_PARTS = ("step", "communication", "sync")
"""Of each kind of step: few, since each metric that is judged hides the others a little."""
GATED_EXACT = ("calls", "bytes", "launches", "moved", "rung")
"""Exact quantities of which more is worse."""
EXACT_SHARE = 0.01
"""Change of an exact quantity that the first and last step of a recording may make."""
_EDGE = Fraction(str(EXACT_SHARE))
TOO_NOISY = 2.0
"""Times the least change that must be called: runs that could not have shown even that decide nothing."""
SAME_BATCH = 0.10
"""Share by which requests or tokens of a step may differ between sides."""
SPREADS = 2.0
"""Times the spread that past gates showed: a change below is not called."""
FARNESS = ("hbm", "peer", "nvlink", "xgmi", "hccs", "pcie", "socket", "node", "network", "rdma", "host", "ssd")
"""Rungs of the distance ladder, near to far; `node` is inside a node, over links that are not recorded."""


class GateVerdict(str, Enum):
    """Of a metric, and of the whole gate."""

    PASS = "pass"  # noqa: S105 (a verdict)
    REGRESSION = "regression"
    IMPROVED = "improved"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One gated metric.

    Attributes:
        metric: `decode.step`, `calls.tp.all_reduce`, …
        verdict: of this metric.
        why: one sentence.
        base: values of the runs, ns for times; distinct values for exact quantities.
        head: the same.
        is_time: whether the values are times.
        ratio: head over base; None where there is none.
        interval: of the ratio, 95 %; None for exact quantities.
        p: one-sided that there is no rise, corrected over all metrics judged together.
        visible: the smallest rise that would have been called with 80 % probability.
        accepted: the reason why its loss is accepted, "" where it is not.
    """

    metric: str
    verdict: GateVerdict
    why: str
    base: tuple[float | str, ...] = ()
    head: tuple[float | str, ...] = ()
    is_time: bool = True
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    visible: float | None = None
    accepted: str = ""


@dataclass(frozen=True, slots=True)
class _Times:
    """A time on both sides, in the runs."""

    metric: str
    base: tuple[float, ...]
    head: tuple[float, ...]
    whole_ns: float


@dataclass(frozen=True, slots=True)
class _Limits:
    """Shares: by which a metric must change to be called; and beyond which runs that miss a change decide nothing."""

    least: float
    blind: float


def time_rows(
    base: Sequence[Record], head: Sequence[Record], settings: GateSettings, spreads: dict[str, float]
) -> tuple[MetricResult, ...]:
    """Gated times, all judged together.

    Args:
        base: runs of the baseline.
        head: runs to judge.
        settings: least changes.
        spreads: metric → spread of runs in past gates, where known.
    """
    kinds = dict.fromkeys(name.partition(".")[0] for run in (*base, *head) for name in run.times_ns)
    rows: list[MetricResult] = []
    tested: list[_Times] = []
    for kind in kinds:
        reason = _not_comparable(kind, base, head)
        if reason:
            rows.append(MetricResult(f"{kind}.step", GateVerdict.NOT_COMPARABLE, reason))
            continue
        times = list(_times(kind, base, head, settings))
        tested += [timed for timed in times if _is_worth_a_test(timed)]
        rows += [_too_small(timed) for timed in times if not _is_worth_a_test(timed)]
    return (*_judged(tested, settings, spreads), *rows) if tested else tuple(rows)


def _not_comparable(kind: str, base: Sequence[Record], head: Sequence[Record]) -> str:
    """Why times of a kind of step cannot be compared, "" where they can."""
    for word, runs in (("baseline", base), ("head", head)):
        without = [run.label for run in runs if f"{kind}.span" not in run.times_ns]
        if without:
            return f"{count(len(without), 'run')} of the {word} without {kind} steps: {', '.join(without)}"
    for what in ("requests", "tokens"):
        name = f"{what}.{kind}"
        sides = [[float(Fraction(run.exact[name])) for run in runs if name in run.exact] for runs in (base, head)]
        if all(sides):
            low, high = sorted(map(median, sides))
            if high > low * (1 + SAME_BATCH):
                return f"its steps hold {median(sides[0]):g} {what} in the baseline and {median(sides[1]):g} now"
    return ""


def _times(kind: str, base: Sequence[Record], head: Sequence[Record], settings: GateSettings) -> Iterator[_Times]:
    """The gated times of one kind of step. A step lasts from start to start where all runs know that."""
    runs = (*base, *head)
    whole = "period" if all(f"{kind}.period" in run.times_ns for run in runs) else "span"
    whole_ns = median(run.times_ns[f"{kind}.{whole}"] for run in runs)
    for part in ("step", *TERMS):
        metric, name = f"{kind}.{part}", f"{kind}.{whole if part == 'step' else part}"
        gated = settings.least.get(metric, 0.0 if part in GATED_PARTS else None)
        if gated is not None and all(name in run.times_ns for run in runs):
            first, second = (tuple(float(run.times_ns[name]) for run in side) for side in (base, head))
            yield _Times(metric, first, second, whole_ns)


def _is_worth_a_test(times: _Times) -> bool:
    """A part that is below 1 % of the step on both sides decides nothing and would only hide the others."""
    return max(median(times.base), median(times.head)) >= SMALL_SHARE * times.whole_ns


def _too_small(times: _Times) -> MetricResult:
    why = f"below {share(SMALL_SHARE)} of the step on both sides"
    return MetricResult(times.metric, GateVerdict.PASS, why, times.base, times.head)


def _judged(tested: list[_Times], settings: GateSettings, spreads: dict[str, float]) -> Iterator[MetricResult]:
    # what is below 1 % of the step counts as 1 %: next to nothing has no ratio worth a test
    first, second = (
        np.array([np.maximum(getattr(timed, side), SMALL_SHARE * timed.whole_ns) for timed in tested])
        for side in ("base", "head")
    )
    difference = run_difference(first, second)
    least = np.array(
        [max(settings.least_change(timed.metric), SPREADS * spreads.get(timed.metric, 0.0)) for timed in tested]
    )
    changes, hints, corrected = called(difference, least), hinted(difference, least), holm(difference.test.greater())
    visible = difference.visible(least, len(tested))
    low, high = difference.interval
    for index, timed in enumerate(tested):
        row = MetricResult(
            timed.metric,
            GateVerdict.PASS,
            "",
            timed.base,
            timed.head,
            ratio=float(difference.ratio[index]),
            interval=(float(low[index]), float(high[index])),
            p=float(corrected[index]),
            visible=float(visible[index]),
        )
        moved_ns = abs(median(timed.head) - median(timed.base))
        matters = moved_ns >= max(SMALL_NS, SMALL_SHARE * timed.whole_ns)
        change = Change(int(changes[index])) if matters else Change.NONE
        hint = matters and hints[index] == Change.ROSE
        limits = _Limits(float(least[index]), TOO_NOISY * settings.least_change(timed.metric))
        yield _worded(row, change, limits, difference, hint=hint)


def _worded(
    row: MetricResult, change: Change, limits: _Limits, difference: RunDifference, *, hint: bool
) -> MetricResult:
    """The row with its verdict and the sentence that says why."""
    moved = abs((row.ratio or 1.0) - 1)
    word = "slower" if (row.ratio or 1.0) > 1 else "faster"
    seen = f"a rise of {share(row.visible or 0.0)} would have been seen"
    if not difference.is_proof:
        runs = f"{count(min(difference.base_runs, difference.head_runs), 'run')} a side cannot prove a change"
        hinted_at = (
            f"looks {share(moved)} {word}, but {runs}" if change is not Change.NONE or hint else f"{runs}; {seen}"
        )
        return replace(row, verdict=GateVerdict.UNDECIDED, why=hinted_at)
    if change is Change.ROSE:
        return replace(row, verdict=GateVerdict.REGRESSION, why=f"{share(moved)} slower, {share(limits.least)} allowed")
    if change is Change.FELL:
        return replace(row, verdict=GateVerdict.IMPROVED, why=f"{share(moved)} faster")
    if hint:
        return replace(row, verdict=GateVerdict.UNDECIDED, why=f"may be {share(moved)} slower, not proven; {seen}")
    if (row.visible or 0.0) > limits.blind:
        return replace(row, verdict=GateVerdict.UNDECIDED, why=f"runs scatter too much: only {seen}")
    return replace(row, why=f"no change shown; {seen}")


def exact_verdicts(base: Sequence[Record], head: Sequence[Record], settings: GateSettings) -> Iterator[MetricResult]:
    """Gated exact quantities that both sides state, of equal work."""
    barred = tuple(f"{word}." for word in uneven_work((*base, *head)))
    for row in exact_rows([run.quantities() for run in base], [run.quantities() for run in head]):
        stated = settings.least.get(row.name, EXACT_SHARE)
        is_gated = row.name.partition(".")[0] in GATED_EXACT or row.name in settings.least
        is_stated = row.state not in {State.BASE_ONLY, State.HEAD_ONLY}
        if is_gated and stated is not None and is_stated and not row.name.startswith(barred):
            verdict, why = _exact(row, stated)
            yield MetricResult(row.name, verdict, why, _plain(row.base), _plain(row.head), is_time=False)


def uneven_work(runs: Sequence[Record]) -> tuple[str, ...]:
    """Sorts of exact quantities that are not exact here.

    Calls and bytes are counted over the whole recording: where the runs hold other shares of prefill and decode, they
    differ without any change; bytes and moved bytes also where steps hold other numbers of tokens.
    """
    kinds = {name for run in runs for name in run.exact if name.startswith("steps.")}
    counts = [{kind: Fraction(run.exact.get(kind, "0")) for kind in kinds} for run in runs]
    shares = [{kind: n / (sum(row.values()) or 1) for kind, n in row.items()} for row in counts]
    if any(max(row[kind] for row in shares) - min(row[kind] for row in shares) > _EDGE for kind in kinds):
        return ("calls", "bytes", "moved")
    batches = {name for run in runs for name in run.exact if name.startswith(("tokens.", "requests."))}
    for name in batches:
        values = [Fraction(run.exact[name]) for run in runs if name in run.exact]
        if max(values) > min(values) * (1 + _EDGE):
            return ("bytes", "moved")
    return ()


def _plain(values: tuple[Fraction | str, ...]) -> tuple[float | str, ...]:
    return tuple(value if isinstance(value, str) else float(value) for value in values)


def _exact(row: ExactRow, allowed: float) -> tuple[GateVerdict, str]:
    if row.state is State.SAME:
        return GateVerdict.PASS, "equal"
    if row.state is State.DIFFERS:
        return _rung(row)
    low, high = (_numbers(row.base), _numbers(row.head))
    if row.state is State.VARIES:
        return _varies(low, high, allowed)
    if high[0] > low[-1] * (1 + Fraction(str(allowed))):
        return GateVerdict.REGRESSION, "more than in any run of the baseline"
    if high[-1] < low[0] * (1 - Fraction(str(allowed))):
        return GateVerdict.IMPROVED, "less than in any run of the baseline"
    return GateVerdict.PASS, f"within {share(allowed)}"


def _varies(base: list[Fraction], head: list[Fraction], allowed: float) -> tuple[GateVerdict, str]:
    lowest, highest = min(*base, *head), max(*base, *head)
    if highest <= lowest * (1 + Fraction(str(allowed))):
        return GateVerdict.PASS, f"within {share(allowed)}"
    return GateVerdict.UNDECIDED, "varies between runs of one side, so it is not exact; record equal work in each run"


def _numbers(values: tuple[Fraction | str, ...]) -> list[Fraction]:
    return [value for value in values if isinstance(value, Fraction)]


def _rung(row: ExactRow) -> tuple[GateVerdict, str]:
    base, head = str(row.base[-1]), str(row.head[-1])
    if base in FARNESS and head in FARNESS and FARNESS.index(head) < FARNESS.index(base):
        return GateVerdict.IMPROVED, f"{head} is nearer than {base}"
    if head == "node" and base in FARNESS[: FARNESS.index("node")]:
        return GateVerdict.PASS, f"{base} on one side, links not recorded on the other"
    return GateVerdict.REGRESSION, f"{base} became {head}"
