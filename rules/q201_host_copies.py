"""Copies between host and device run while nothing else does.

## What it measures

Exclusive time of copies from host to device and back, in which no kernel and no collective runs.

## Why it costs

A token step that stops for a copy waits for PCIe or C2C, one to two orders slower than device memory. A copy from
pageable memory is staged by the driver, runs at a fraction of the link, and blocks the calling thread as well.

## What to do

1. Pin the host buffers and copy asynchronously on a stream of their own; keep sampled tokens on the device
   (vLLM: `--async-scheduling`, from 0.14 on unless `--no-async-scheduling`; SGLang: unless
   `--disable-overlap-schedule`).
2. Build step inputs on the device; send one packed buffer instead of many small ones.
3. Without need, do not offload weights or KV (vLLM and SGLang: no `--cpu-offload-gb`).

## When it is wrong

A copy that a later kernel needs at once cannot be hidden by moving it to another stream: then the gain is nil and the
copy has to become smaller. The first steps after start copy more than the steady ones.

## Sources

CUDA C++ Best Practices Guide, data transfer between host and device.
"""

from collections.abc import Iterator

from analyzer.measures.cost import cost, exposed
from analyzer.measures.moves import moves
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Doubt
from analyzer.rule import Example, rule
from analyzer.schema.advice import Advice
from analyzer.schema.finding import Basis, Evidence, Finding, Locality, Severity
from analyzer.units import count, share

NOTABLE = 0.01
"""Of the window; healthy graph-replayed decode steps stay below half a percent."""
GRAVE = 0.05
BESIDE = (
    Advice(
        "Pin the host buffers and copy on a stream of its own: --async-scheduling.",
        engines=("vllm",),
        unless=("--async-scheduling",),
    ),
    Advice(
        "Pin the host buffers and copy on a stream of its own: do not pass --no-async-scheduling.", engines=("vllm",)
    ),
    Advice(
        "Pin the host buffers and copy on a stream of its own: do not pass --disable-overlap-schedule.",
        engines=("sglang",),
    ),
    "Pin the host buffers and copy on a stream of its own.",
)


@rule(
    Example("the step waits for its inputs", "rank 0 stream 7   HHHHGGGGGGGGHHHHGGGGGGGG", found=True),
    Example(
        "the copy runs beside the products",
        "rank 0 stream 7   GGGGGGGGGGGGGGGG\nrank 0 stream 20  ..JJJJ..........",
        found=False,
    ),
    rests_on=(Doubt.MOVEMENT,),
)
def check(run: Run) -> Iterator[Finding]:
    lost = cost(run, exposed(Kind.MOVEMENT, "copy_htod", "copy_dtoh"))
    if lost.share < NOTABLE:
        return
    rows = [move for move in moves(run) if move.subclass in ("copy_htod", "copy_dtoh") and move.exposed_ns]
    pageable = any("ageable" in name for move in rows for name in move.names)
    calls = sum(move.count for move in rows)
    kind = "some from pageable memory" if pageable else "from pinned memory"
    yield Finding(
        f"{count(calls, 'copy', 'copies')} between host and device ({kind}): {share(lost.share)} of the window alone; "
        "overlap hides at most that, and nothing where the next kernel needs the copy",
        Severity.WARNING if lost.share >= GRAVE else Severity.INFO,
        Basis.MEASURED,
        Evidence(run.ranks, names=tuple(dict.fromkeys(name for move in rows for name in move.names))),
        (
            BESIDE,
            "Build step inputs on the device, or pack them into one copy.",
        ),
        cost_ns=lost.time_ns,
        cost_share=lost.share,
        locality=Locality.DEVICE,
    )
