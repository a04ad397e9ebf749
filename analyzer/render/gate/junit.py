"""A gate's result as JUnit XML: a case a metric; a regression fails, what is undecided is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from analyzer.gate.metrics import GateVerdict, MetricResult
from analyzer.gate.verdict import NewFinding, Result
from analyzer.render.gate import words
from analyzer.render.safe import inert, safe

NAME = "shardscope gate"


def render(result: Result, *, strict: bool = False) -> str:
    """The result as JUnit XML, elements and attributes as in the xUnit plugin's junit-10.xsd.

    Args:
        result: what to show.
        strict: whether what is undecided fails, as it does for the exit code.
    """
    result = safe(result)
    cases = [*(_metric(row, strict=strict) for row in result.rows), *map(_finding, result.findings)]
    if not result.rows:
        cases.insert(0, _case("configuration", "error", " ".join(result.notes) or words.headline(result)))
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    totals = {key: str(n) for key, n in counts.items()}
    root = ET.Element("testsuites", {"name": NAME, **totals})
    skipped = str(sum(case.find("skipped") is not None for case in cases))
    suite = ET.SubElement(root, "testsuite", {"name": NAME, **totals, "skipped": skipped})
    properties = ET.SubElement(suite, "properties")
    for key, value in _facts(result):
        ET.SubElement(properties, "property", {"name": key, "value": value})
    suite.extend(cases)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{inert(ET.tostring(root, encoding="unicode"))}\n'


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    yield "verdict", words.headline(result)
    yield "baseline", ", ".join(result.base_runs)
    yield "runs", ", ".join(result.head_runs)
    yield from (("note", note) for note in result.notes)


def _metric(row: MetricResult, *, strict: bool) -> ET.Element:
    outcomes = {
        GateVerdict.REGRESSION: "failure",
        GateVerdict.NOT_COMPARABLE: "error",
        GateVerdict.UNDECIDED: "failure" if strict else "skipped",
    }
    sides = f"{words.value(row, row.base)} → {words.value(row, row.head)}"
    figures = " ".join(part for part in (words.change(row), words.interval(row)) if part)
    message = f"{words.why(row)} ({sides}{', ' if figures else ''}{figures})"
    return _case(row.metric, outcomes.get(row.verdict, ""), message)


def _finding(row: NewFinding) -> ET.Element:
    fails = row.verdict is GateVerdict.REGRESSION
    accepted = f", accepted: {row.accepted}" if row.accepted else ""
    message = f"new, {row.severity}: {row.message}{accepted}"
    return _case(f"finding {row.rule}", "failure" if fails else "", message)


def _case(name: str, outcome: str, message: str) -> ET.Element:
    """A case; what it says goes into its outcome, or into its output where it passes."""
    case = ET.Element("testcase", {"classname": "shardscope.gate", "name": name})
    if outcome:
        attributes = {"message": message} if outcome == "skipped" else {"type": outcome, "message": message}
        ET.SubElement(case, outcome, attributes)
    else:
        ET.SubElement(case, "system-out").text = message
    return case
