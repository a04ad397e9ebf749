"""Some ranks of the job have no trace here.

## What it measures

The world size that the traces state against the number of traces that were read.

## Why it costs

Nothing by itself. But a collective can only be told apart into waiting and transfer when all its participants are
here, and the slowest rank may be one that is missing.

## What to do

1. Gather the traces of every host into one directory. vLLM and SGLang write them on the host of each worker.
2. Check that the profiler ran on all ranks: start and stop must reach every instance of a deployment.

## When it is wrong

A run recorded on purpose on some ranks of a large job. The figures of these ranks hold; the cross-rank ones are bounds.

## Sources

`distributedInfo` of the PyTorch profiler.
"""

from collections.abc import Iterator

from analyzer.errors import MissingEvidenceError
from analyzer.model.run import Run
from analyzer.rule import Example, rule
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import count


@rule(
    Example("one of two ranks", "layout tp=2 dp=1\nworld 2\nrank 0 stream 7   GGGGAAAA", found=True),
    Example("both ranks", "layout tp=2\nworld 2\nrank 0 stream 7   GGGGAAAA\nrank 1 stream 7   GGGGAAAA", found=False),
)
def check(run: Run) -> Iterator[Finding]:
    world = run.layout.world_size
    if world is None:
        raise MissingEvidenceError(
            "no trace states the size of its job", 'write it into run.json beside the traces: {"layout": {"tp": 2, …}}'
        )
    if len(run.traces) >= world:
        return
    yield Finding(
        f"{count(len(run.traces), 'trace')} of a job of {count(world, 'rank')}",
        Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks),
        ("Gather the traces of all ranks: waiting cannot be told from transfer without them.",),
    )
