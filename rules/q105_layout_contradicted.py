"""What is declared of the layout and what the traces show do not agree.

## What it measures

Sizes and groups of each axis from every witness: `run.json`, server arguments, process groups with their descriptions
and members, file names, process titles, kinds of collectives. Found when a witness contradicts a surer one.

## Why it costs

A run that is not split as was meant is measured for something else: a tensor-parallel degree that silently became
data parallel, experts that stayed unsharded, a server whose flag was not taken.

## What to do

1. Believe the process groups: they are what ran. Correct `run.json` or the server's flags.
2. Look whether files of two runs lie in one directory.

## When it is wrong

A process group may carry an axis' name without being used.

## Sources

Process groups as torch writes them into `distributedInfo`.
"""

from collections.abc import Iterator

from analyzer.model.layout import CONTRADICTION
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Severity


@rule(
    Example(
        "run.json says tp 4, the process group has two ranks",
        """
        layout  tp=4
        note    layout contradiction: run.json declares tp 4, the process group tp has 2 ranks
        rank 0 stream 7   GGAA
        rank 1 stream 7   GGAA
        """,
        found=True,
    ),
    Example("nothing contradicts", "layout  tp=2\nrank 0 stream 7   GGAA\nrank 1 stream 7   GGAA", found=False),
)
def check(run: Run) -> Iterator[Finding]:
    for note in run.notes:
        if note.text.startswith(CONTRADICTION):
            yield Finding(
                note.text.removeprefix(CONTRADICTION).strip(),
                Severity.WARNING,
                Basis.MEASURED,
                Evidence(run.ranks),
                (
                    "Believe the process groups, and correct run.json or the server's flags.",
                    "Look whether files of two runs lie in one directory.",
                ),
            )
