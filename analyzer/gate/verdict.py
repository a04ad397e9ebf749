"""Did this change make it worse? Runs against a baseline, with one verdict and one exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analyzer.compare.configuration import Difference, common, differences, facts, obstacles, uneven
from analyzer.gate.baseline import Baseline, Record, record
from analyzer.gate.history import Entry, Trend, spread, trend
from analyzer.gate.metrics import GateVerdict, MetricResult, exact_verdicts, time_rows, uneven_work
from analyzer.gate.settings import SEVERITIES, GateSettings
from analyzer.schema.report import Report

EXIT_FINE, EXIT_WORSE, EXIT_CANNOT_TELL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class NewFinding:
    """A finding that the baseline does not have, or has less grave.

    Attributes:
        rule: code.
        severity: now.
        was: in the baseline, "" where it was not found.
        message: of the first run that has it.
        verdict: REGRESSION where it fails the gate.
        accepted: the reason why it is accepted, "" where it is not.
    """

    rule: str
    severity: str
    was: str
    message: str
    verdict: GateVerdict
    accepted: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What the gate says.

    Attributes:
        verdict: of the whole.
        rows: metrics, the worst first.
        findings: new ones, the gravest first.
        differences: of the configuration.
        courses: of gated times over past gates, this one included.
        notes: what a reader of the verdict must know.
        base_runs: labels.
        head_runs: labels.
    """

    verdict: GateVerdict
    rows: tuple[MetricResult, ...]
    findings: tuple[NewFinding, ...]
    differences: tuple[Difference, ...]
    courses: tuple[Trend, ...]
    notes: tuple[str, ...]
    base_runs: tuple[str, ...]
    head_runs: tuple[str, ...]

    def exit_code(self, *, strict: bool) -> int:
        """0 fine, 1 worse (or, under `strict`, undecided), 2 not comparable."""
        if self.verdict is GateVerdict.NOT_COMPARABLE:
            return EXIT_CANNOT_TELL
        worse = self.verdict is GateVerdict.REGRESSION or (strict and self.verdict is GateVerdict.UNDECIDED)
        return EXIT_WORSE if worse else EXIT_FINE

    @property
    def losses(self) -> tuple[str, ...]:
        """Metrics and rules that fail the gate."""
        metrics = tuple(row.metric for row in self.rows if row.verdict is GateVerdict.REGRESSION)
        return metrics + tuple(row.rule for row in self.findings if row.verdict is GateVerdict.REGRESSION)


def gate(
    reports: Sequence[Report],
    kept: Baseline,
    settings: GateSettings,
    *,
    history: Sequence[Entry] = (),
    allow_different: bool = False,
) -> Result:
    """The verdict on these runs.

    Args:
        reports: one a run, at least one.
        kept: the baseline.
        settings: least changes, ignored losses.
        history: past gates, oldest first.
        allow_different: compare other workloads too.
    """
    head = [record(report) for report in reports]
    now = common([facts(report) for report in reports])
    forbidding = obstacles(kept.facts, now)
    notes = list(_notes(reports, head, kept, settings))
    rows: tuple[MetricResult, ...] = ()
    if forbidding and not allow_different:
        listed = ", ".join(f"{difference.what} {difference.base} → {difference.head}" for difference in forbidding)
        notes.insert(0, f"not the workload of the baseline: {listed}; pass --allow-different to compare all the same")
    else:
        spreads = {metric: value for metric in _metrics(head) if (value := spread(history, metric)) is not None}
        judged = (*time_rows(kept.runs, head, settings, spreads), *exact_verdicts(kept.runs, head, settings))
        rows = tuple(sorted((_accepted(row, settings) for row in judged), key=_gravity))
    findings = tuple(_new_findings(reports, head, kept, settings))
    return Result(
        verdict=_whole(rows, findings),
        rows=rows,
        findings=findings,
        differences=differences(kept.facts, now),
        courses=_courses(rows, history),
        notes=tuple(notes),
        base_runs=tuple(run.label for run in kept.runs),
        head_runs=tuple(run.label for run in head),
    )


def entry(result: Result, time: str, label: str) -> Entry:
    """This gate as a line of its history."""
    values = {row.metric: [float(value) for value in row.head] for row in result.rows if row.is_time and row.head}
    return Entry(1, time, label, result.verdict.value, values)


def _metrics(head: Sequence[Record]) -> Iterator[str]:
    for kind in dict.fromkeys(name.partition(".")[0] for run in head for name in run.times_ns):
        yield from (f"{kind}.{part}" for part in ("step", "compute", "communication", "movement", "sync"))


_ORDER = (
    GateVerdict.REGRESSION,
    GateVerdict.NOT_COMPARABLE,
    GateVerdict.UNDECIDED,
    GateVerdict.IMPROVED,
    GateVerdict.PASS,
)


def _gravity(row: MetricResult) -> tuple[int, bool]:
    return _ORDER.index(row.verdict), not row.is_time


def _accepted(row: MetricResult, settings: GateSettings) -> MetricResult:
    """A loss that is ignored with a reason passes, and says so."""
    reason = settings.ignored.get(row.metric, "")
    if reason and row.verdict in {GateVerdict.REGRESSION, GateVerdict.UNDECIDED, GateVerdict.NOT_COMPARABLE}:
        return replace(row, verdict=GateVerdict.PASS, accepted=reason)
    return row


def _whole(rows: Sequence[MetricResult], findings: Sequence[NewFinding]) -> GateVerdict:
    """The gravest verdict; without any metric there is nothing to compare."""
    verdicts = {row.verdict for row in rows} | {row.verdict for row in findings}
    if not rows:
        return GateVerdict.NOT_COMPARABLE
    return next(verdict for verdict in _ORDER if verdict in verdicts)


def _new_findings(
    reports: Sequence[Report], head: Sequence[Record], kept: Baseline, settings: GateSettings
) -> Iterator[NewFinding]:
    """Rules that found something in more than half of the runs, and in none of the baseline, or less grave there."""
    messages = {row.rule: row.message for report in reversed(reports) for row in report.findings}
    was, worst = _worst(kept.runs), _worst(head)
    counts = Counter(rule for run in head for rule in run.findings)
    new = []
    for rule, times in counts.items():
        severity, before = worst[rule], was.get(rule, "")
        if 2 * times > len(head) and (not before or SEVERITIES.index(severity) > SEVERITIES.index(before)):
            reason = settings.ignored.get(rule, "")
            bar = settings.fail_on_new
            fails = bool(bar) and not reason and SEVERITIES.index(severity) >= SEVERITIES.index(bar)
            verdict = GateVerdict.REGRESSION if fails else GateVerdict.PASS
            new.append(NewFinding(rule, severity, before, messages[rule], verdict, reason))
    yield from sorted(new, key=lambda row: (-SEVERITIES.index(row.severity), row.rule))


def _worst(runs: Sequence[Record]) -> dict[str, str]:
    """Rule → its worst severity in any run."""
    worst: dict[str, str] = {}
    for run in runs:
        for rule, severity in run.findings.items():
            worst[rule] = max(worst.get(rule, severity), severity, key=SEVERITIES.index)
    return worst


def _courses(rows: Sequence[MetricResult], history: Sequence[Entry]) -> tuple[Trend, ...]:
    values = {row.metric: [float(value) for value in row.head] for row in rows if row.is_time and row.head}
    whole = [*history, Entry(1, "", "this gate", "", values)]
    return tuple(trend(whole, metric) for metric in values) if history else ()


def _notes(reports: Sequence[Report], head: Sequence[Record], kept: Baseline, settings: GateSettings) -> Iterator[str]:
    for what, values in uneven([facts(report) for report in reports]).items():
        yield f"the runs differ in {what}: {', '.join(values)}"
    uneven_sorts = uneven_work((*kept.runs, *head))
    if uneven_sorts:
        yield f"the recordings hold other mixes of steps or tokens: {', '.join(uneven_sorts)} are not gated"
    rules = {row.rule for report in reports for row in report.rules} | {rule for run in head for rule in run.findings}
    found_rules = {rule for run in head for rule in run.findings}
    metrics = {*_metrics(head), *_metrics(kept.runs), *(name for run in (*head, *kept.runs) for name in run.exact)}
    for name in settings.ignored:
        if name in rules and name not in found_rules:
            yield f"ignore {name} is stale: no run has this finding any more"
        elif name not in rules and name not in metrics:
            yield f"ignore {name} is stale: no such rule or metric"
    for name in settings.least:
        if name not in metrics:
            yield f"the threshold of {name} is stale: no such metric"
    lost = [name for run in kept.runs for name in run.exact if all(name not in other.exact for other in head)]
    named = [name for name in dict.fromkeys(lost) if name.startswith(("launches.", "moved.", "rung."))]
    if named:
        yield f"stated in the baseline and not now, so not gated: {', '.join(named)}"
