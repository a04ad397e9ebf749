"""What sort of run each set of the corpus is, against a judgement by hand of the raw files (sorts_of_run.csv).

A cell with several values, parted by `;`, takes any of them; values joined by `+` are those of different ranks or groups.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest

from analyzer.ingest.load import load
from analyzer.measures.workload import workload

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
TRUTH = list(csv.DictReader((Path(__file__).parent / "sorts_of_run.csv").read_text(encoding="utf-8").splitlines()))
FACTS = ("work", "engine", "phase", "role", "replay")
RIGHT = 0.95
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the fetched trace corpus is not at hand; it is never committed"),
]


def judged(path):
    """Value and sureness of each fact; the sorted values of all ranks and groups, joined."""
    facts = workload(load(CORPUS / path))
    single = {name: (getattr(facts, name).value, getattr(facts, name).sure) for name in (*FACTS[:2], "replay", "maker")}
    joined = {
        "phase": {rank.phase for rank in facts.ranks},
        "role": {rank.role for rank in facts.ranks},
        "use": {group.use for group in facts.groups},
    }
    return single | {name: ("+".join(sorted(values)), "likely") for name, values in joined.items()}


@pytest.fixture(scope="module")
def verdicts():
    """Rows of path, fact, value, sureness and whether it is right."""
    rows = []
    for row in TRUTH:
        for fact, (value, sure) in judged(row["path"]).items():
            rows.append((row["path"], fact, value, sure, value in row[fact].split(";")))
    return rows


def test_nineteen_facts_of_twenty_are_right(verdicts):
    scored = [row for row in verdicts if row[1] in FACTS]
    wrong = [row for row in scored if not row[-1]]
    assert len(scored) == len(TRUTH) * len(FACTS)
    assert 1 - len(wrong) / len(scored) >= RIGHT, wrong


@pytest.mark.parametrize("fact", [*FACTS, "maker"])
def test_each_fact_alone_is_right_as_often(verdicts, fact):
    right = Counter(row[-1] for row in verdicts if row[1] == fact)
    assert right[True] / right.total() >= RIGHT


def test_nothing_certain_is_wrong(verdicts):
    assert [row for row in verdicts if row[3] == "certain" and not row[-1]] == []


def test_no_group_is_said_to_be_for_what_it_is_not(verdicts):
    uses = {row["path"]: set(row["use"].replace(";", "+").split("+")) for row in TRUTH}
    wrong = [
        (path, value)
        for path, fact, value, _, _ in verdicts
        if fact == "use" and not {"", "unknown", *uses[path]} >= set(value.split("+"))
    ]
    assert wrong == []
