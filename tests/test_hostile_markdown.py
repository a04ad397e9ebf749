"""Names out of files act in no form of any command: no markup, no mention, no command of a log, no escape."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from drawn_reports import report_of, with_evidence
from made_reports import collective, finding, rank, report, step
from markdown_it import MarkdownIt
from routing_logs import SAMPLE

from analyzer.compare.comparison import compare
from analyzer.gate.baseline import baseline
from analyzer.gate.history import Trend
from analyzer.gate.settings import GateSettings
from analyzer.gate.verdict import gate
from analyzer.ingest.load import load as load_run
from analyzer.model.trace import Note
from analyzer.pd.pd import pd
from analyzer.render import pd as _pd
from analyzer.render import routing as _routing
from analyzer.render.compare import html as compare_html
from analyzer.render.compare import markdown as compare_markdown
from analyzer.render.compare import text as compare_text
from analyzer.render.formats import github, html, junit, markdown, sarif, text
from analyzer.render.formats import json as report_json
from analyzer.render.gate import github as gate_github
from analyzer.render.gate import junit as gate_junit
from analyzer.render.gate import markdown as gate_markdown
from analyzer.render.gate import text as gate_text
from analyzer.render.safe import safe
from analyzer.render.sweep import html as sweep_html
from analyzer.render.sweep import markdown as sweep_markdown
from analyzer.render.sweep import text as sweep_text
from analyzer.render.whatif import markdown as foresight_markdown
from analyzer.render.whatif import text as foresight_text
from analyzer.routing.policies import ReplaySetup
from analyzer.routing.request_log import load
from analyzer.routing.routing import routing
from analyzer.sketch import sketch
from analyzer.sweep.point import Point, PointSeries
from analyzer.sweep.sweep import SweepRequest, sweep
from analyzer.whatif.foresight import foresee

RECORDED = Path(__file__).resolve().parents[1] / "sample_traces" / "recorded"
HOSTILE = {
    "markup": "a | b @team <img src=x> **c** [d](e) `f` #12 ",
    "command": "::error::x\n::error::y\n##[error]z ",
    "heading": "# x ",
    "escape": "\x1b[31m\x9b2J\x07 ",
    "direction": "\u202ea\u202c\u2066b\u2069\u200f\u061c ",
    "long": "y" * 300,
}
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
WORDS = frozenset(
    ("verdict", "severity", "basis", "outcome", "bound", "band", "state", "policy", "used", "objective", "doing")
)
"""Fields that hold one of our own words, whatever is in the file: others are refused when it is read."""
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def poisoned(value, name, field="", *, top=True):
    """The same record, each free string in it with a hostile one before it."""
    if isinstance(value, Enum) or (field in WORDS and not top):
        return value
    if isinstance(value, str):
        return f"{name}{value}"
    if isinstance(value, (list, tuple)):
        return type(value)(poisoned(each, name, field, top=False) for each in value)
    if is_dataclass(value):
        return replace(
            value,
            **{
                part.name: poisoned(getattr(value, part.name), name, part.name, top=False)
                for part in fields(value)
                if part.init
            },
        )
    if isinstance(value, msgspec.Struct):
        parts = {part: poisoned(getattr(value, part), name, part, top=False) for part in value.__struct_fields__}
        return msgspec.structs.replace(value, **parts)
    return value


def diagnosed(name):
    found = poisoned(with_evidence(report_of("tp")), name)
    free = {f"{name}gemm": 5_000}
    rows = [replace(row, subclasses=free) for row in found.breakdown.per_rank]
    steps = [replace(row, left_out={f"{name}reason": 1}) for row in found.breakdown.steps]
    run = replace(found.run, layout={f"{name}tp": 2, "source": name}, settings={name: name}, warnings=[name] * 5)
    found = replace(found, run=run, verdict=f"{name}verdict")
    return replace(found, breakdown=replace(found.breakdown, per_rank=rows, steps=steps), extra={name: {name: name}})


def hostile_run(name, at=0, **changes):
    rows = [collective(), replace(collective(level=f"{name}rung"), kind=f"{name}kind", dimension=f"{name}axis")]
    rows[0] = replace(rows[0], level=f"{name}{at}")
    found = replace(finding("Q303"), name=f"{name}name", rule=f"{name}Q303{at}", message=f"{name}message")
    known = {
        "steps": [step(), step(f"{name}step")],
        "ranks": [rank(subclasses={f"{name}gemm": 800_000_000})],
        "collectives": rows,
        "findings": [found],
        "settings": {f"{name}setting": f"{name}{at}"},
        "versions": {f"{name}version": f"{name}{at}"},
        **changes,
    }
    return report(f"{name}run", **known)


def compared(name):
    return compare([hostile_run(name)], [hostile_run(name, 1)])


def gated(name):
    kept = baseline([hostile_run(name)])
    settings = GateSettings(fail_on_new="warning", ignored={f"{name}stale": f"{name}reason"})
    result = gate([hostile_run(name, 1)], kept, settings, allow_different=True)
    course = Trend(f"{name}metric", 12, (f"{name}commit", 1.2), 1.01)
    accepted = [*result.rows[:1], *(replace(row, accepted=f"{name}reason") for row in result.rows[1:])]
    findings = [replace(row, accepted=f"{name}reason", was="info") for row in result.findings]
    return replace(result, courses=(course,), rows=tuple(accepted), findings=tuple(findings))


def swept(name):
    layouts = tuple(Point(at, (1e6 * at,), name=f"{name}{at}") for at in (1, 2, 3))
    values = {1: 1e8, 2: 6e7, 4: 5e7, 8: 7e7}
    degrees = tuple(Point(degree, (value, value * 1.001)) for degree, value in values.items())
    return (
        sweep(PointSeries(name, layouts, name, name, ordered=False, notes=(name,)), SweepRequest(name)),
        sweep(PointSeries(name, degrees, name, name, notes=(name,)), SweepRequest(name)),
    )


@cache
def drawn_foresight():
    run = sketch.read("""
        layout  tp=2
        message 65536
        engine  vllm
        model   num_attention_heads=8 num_key_value_heads=4 hidden_size=4096 num_hidden_layers=4
        rank 0 stream 7   GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.
        rank 0 host       lll.....lll.....lll.....lll.....lll.....
        rank 0 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
        rank 1 stream 7   GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.GGGGNAA.
        rank 1 host       lll.....lll.....lll.....lll.....lll.....
        rank 1 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
    """)
    return foresee(run, "tp", 4, platform="NVIDIA H100 80GB HBM3")


def foreseen(name):
    found = drawn_foresight()
    classes = tuple(replace(part, name=f"{name}{part.name}") for part in found.step.classes)
    told = replace(found.expectation, notes=(name,))
    ceilings = tuple(replace(part, name=f"{name}{part.name}") for part in found.ceilings)
    step_ = replace(found.step, classes=classes)
    return replace(found, label=f"{name}run", kind=f"{name}decode", step=step_, expectation=told, ceilings=ceilings)


@cache
def recorded_hand_over():
    run = load_run(RECORDED / "pd1+1")
    return pd(run, run)


def handed_over(name):
    found = poisoned(recorded_hand_over(), name)
    transfer = msgspec.structs.replace(found.transfer, carriers=(f"{name}nixl",))
    return msgspec.structs.replace(found, transfer=transfer)


@cache
def replayed():
    return routing(load(SAMPLE), ReplaySetup(3))


def routed(name):
    return replace(replayed(), path=f"{name}log.jsonl", notes=(Note(f"{name}note"),))


FORMS = {
    "diagnose text": (diagnosed, text.render),
    "diagnose markdown": (diagnosed, markdown.render),
    "diagnose html": (diagnosed, html.render),
    "diagnose json": (diagnosed, report_json.render),
    "diagnose junit": (diagnosed, junit.render),
    "diagnose sarif": (diagnosed, sarif.render),
    "diagnose github": (diagnosed, github.render),
    "compare text": (compared, compare_text.render),
    "compare markdown": (compared, compare_markdown.render),
    "compare html": (compared, compare_html.render),
    "gate text": (gated, gate_text.render),
    "gate markdown": (gated, gate_markdown.render),
    "gate junit": (gated, gate_junit.render),
    "gate github": (gated, gate_github.render),
    "sweep text": (swept, sweep_text.render),
    "sweep markdown": (swept, sweep_markdown.render),
    "sweep html": (swept, sweep_html.render),
    "foresight text": (foreseen, foresight_text.render),
    "foresight markdown": (foreseen, foresight_markdown.render),
    "pd text": (handed_over, _pd.to_text),
    "pd markdown": (handed_over, _pd.to_markdown),
    "pd json": (handed_over, _pd.to_json),
    "routing text": (routed, _routing.to_text),
    "routing markdown": (routed, _routing.to_markdown),
    "routing json": (routed, _routing.to_json),
}


def commands(lines):
    """Lines that a GitHub log would take for commands."""
    return [line for line in lines.split("\n") if line.lstrip().startswith("::") or "##[" in line]


def page_without_programs(shown):
    return re.sub(r"<script.*?</script>|<style.*?</style>", "", shown, flags=re.DOTALL)


def assert_markdown_is_inert(shown, plain):
    """Whatever the names, the document has the same elements as with names that are words."""
    made, honest = MARKDOWN.render(shown), MARKDOWN.render(plain)
    tags = [re.findall(r"<(/?\w+)", part) for part in (made, honest)]
    assert [tag for tag in tags[0] if tag != "code"] == [tag for tag in tags[1] if tag != "code"]
    outside = re.sub(r"<code[^>]*>.*?</code>", "", made, flags=re.DOTALL)
    assert not re.search(r"[@#]\w", re.sub(r"&#\w+;", "", outside))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_out_of_a_file_acts(form, kind):
    make, render = FORMS[form]
    shown = render(make(HOSTILE[kind]))
    page = page_without_programs(shown) if form.endswith("html") else shown
    assert ACTING.findall(page) == []
    if form.endswith("github"):
        assert all(re.match(r"::(notice|warning|error) title=[^:,]*::", line) for line in shown.splitlines())
    else:
        assert commands(page) == []
    if form.endswith("html"):
        assert "<img" not in page
    if form.endswith("markdown"):
        assert_markdown_is_inert(shown, render(make("plain ")))
    if form.endswith(("json", "sarif")):
        assert json.loads(shown)
    if form.endswith("junit"):
        assert len(list(ET.fromstring(shown).iter())) == len(list(ET.fromstring(render(make("plain "))).iter()))


@pytest.mark.parametrize("form", [form for form in FORMS if form.endswith("text")])
def test_text_keeps_its_width_with_long_names(form):
    make, render = FORMS[form]
    assert max(map(len, render(make(HOSTILE["long"])).splitlines())) <= 80


def test_a_rung_of_a_report_is_a_word_in_a_pull_request():
    name = "a | b @team <img src=x>"
    changed = report(collectives=[collective(level=name)])
    assert r"| `rung.tp.all_reduce` | nvlink | a \| b @<!-- -->team \<img src=x\> | differs |" in (
        compare_markdown.render(compare([report()], [changed]))
    )


def test_a_kind_of_step_is_a_word_in_the_title_of_a_fold():
    run = report(steps=[step("<img src=x> @team")])
    assert "<summary>Times: &lt;img src=x&gt; @<!-- -->team</summary>" in compare_markdown.render(compare([run], [run]))


def test_a_new_finding_names_its_rule_as_a_word():
    run = report(findings=[replace(finding(), name="a_b @team <img src=x>")])
    new, gone = (compare_markdown.render(compare(*sides)) for sides in (([report()], [run]), ([run], [report()])))
    assert r"- new: warning Q301 a\_b @<!-- -->team \<img src=x\>: Q301 says so" in new
    assert r"- gone: warning Q301 a\_b @<!-- -->team \<img src=x\>" in gone


def test_words_that_start_a_list_or_a_heading_start_none():
    shown = [markdown.text(words) for words in ("# a", "- a", "1. a", "---", "+5.0 %", "-3 ns")]
    assert shown == ["\\# a", "\\- a", "1\\. a", "\\---", "+5.0 %", "-3 ns"]


def test_json_says_what_acts_in_escapes_and_is_equal_when_read():
    shown = report_json.render(replace(report_of("tp"), verdict="a\u202eb\x9b"))
    assert '"verdict": "a\\u202eb\\u009b"' in shown
    assert json.loads(shown)["verdict"] == "a\u202eb\x9b"


def test_a_record_without_acting_characters_is_given_back_itself():
    found = compare([report()], [report()])
    assert safe(found) is found
