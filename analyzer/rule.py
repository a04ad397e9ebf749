"""A rule asks one question of a run; its file name is its code and name, its docstring is its page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.schema.finding import Finding

Check = Callable[[Run], Iterator[Finding]]


class Question(IntEnum):
    """The six questions, always asked in this order, always all answered."""

    SPLIT = 1
    LOCALITY = 2
    COMMUNICATION = 3
    TOPOLOGY = 4
    REUSE = 5
    REVERSAL = 6

    @property
    def text(self) -> str:
        """The question as asked."""
        return _TEXTS[self]


_TEXTS = {
    Question.SPLIT: "By which dimension is the workload split?",
    Question.LOCALITY: "Which data is no longer local after the split?",
    Question.COMMUNICATION: "Which collectives and point-to-point transfers were added?",
    Question.TOPOLOGY: "Does communication cross a slower topology boundary?",
    Question.REUSE: "Is state reused, or moved every time?",
    Question.REVERSAL: "Is there a point past which more parallelism reverses the gain?",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A drawn timeline (see `analyzer.sketch`) and whether the rule finds something in it."""

    title: str
    drawing: str
    found: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One check, with what explains and tests it.

    Attributes:
        code: `Q301`, from the file name; the first digit is the question.
        name: `exposed-all-reduce`, from the file name.
        question: the question it helps to answer.
        page: the module docstring: what it measures, why it costs, what to do, when it is wrong, sources.
        check: yields findings; raises MissingEvidenceError where the run cannot tell.
        examples: at least one that is found and one that is not.
        rests_on: records that it judges by; where one is in doubt, the rule is not asked.
    """

    code: str
    name: str
    question: Question
    page: str
    check: Check
    examples: tuple[Example, ...]
    rests_on: frozenset[Doubt] = frozenset()


def rule(*examples: Example, rests_on: Iterable[Doubt] = ()) -> Callable[[Check], Rule]:
    """Make a check into the rule of its module; code, name and question are in the file name."""

    def make(check: Check) -> Rule:
        module: Any = sys.modules[check.__module__]
        code, _, name = module.__name__.rpartition(".")[2].partition("_")
        page, question = module.__doc__ or "", Question(int(code[1]))
        return Rule(code.upper(), name.replace("_", "-"), question, page, check, examples, frozenset(rests_on))

    return make
