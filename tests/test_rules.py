"""Every drawn example of every rule says what the rule finds."""

import pytest

import rules
from analyzer.page import rule_page
from analyzer.plugins import offers
from analyzer.sketch import sketch

RULES = list(offers(rules, "check").values())
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]


@pytest.mark.parametrize(
    ("rule", "example"), EXAMPLES, ids=[f"{rule.code}: {example.title}" for rule, example in EXAMPLES]
)
def test_an_example_is_found_or_not_as_its_page_says(rule, example):
    assert bool(list(rule.check(sketch.read(example.drawing)))) == example.found


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_rule_shows_what_it_finds_and_what_it_does_not(rule):
    assert {example.found for example in rule.examples} == {True, False}


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_finding_is_complete(rule):
    for example in rule.examples:
        for finding in rule.check(sketch.read(example.drawing)):
            assert finding.advice
            assert finding.message[0].islower() or finding.message[0].isdigit()
            assert (finding.cost_ns is None) == (finding.cost_share is None)
            assert finding.cost_share is None or 0 <= finding.cost_share <= 1


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_page_names_its_code_and_draws_its_examples(rule):
    page = rule_page(rule)
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert page.count("    rank 0 stream") >= 2
