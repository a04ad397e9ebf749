"""JUnit XML: a suite a question, a case a rule; warnings and errors fail, what could not be asked is skipped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from analyzer.render import words
from analyzer.render.safe import inert, safe
from analyzer.schema.report import Answer, FindingRow, Report, RuleOutcome
from analyzer.units import count

SUFFIX = ".xml"
FAILING = ("error", "warning")
"""Severities that fail a case, worst first; others are its output."""


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as JUnit XML; width and colour change nothing.

    Elements and attributes are those of the xUnit plugin's junit-10.xsd, which pytest's output follows as well. There
    are no times: a rule's own time says nothing of the run.
    """
    report = safe(report)
    suites = [_suite(question, report) for question in report.questions]
    totals = {key: str(sum(int(suite.get(key, "0")) for suite in suites)) for key in ("tests", "failures", "errors")}
    root = ET.Element("testsuites", {"name": report.tool.name, **totals})
    root.extend(suites)
    ET.indent(root)
    return f"{_DECLARATION}{inert(ET.tostring(root, encoding='unicode'))}\n"


_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'


def _suite(question: Answer, report: Report) -> ET.Element:
    rules = [row for row in report.rules if row.question == question.id]
    cases = [
        _case(row, question, [finding for finding in report.findings if finding.rule == row.rule]) for row in rules
    ]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": 0,
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    name = f"{question.id} {question.name}"
    suite = ET.Element("testsuite", {"name": name, **{key: str(n) for key, n in counts.items()}})
    properties = ET.SubElement(suite, "properties")
    for key, value in (("run", report.run.label), ("verdict", question.verdict), ("answer", question.answer)):
        ET.SubElement(properties, "property", {"name": key, "value": value})
    suite.extend(cases)
    return suite


def _case(rule: RuleOutcome, question: Answer, findings: list[FindingRow]) -> ET.Element:
    case = ET.Element("testcase", {"classname": f"shardscope.{question.name}", "name": f"{rule.rule} {rule.name}"})
    if rule.outcome == "unknown":
        ET.SubElement(case, "skipped", {"message": f"{rule.missing}; {rule.cure}"})
    failing = sorted((row for row in findings if row.severity in FAILING), key=lambda row: FAILING.index(row.severity))
    if failing:
        more = f" (and {count(len(failing) - 1, 'more finding')})" if len(failing) > 1 else ""
        attributes = {"type": failing[0].severity, "message": f"{failing[0].message}{more}"}
        ET.SubElement(case, "failure", attributes).text = "\n\n".join(map(_text, failing))
    others = [row for row in findings if row.severity not in FAILING]
    if others:
        ET.SubElement(case, "system-out").text = "\n\n".join(map(_text, others))
    return case


def _text(row: FindingRow) -> str:
    head = f"{row.message}\n{words.gain(row)}, {row.basis}, {words.places(row.evidence.ranks)}"
    parts = [head, *(f"→ {advice}" for advice in row.advice)]
    return "\n".join([*parts, "", row.drawing] if row.drawing else parts)
