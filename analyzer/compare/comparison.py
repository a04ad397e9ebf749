"""Two sides, each one or more runs: what is exactly the same, what takes longer, and where the difference went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyzer.compare.balance import Overlap, Waterfall, class_balance, overlap, phase_balance, window_balance
from analyzer.compare.configuration import Difference, common, differences, facts, obstacles, uneven
from analyzer.compare.exact import NO_WORK, ExactRow, State, exact_rows, quantities, step_count
from analyzer.compare.significance import ASSUMED_SPREAD, FEW
from analyzer.compare.timed import KERNELS, WINDOW, Name, TimedRow, TimeShare, periods, readings, timed_rows
from analyzer.errors import UsageError
from analyzer.schema.breakdown import StepKind
from analyzer.schema.report import FindingRow, Report
from analyzer.units import count, duration, share

SAME_MIX = 0.02
"""Share of the steps by which the sides may differ in any kind, for times of the whole window to be compared."""
SAME_BATCH = 0.10
"""Share by which requests or tokens of a step may differ, for its times to be those of equal work."""


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one state of the code.

    Attributes:
        labels: one a run.
        steps: steps with work, one number a run.
    """

    labels: tuple[str, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is known of the two.

    Attributes:
        base: the state before.
        head: the state after.
        differences: of the configuration, those that make it another workload first.
        exact: calls, bytes, launches, layouts, rungs.
        timed: steps by kind, window, kernel classes, collectives.
        balances: kinds of step by term, the window by term and by class.
        overlap: span, union and sum of the device's work.
        new: findings of the head that no run of the base has.
        gone: findings of the base that no run of the head has.
        notes: what a reader of the figures must know.
    """

    base: Side
    head: Side
    differences: tuple[Difference, ...]
    exact: tuple[ExactRow, ...]
    timed: tuple[TimedRow, ...]
    balances: tuple[Waterfall, ...]
    overlap: Overlap
    new: tuple[FindingRow, ...]
    gone: tuple[FindingRow, ...]
    notes: tuple[str, ...]

    def row(self, section: str, name: str) -> TimedRow | None:
        """A time by its name, None where no run has it."""
        return next((row for row in self.timed if (row.section, row.name) == (section, name)), None)

    @property
    def phases(self) -> tuple[str, ...]:
        """Kinds of step that both sides have."""
        return tuple(row.section for row in self.timed if row.name == "step" and row.base_ns and row.head_ns)


def compare(base: Sequence[Report], head: Sequence[Report]) -> Comparison:
    """The comparison of two sides.

    Args:
        base: one report a run, at least one.
        head: the same.

    Raises:
        UsageError: a side has no run.
    """
    if not base or not head:
        raise UsageError("a side without a run; name at least one RUN for --base and one for --head")
    known = [[facts(report) for report in side] for side in (base, head)]
    exact = exact_rows([quantities(report) for report in base], [quantities(report) for report in head])
    mixed = _mix_differs(base, head)
    with_period = periods((*base, *head))
    times = [[_kept(readings(report, with_period), mixed=mixed) for report in side] for side in (base, head)]
    return Comparison(
        base=_side(base),
        head=_side(head),
        differences=differences(common(known[0]), common(known[1])),
        exact=exact,
        timed=timed_rows(*times),
        balances=tuple(_balances(base, head, with_period)),
        overlap=overlap(base, head),
        new=tuple(_only(head, base)),
        gone=tuple(_only(base, head)),
        notes=tuple(_notes(base, head, exact, mixed=mixed)),
    )


def _side(reports: Sequence[Report]) -> Side:
    return Side(tuple(report.run.label for report in reports), tuple(step_count(report) for report in reports))


def _kept(times: dict[Name, TimeShare], *, mixed: bool) -> dict[Name, TimeShare]:
    """Times of the whole window only where it holds the same mix of steps on both sides."""
    return {name: time_share for name, time_share in times.items() if not (mixed and name[0] in {WINDOW, KERNELS})}


def _balances(base: Sequence[Report], head: Sequence[Report], with_period: frozenset[str]) -> Iterator[Waterfall]:
    kinds = dict.fromkeys(row.kind for report in (*base, *head) for row in report.breakdown.steps)
    for kind in kinds:
        sides = [_steps(reports, kind) for reports in (base, head)]
        if kind not in NO_WORK and all(sides):
            yield phase_balance(*sides, with_period=kind in with_period)
    yield window_balance(base, head)
    yield class_balance(base, head)


def _steps(reports: Sequence[Report], kind: str) -> list[StepKind]:
    return [row for report in reports for row in report.breakdown.steps if row.kind == kind]


def _mix(reports: Sequence[Report]) -> dict[str, float]:
    """Share of each kind among the steps of a side."""
    counts: dict[str, int] = {}
    for report in reports:
        for row in report.breakdown.steps:
            if row.kind not in NO_WORK:
                counts[row.kind] = counts.get(row.kind, 0) + row.count
    return {kind: value / sum(counts.values()) for kind, value in counts.items()}


def _mix_differs(base: Sequence[Report], head: Sequence[Report]) -> bool:
    first, second = _mix(base), _mix(head)
    return any(abs(first.get(kind, 0.0) - second.get(kind, 0.0)) > SAME_MIX for kind in {*first, *second})


def _only(reports: Sequence[Report], others: Sequence[Report]) -> Iterator[FindingRow]:
    """Findings of rules that found nothing on the other side, each once."""
    seen = {row.rule for report in others for row in report.findings}
    for report in reports:
        for row in report.findings:
            if row.rule not in seen:
                seen.add(row.rule)
                yield row


def _notes(
    base: Sequence[Report], head: Sequence[Report], exact: tuple[ExactRow, ...], *, mixed: bool
) -> Iterator[str]:
    for word, reports in (("base", base), ("head", head)):
        for what, values in uneven([facts(report) for report in reports]).items():
            yield f"runs of the {word} differ in {what}: {', '.join(values)}"
    forbidding = obstacles(*(common([facts(report) for report in side]) for side in (base, head)))
    if forbidding:
        listed = ", ".join(f"{difference.what} {difference.base} → {difference.head}" for difference in forbidding)
        yield f"two workloads, not two states of one: {listed}"
    fewest = min(len(base), len(head))
    if fewest < FEW:
        yield (
            f"{count(fewest, 'run')} a side cannot show how much runs scatter: {share(ASSUMED_SPREAD)} is assumed, and "
            "what differs is a hint; record three or more"
        )
    if mixed:
        mixes = [", ".join(f"{kind} {share(value)}" for kind, value in _mix(side).items()) for side in (base, head)]
        yield (
            f"the windows hold other mixes of steps ({mixes[0]}; {mixes[1]}): kernel classes are not compared, and "
            "calls and bytes a step are not of equal work"
        )
    yield from _batches(exact)


def _batches(exact: tuple[ExactRow, ...]) -> Iterator[str]:
    for row in exact:
        what, _, kind = row.name.partition(".")
        if what in {"requests", "tokens"} and row.state not in {State.SAME, State.BASE_ONLY, State.HEAD_ONLY}:
            low, high = float(min(row.base + row.head)), float(max(row.base + row.head))
            if high > low * (1 + SAME_BATCH):
                yield f"{kind} steps hold {low:g} to {high:g} {what}: their times are not of equal work"


def headlines(comparison: Comparison) -> tuple[str, ...]:
    """A sentence a kind of step: its change, or what would have been seen, and which term it is in."""
    rows = [row for kind in comparison.phases if (row := comparison.row(kind, "step")) is not None]
    window = comparison.row(WINDOW, WINDOW)
    if not rows and window is not None:
        rows = [window]
    return tuple(_headline(comparison, row) for row in rows) or ("nothing that both sides hold can be compared",)


def _headline(comparison: Comparison, row: TimedRow) -> str:
    title = "window" if row.section == WINDOW else f"{row.section} step"
    if row.ratio is None or row.interval is None or row.visible is None:
        return f"{title}: not all runs state it"
    change = f"{signed(row.ratio - 1)} ({signed(row.interval[0] - 1)} to {signed(row.interval[1] - 1)})"
    if not row.differs:
        return f"{title}: no change shown, {change}; {signed(row.visible)} would have been seen"
    verb = "slower" if row.ratio > 1 else "faster"
    values = f"{duration(row.base_median_ns or 0.0)} → {duration(row.head_median_ns or 0.0)}"
    waterfall = next((candidate for candidate in comparison.balances if candidate.title == title), None)
    return f"{title}: {verb}, {values}, {change}{_eaten(waterfall)}"


def _eaten(waterfall: Waterfall | None) -> str:
    """The part that holds most of a difference."""
    if waterfall is None or not waterfall.whole.difference_ns:
        return ""
    sign = 1 if waterfall.whole.difference_ns > 0 else -1
    worst = max(waterfall.parts, key=lambda part: sign * part.difference_ns)
    return f"; {worst.name} {more(worst.difference_ns)} of {more(waterfall.whole.difference_ns)}"


def signed(fraction: float) -> str:
    """A change as percent with its sign: 0.05 → '+5.0 %'."""
    return f"{'+' if fraction >= 0 else '−'}{share(abs(fraction))}"


def more(time_ns: float) -> str:
    """A difference of times with its sign: -1_500 → '−1.50 µs'."""
    return f"{'+' if time_ns >= 0 else '−'}{duration(abs(time_ns))}"
