"""Ask every rule of a run, answer the six questions, hand over a Report."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from analyzer.diagnose.answers import PlainAnswer, plain_answer
from analyzer.diagnose.ladder import ladder_rows, rank_rungs
from analyzer.diagnose.tables import breakdown_tables, collective_rows, run_facts, scaling_facts, step_rows
from analyzer.diagnose.waiting import waiting_table
from analyzer.errors import MissingEvidenceError
from analyzer.measures.advice.fitting import fitting
from analyzer.measures.breakdown import breakdown
from analyzer.measures.cost import cost
from analyzer.measures.counts import KEY, counts
from analyzer.measures.records.plausible import doubt_of
from analyzer.measures.window import windowed
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import EVERYTHING, Doubt
from analyzer.rule import Question, Rule
from analyzer.schema.finding import Finding, Severity
from analyzer.schema.report import SCHEMA, Answer, FindingEvidence, FindingRow, Report, RuleOutcome, Tool, Verdict
from analyzer.sketch import sketch
from analyzer.units import count, share
from analyzer.version import VERSION

Found = tuple[Rule, Finding]

RECORD_AGAIN = "record again until no such warning is left"

ABOUT_TIME = (Question.LOCALITY, Question.COMMUNICATION, Question.TOPOLOGY)
"""Questions that only recorded work can answer."""

NOTHING_LOST = 0.01
"""Of the window: a loss below it is not named in the verdict."""


def diagnose(run: Run, rules: Iterable[Rule]) -> Report:
    """The whole diagnosis: every rule asked once, every question answered.

    Args:
        run: at least one trace with at least one activity.
        rules: in any order.
    """
    run = windowed(run)
    outcomes, rule_findings = _ask_all(run, rules)
    rule_findings.sort(key=lambda pair: (-(pair[1].cost_share or 0.0), pair[0].code))
    steps = max((row.count for row in step_rows(run)), default=0)
    return Report(
        schema=SCHEMA,
        tool=Tool("shardscope", VERSION),
        run=run_facts(run),
        breakdown=breakdown_tables(run),
        collectives=collective_rows(run),
        ladder=ladder_rows(run),
        rungs=rank_rungs(run),
        questions=[_answer(question, run, rule_findings, outcomes) for question in Question],
        findings=[_row(rule, finding, run, steps) for rule, finding in rule_findings],
        rules=outcomes,
        scaling=scaling_facts(run),
        verdict=_verdict(run, rule_findings),
        waiting=waiting_table(run),
        extra={KEY: msgspec.to_builtins(counts(run))},
    )


def _ask_all(run: Run, rules: Iterable[Rule]) -> tuple[list[RuleOutcome], list[Found]]:
    outcomes: list[RuleOutcome] = []
    rule_findings: list[Found] = []
    for rule in sorted(rules, key=lambda rule: rule.code):
        doubt = doubt_of(run, rule.rests_on)
        if doubt:
            reason = doubt.text.partition(":")[0]
            outcomes.append(RuleOutcome(rule.code, rule.name, rule.question, "unknown", reason, RECORD_AGAIN))
            continue
        try:
            findings = list(rule.check(run))
        except MissingEvidenceError as lack:
            outcomes.append(RuleOutcome(rule.code, rule.name, rule.question, "unknown", lack.missing, lack.cure))
            continue
        rule_findings += [(rule, finding) for finding in findings]
        outcomes.append(RuleOutcome(rule.code, rule.name, rule.question, "found" if findings else "clean"))
    return outcomes, rule_findings


def _answer(question: Question, run: Run, rule_findings: list[Found], outcomes: list[RuleOutcome]) -> Answer:
    plain = _of_the_run(question, run)
    findings = [finding for rule, finding in rule_findings if rule.question == question]
    severities = {finding.severity for finding in findings}
    text = plain.text if plain.known else f"unknown, because {plain.text}"
    if findings and not plain.known:
        text = f"{findings[0].message}; for the rest, {plain.text}"
    if severities & {Severity.ERROR, Severity.WARNING}:
        verdict: Verdict = "problem" if Severity.ERROR in severities else "attention"
    else:
        verdict = "ok" if plain.known else "unknown"
    lacking = [outcome.cure for outcome in outcomes if outcome.question == question and outcome.cure]
    missing = list(dict.fromkeys((*plain.missing, *lacking)))
    return Answer(question.value, question.name.lower(), verdict, text, missing)


def _of_the_run(question: Question, run: Run) -> PlainAnswer:
    """The run's own answer; none where the records hold nothing that could tell."""
    doubt = doubt_of(run)
    if doubt and doubt.doubts == EVERYTHING and question in ABOUT_TIME:
        return PlainAnswer(f"{doubt.text.partition(':')[0]}; {RECORD_AGAIN}", (RECORD_AGAIN,), known=False)
    return plain_answer(question, run)


def _row(rule: Rule, finding: Finding, run: Run, steps: int) -> FindingRow:
    first_ns = min(int(trace.activities.start_ns[0]) for trace in run.traces if len(trace.activities))
    evidence = finding.evidence
    return FindingRow(
        rule=rule.code,
        name=rule.name,
        severity=finding.severity.value,
        question=rule.question.value,
        locality=finding.locality.value if finding.locality else None,
        message=finding.message,
        cost_ns=finding.cost_ns,
        cost_ns_per_step=finding.cost_ns // steps if finding.cost_ns is not None and steps else None,
        cost_share=finding.cost_share,
        basis=finding.basis.value,
        evidence=FindingEvidence(
            list(evidence.ranks),
            [[start - first_ns, end - first_ns] for start, end in evidence.spans_ns],
            list(evidence.names),
        ),
        advice=list(fitting(run, finding.advice, evidence.ranks)),
        url=f"docs/rules.md#{rule.code.lower()}-{rule.name}",
        drawing=sketch.draw(run, *evidence.spans_ns[0]) if evidence.spans_ns else "",
    )


def _verdict(run: Run, rule_findings: list[Found]) -> str:
    """One line: the largest loss, and the finding to start with."""
    shares = {kind: cost(run, lambda rank_times, kind=kind: rank_times.term(kind).total_ns).share for kind in Kind}  # type: ignore[misc]
    if not any(rank_times.window.total_ns for rank_times in breakdown(run)):
        return "nothing ran in the recorded window"
    doubt = doubt_of(run, frozenset((Doubt.COMPUTE,)))
    if doubt and doubt.doubts == EVERYTHING:
        return f"device time is unknown: {doubt.text.partition(':')[0]}"
    is_idle_known = doubt_of(run, frozenset((Doubt.IDLE,))) is None
    losses = {kind: shares[kind] for kind in Kind if kind is not Kind.COMPUTE and (is_idle_known or kind != Kind.SYNC)}
    worst = max(losses, key=lambda kind: losses[kind])
    words = {
        Kind.COMMUNICATION: "communication between ranks",
        Kind.MOVEMENT: "state movement",
        Kind.SYNC: "a device with nothing to run",
    }
    largest = f"the largest loss is {words[worst]}, {share(losses[worst])}"
    if losses[worst] < NOTHING_LOST:
        largest = "nothing else takes a hundredth of it" if is_idle_known else "no other loss is known"
    line = f"{share(shares[Kind.COMPUTE])} of the window computes; {largest}"
    if not is_idle_known:
        line = f"records are missing, how long the device was idle is unknown: at least {line}"
    costly = [(rule, finding) for rule, finding in rule_findings if finding.severity is not Severity.INFO]
    if not costly:
        return f"{line}. No warnings." if doubt_of(run) is None else f"{line}."
    rule, finding = costly[0]
    gain = f", up to {share(finding.cost_share)} of the window" if finding.cost_share else ""
    return f"{line}. {count(len(costly), 'warning')}; start with {rule.code} {rule.name}{gain}."
