"""Markdown for a pull request: the verdict, the findings in one table, the rest folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from analyzer.render import words
from analyzer.render.safe import inert, safe
from analyzer.render.second_opinion import hta_lines
from analyzer.schema.report import FindingRow, Report, RuleOutcome
from analyzer.schema.waiting import WaitingTable
from analyzer.units import count, duration, share

SUFFIX = ".md"
SHOWN_WARNINGS = 3
SHOWN_FINDINGS = 10
SHOWN_RANKS = 64
SHOWN_COLLECTIVES = 20
SHOWN_NAMES = 5
SHOWN_REASONS = 4
SHOWN_LINES = 16
"""Ranks of a drawing."""
LONGEST_NAME = 120
"""Letters of a kernel's name; templates run to thousands."""

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~$]")
_START = re.compile(r"^(\d{0,9})([-+=#.)])(?=[-+=#]*(?:\s|$))")  # of a heading, a list, a rule
_MENTION = re.compile(r"([@#])(?=\w)")  # `@team` writes to people, `#12` to an issue


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as GitHub's and GitLab's markdown; width and colour change nothing."""
    report = safe(report)
    parts = [
        f"**{text(report.verdict)}**",
        f"{code(report.run.label)}: {text(words.facts(report.run))}",
        *_warnings(report.run.warnings),
        _findings(report),
        _fold("The six answers", _answers(report)),
        _fold("Where the time goes", _time(report)),
        *_waiting(report.waiting),
        *_scaling(report.scaling.sentences),
        *_details(report.findings[:SHOWN_FINDINGS]),
        *_unknown(report.rules),
        *_opinion(report),
        f"<sub>{text(report.tool.name)} {text(report.tool.version)}</sub>",
    ]
    return document(part.strip("\n") for part in parts)


def document(parts: Iterable[str]) -> str:
    """Paragraphs, tables and folds, one below the other."""
    return inert("\n\n".join(parts)) + "\n"


def text(words_: str) -> str:
    """One line in which nothing is markup, nobody is mentioned and no issue is linked."""
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(words_.split())).replace("&", "&amp;")
    return _MENTION.sub(r"\1<!-- -->", _START.sub(r"\1\\\2", escaped))


def summary(title: str) -> str:
    """The title of a fold, which is HTML, where no backslash escapes."""
    return _MENTION.sub(r"\1<!-- -->", escape(" ".join(title.split())))


def code(name: str) -> str:
    """A name in a fence longer than any in it; a bar is escaped, as in a table even code is split at it."""
    line = " ".join(name.split())
    line = line if len(line) <= LONGEST_NAME else f"{line[:LONGEST_NAME]}…"
    fence = "`" * (1 + max((len(found) for found in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", r"\|")


def _warnings(found: Sequence[str]) -> Iterator[str]:
    if found:
        yield "\n".join(f"> - {text(warning)}" for warning in found[:SHOWN_WARNINGS])
    if len(found) > SHOWN_WARNINGS:
        rest = found[SHOWN_WARNINGS:]
        yield _fold(count(len(rest), "more warning"), "\n".join(f"- {text(warning)}" for warning in rest))


def _findings(report: Report) -> str:
    if not report.findings:
        asked = sum(outcome.outcome != "unknown" for outcome in report.rules)
        return f"No findings: {count(asked, 'rule')} of {len(report.rules)} could be asked."
    shown = report.findings[:SHOWN_FINDINGS]
    rows = [(row.severity, text(f"{row.rule} {row.name}"), text(row.message), _gain(row), row.basis) for row in shown]
    rest = len(report.findings) - len(shown)
    more = f"\n\n… and {count(rest, 'more finding')} in the full report." if rest else ""
    return _table(("", "rule", "what", ">up to", "basis"), rows) + more


def _gain(row: FindingRow) -> str:
    return share(row.cost_share) if row.cost_share else words.NONE


def _answers(report: Report) -> str:
    rows = [(f"{row.id} {text(row.name)}", words.VERDICTS[row.verdict], text(row.answer)) for row in report.questions]
    return _table(("question", "", "answer"), rows)


def _time(report: Report) -> str:
    parts = [_ranks(report), f"Idle: {', '.join(words.idle(report.breakdown.per_rank)) or 'never'}."]
    parts += [f"{text(line)}." for line in words.blended(report.breakdown.per_rank)]
    if report.breakdown.steps:
        parts.append(_steps(report))
    if report.collectives:
        parts.append(_collectives(report))
    if report.ladder:
        parts.append(_ladder(report))
    return "\n\n".join(parts)


def _ranks(report: Report) -> str:
    rows = report.breakdown.per_rank
    figures = [
        (
            str(row.rank),
            duration(row.window_ns),
            *(words.part(row.by_term[term], row.window_ns) for term, _ in words.TERMS),
        )
        for row in rows[:SHOWN_RANKS]
    ]
    rest = [row.rank for row in rows[SHOWN_RANKS:]]
    more = f"\n\n… and {words.places(rest)} in the full report." if rest else ""
    return _table((">rank", ">window", *(f">{short}" for _, short in words.TERMS)), figures) + more


def _steps(report: Report) -> str:
    titles = ("steps", ">count", ">median", ">p90", ">period", *(f">{short}" for _, short in words.TERMS), "left out")
    rows = [
        (
            text(row.kind),
            f"{row.count:,}",
            duration(row.median_ns),
            duration(row.p90_ns),
            words.period(row),
            *(duration(row.terms.get(term, 0)) for term, _ in words.TERMS),
            text(words.left_out(row)),
        )
        for row in report.breakdown.steps
    ]
    return _table(titles, rows)


def _collectives(report: Report) -> str:
    figures = (">calls", ">message", ">median", ">waiting", ">bus bandwidth", ">expected")
    titles = ("collective", "axis", "ranks", *figures, "rung", "speed")
    rows = [
        (
            text(words.kind(row)),
            text(row.dimension),
            words.members(row),
            f"{row.count:,}",
            words.moved(row.bytes),
            duration(row.median_ns),
            words.waiting(row),
            words.bandwidth(row.busbw_GBps),
            words.bandwidth(row.expected_busbw_GBps),
            text(row.level),
            words.speed(row),
        )
        for row in report.collectives[:SHOWN_COLLECTIVES]
    ]
    rest = len(report.collectives) - len(rows)
    more = f"\n\n… and {count(rest, 'more kind')} in the full report." if rest else ""
    return _table(titles, rows) + more


def _waiting(waiting: WaitingTable) -> Iterator[str]:
    if not waiting.groups:
        return
    titles = ("ranks", ">collectives", "matched by", ">complete", ">wait by arrival", ">wait by shortest", "agree")
    rows = [
        (
            words.places(row.group),
            f"{row.collectives:,}",
            text(row.matched),
            share(row.complete_share),
            words.NONE if row.wait_by_arrival_ns is None else duration(row.wait_by_arrival_ns),
            duration(row.wait_by_shortest_ns),
            words.agreement(row),
            text(f"{row.verdict}: {row.reason}"),
        )
        for row in waiting.groups[:SHOWN_COLLECTIVES]
    ]
    late = [
        f"{at}. {text(line)}." for at, line in enumerate(words.told(waiting.late, SHOWN_COLLECTIVES, SHOWN_REASONS), 1)
    ]
    yield _fold("Who waits for whom", "\n\n".join(filter(None, (_table((*titles, "verdict"), rows), "\n".join(late)))))


def _scaling(sentences: Sequence[str]) -> Iterator[str]:
    """Stages, experts, upper bounds, a line each."""
    if sentences:
        shown = sentences[:SHOWN_FINDINGS]
        more = [f"- … and {count(len(sentences) - len(shown), 'more row')}"] if len(sentences) > len(shown) else []
        lines = "\n".join([*(f"- {text(sentence)}" for sentence in shown), *more])
        yield _fold("Stages, experts and upper bounds", lines)


def _ladder(report: Report) -> str:
    rows = [
        (text(row.level), words.moved(row.bytes), duration(row.time_ns), *words.in_a_step(row), text(row.basis))
        for row in report.ladder
    ]
    return _table(("rung", ">moved", ">time", ">moved in a step", ">time in a step", "basis"), rows)


def _details(findings: Sequence[FindingRow]) -> Iterator[str]:
    for row in findings:
        names = row.evidence.names
        lines = [f"{text(row.message)} ({words.gain(row)}, {row.basis}, {words.places(row.evidence.ranks)})."]
        lines.append("\n".join(f"- {text(advice)}" for advice in row.advice))
        if names:
            rest = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
            lines.append(f"In {', '.join(map(code, names[:SHOWN_NAMES]))}{rest}.")
        if row.drawing:
            lines.append(_block(row.drawing))
        yield _fold(f"{row.rule} {row.name}", "\n\n".join(lines))


def _unknown(rules: Sequence[RuleOutcome]) -> Iterator[str]:
    rows = [
        (text(f"{row.rule} {row.name}"), text(row.missing), text(row.cure)) for row in rules if row.outcome == "unknown"
    ]
    if rows:
        yield _fold(
            f"{count(len(rows), 'rule')} could not be asked", _table(("rule", "missing", "what would tell"), rows)
        )


def _opinion(report: Report) -> Iterator[str]:
    if "hta" in report.extra:
        yield _fold("Second opinion", "\n".join(f"- {text(line)}" for line in hta_lines(report.extra["hta"])))


def _block(drawing: str) -> str:
    """The first lines of a drawing as they stand: inside a fence nothing is markup but a fence as long."""
    lines = drawing.splitlines()
    drawing = "\n".join([*lines[:SHOWN_LINES], *(["…"] if len(lines) > SHOWN_LINES else [])])
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall("`+", drawing)), default=0))
    return f"{fence}text\n{drawing}\n{fence}"


def _fold(title: str, body: str) -> str:
    """Closed until clicked; the blank lines let the body be markdown."""
    return f"<details>\n<summary>{summary(title)}</summary>\n\n{body}\n\n</details>"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A title that starts with `>` heads a column of figures."""
    heads = " | ".join(title.removeprefix(">") for title in titles)
    rules = " | ".join("---:" if title.startswith(">") else "---" for title in titles)
    return "\n".join([f"| {heads} |", f"| {rules} |", *(f"| {' | '.join(row)} |" for row in rows)])
