"""SARIF 2.1.0: findings as results, rules that could not be asked as notifications."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import msgspec

from analyzer.render import words
from analyzer.render.safe import quoted, safe
from analyzer.rule import Question
from analyzer.schema.report import FindingRow, Report, RuleOutcome

SUFFIX = ".sarif"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
"""Severity → level."""

_ROOT = "ROOT"
_DRIVE = re.compile(r"[A-Za-z]:/")
_PLACEHOLDER = re.compile(r"\{(?=\d+\})|(?<=\d)\}")
_LINK = re.compile(r"\[(?=[^\]]*\]\()")

Json = dict[str, Any]


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as a SARIF log of one run; width and colour change nothing.

    Rules are in the order of their codes, results in that of the report, ranks in that of the run.
    """
    report = safe(report)
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    return quoted(msgspec.json.format(msgspec.json.encode(log), indent=2).decode()) + "\n"


def _run(report: Report) -> Json:
    places = [_location(artifact) for artifact in report.run.label.split(", ")]
    run: Json = {
        "tool": {
            "driver": {
                "name": report.tool.name,
                "version": report.tool.version,
                "rules": [_rule(row, report.findings) for row in report.rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    *({"level": "warning", "message": _message(warning)} for warning in report.run.warnings),
                    *(_unknown(row, at) for at, row in enumerate(report.rules) if row.outcome == "unknown"),
                ],
            }
        ],
        "artifacts": [{"location": artifact, "roles": ["analysisTarget"]} for artifact in places],
        "logicalLocations": [
            {"name": f"rank {rank}", "fullyQualifiedName": f"rank {rank}", "kind": "rank"} for rank in report.run.ranks
        ],
        "results": [_result(row, report, places[0]) for row in report.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "questions": msgspec.to_builtins(report.questions)},
    }
    if any("uriBaseId" in artifact for artifact in places):
        run["originalUriBaseIds"] = {_ROOT: {"uri": "file:///"}}
    return run


def _location(artifact: str) -> Json:
    """A relative URI; one of an absolute path is relative to the root of the file system."""
    path = artifact.replace("\\", "/")
    relative = quote(path.lstrip("/"), safe="/")
    if path.startswith("/") or _DRIVE.match(path):
        return {"uri": relative, "uriBaseId": _ROOT}
    return {"uri": relative}


def _rule(row: RuleOutcome, findings: list[FindingRow]) -> Json:
    """One rule; its help is the command that prints its page, and the page's address where it is a whole one."""
    question = Question(row.question)
    rule: Json = {
        "id": row.rule,
        "name": row.name,
        "shortDescription": {"text": row.name.replace("-", " ")},
        "fullDescription": {"text": f"Question {question.value}: {question.text}"},
        "help": {"text": f"Run `shardscope explain {row.rule}`."},
        "properties": {"question": question.name.lower(), "outcome": row.outcome},
    }
    url = next((found.url for found in findings if found.rule == row.rule), "")
    if url.startswith("https://"):
        rule["helpUri"] = url
    return rule


def _unknown(row: RuleOutcome, index: int) -> Json:
    return {
        "level": "note",
        "message": _message(f"{row.rule} {row.name} could not be asked: {row.missing}; {row.cure}"),
        "associatedRule": {"id": row.rule, "index": index},
    }


def _result(row: FindingRow, report: Report, artifact: Json) -> Json:
    index = {rank: at for at, rank in enumerate(report.run.ranks)}
    advice = "".join(f"\n{at}. {each}" for at, each in enumerate(row.advice, start=1))
    result: Json = {
        "ruleId": row.rule,
        "level": LEVELS[row.severity],
        "message": _message(f"{row.message} ({words.gain(row)}, {row.basis}).{advice}"),
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {**artifact, "index": 0}},
                "logicalLocations": [
                    {"index": index[rank], "fullyQualifiedName": f"rank {rank}"}
                    for rank in row.evidence.ranks
                    if rank in index
                ],
            }
        ],
        "partialFingerprints": {"ruleAndRanks/v1": f"{row.rule}:{','.join(map(str, row.evidence.ranks))}"},
        "properties": {
            "basis": row.basis,
            "question": row.question,
            "locality": row.locality,
            "cost_ns": row.cost_ns,
            "cost_ns_per_step": row.cost_ns_per_step,
            "cost_share": row.cost_share,
            "names": row.evidence.names,
            "spans_ns": row.evidence.spans,
        },
    }
    known = [outcome.rule for outcome in report.rules]
    if row.rule in known:
        result["ruleIndex"] = known.index(row.rule)
    return result


def _message(text: str) -> Json:
    """Plain text: what would be a placeholder or a link is escaped (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    doubled = _PLACEHOLDER.sub(lambda brace: brace[0] * 2, text)
    return {"text": _LINK.sub(r"\\[", doubled)}
