"""A gate's JUnit XML is valid, whatever its verdict and whatever names it holds."""

from dataclasses import replace
from pathlib import Path

import pytest
import xmlschema
from made_reports import collective, finding, report, step

from analyzer.gate.baseline import baseline
from analyzer.gate.settings import GateSettings
from analyzer.gate.verdict import gate
from analyzer.render.gate.junit import render

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")
HOSTILE = "\x1b[31m<all_reduce>&\x00]]>"


def runs(compute=8.0, count=3, **facts):
    return [report(f"run{at}", steps=[step(compute=compute + 0.01 * at)], **facts) for at in range(count)]


RESULTS = {
    "pass": gate(runs(), baseline(runs()), GateSettings()),
    "regression": gate(runs(9.2), baseline(runs()), GateSettings()),
    "undecided": gate(runs(count=1), baseline(runs()), GateSettings()),
    "not comparable": gate(runs(engine="sglang"), baseline(runs()), GateSettings()),
    "new finding": gate(runs(findings=[finding()]), baseline(runs()), GateSettings(fail_on_new="info")),
    "hostile": gate(
        runs(
            collectives=[replace(collective(), kind=HOSTILE)],
            findings=[replace(finding(), message=HOSTILE)],
            settings={"batch": 8, HOSTILE: HOSTILE},
        ),
        baseline(runs()),
        GateSettings(fail_on_new="info"),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("strict", [False, True])
def test_the_file_is_valid_against_the_published_schema(name, strict):
    SCHEMA.validate(render(RESULTS[name], strict=strict))


def test_the_counts_are_those_of_the_cases():
    assert 'tests="6" failures="1" errors="0"' in render(RESULTS["regression"])
