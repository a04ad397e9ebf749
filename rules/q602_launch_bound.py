"""The device waits for the host to launch.

## What it measures

Time in which nothing runs and the next kernel has not been launched yet, the host not being blocked in a call.

## Why it costs

The host's time a step does not shrink when the work is split over more ranks: it becomes the floor, and more ranks
only make the device idle longer.

## What to do

1. Replay decode from graphs, where it is eager (vLLM: no `--enforce-eager`; SGLang: `--cuda-graph-backend-decode` not
   disabled and `--cuda-graph-max-bs-decode` no smaller than the batch, before 0.5.14 no `--disable-cuda-graph` and
   `--cuda-graph-max-bs`).
2. Let scheduling run beside the device (vLLM: `--async-scheduling`, from 0.14 on unless `--no-async-scheduling`;
   SGLang: unless `--disable-overlap-schedule`).
3. Give each rank's process cores of its own on the right NUMA node.

## When it is wrong

The profiler slows the host: with stacks on, several times. Compare with the step time without the profiler.

## Sources

Launch correlation of the PyTorch profiler: what was launched inside an idle stretch ended it.
"""

from collections.abc import Iterator

from analyzer.measures.advice.shared import GRAPHS
from analyzer.measures.breakdown import breakdown
from analyzer.measures.cost import cost, longest
from analyzer.model.kind import Cause
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Severity
from analyzer.units import share

SCHEDULE = (
    Advice(
        "Let scheduling run beside the device: --async-scheduling.", engines=("vllm",), unless=("--async-scheduling",)
    ),
    Advice("Let scheduling run beside the device: do not pass --no-async-scheduling.", engines=("vllm",)),
    Advice("Let scheduling run beside the device: do not pass --disable-overlap-schedule.", engines=("sglang",)),
)
NOTABLE = 0.15
"""Of the window; graph-replayed decode steps stay below a tenth."""


@rule(
    Example(
        "each kernel is launched late",
        "rank 0 stream 7   .GG....GG....GG....GG\nrank 0 host       l.....l.....l.....l..",
        found=True,
    ),
    Example(
        "launched well ahead",
        "rank 0 stream 7   ....GGGGG|GGGGG|GGGGG\nrank 0 host       lll..................",
        found=False,
    ),
    rests_on=(Doubt.LAUNCHES, Doubt.IDLE),
)
def check(run: Run) -> Iterator[Finding]:
    if all(trace.origin.device == "cpu" for trace in run.traces):
        return
    lost = cost(run, lambda rank_split: rank_split.causes[Cause.HOST_LAUNCH].total_ns)
    if lost.share < NOTABLE:
        return
    worst = max(breakdown(run), key=lambda rank_split: rank_split.causes[Cause.HOST_LAUNCH].total_ns)
    slowed = any("with_stack" in trace.origin.settings for trace in run.traces)
    yield Finding(
        f"the device waits {share(lost.share)} of the window for the host to launch"
        + (" (recorded with stacks, which slow the host)" if slowed else ""),
        Severity.WARNING,
        Basis.MEASURED,
        Evidence((worst.rank,), longest(worst.causes[Cause.HOST_LAUNCH])),
        (
            GRAPHS,
            SCHEDULE,
            "Launch less from the host: fewer and larger kernels, no work of Python between them.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
    )
