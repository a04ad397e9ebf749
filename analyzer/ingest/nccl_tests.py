"""What nccl-tests (and rccl-tests) print: times of one collective over message sizes, with the ranks that took part.

    # Collective test starting: all_reduce_perf
    #  Rank  0 Group  0 Pid   1946 on node-1 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
    #  size  count   type  redop  root   time  algbw  busbw  #wrong   time  algbw  busbw  #wrong
       1024    256  float    sum    -1  15.90   0.06   0.11       0  15.80   0.06   0.11       0

Out-of-place times are taken. Source of the layout: NVIDIA/nccl-tests, src/common.cu and src/util.cu.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.errors import TraceFormatError
from analyzer.model.hardware import MeasuredCurve

TESTS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_recv",
}
"""Name of the program, without `_perf` → the operation."""
PASSES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
"""Bus bandwidth over algorithm bandwidth is this times (n - 1)/n."""
COLUMNS = 8
"""Time, algbw, busbw and errors, out of place and in place: the last columns of a row."""
SHOWN_EXACTLY = 5.0
"""GB/s from which two printed decimals tell the number of ranks."""
AGREE = 0.02

_PROGRAM = re.compile(r"\b(\w+?)_perf\b")
_RANK = re.compile(r"#\s*Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[[^\]]*\]\s*(.*\S)")
_ROW = re.compile(r"\s*(\d+)\s+\d+\s+[a-z]\w*\s")


@dataclass(slots=True)
class _Test:
    program: str
    ranks: dict[int, tuple[str, str]] = field(default_factory=dict)
    rows: dict[int, tuple[float, float, float]] = field(default_factory=dict)


def read_nccl_tests(text: str, source: str, operation: str = "") -> list[MeasuredCurve]:
    """Every test that the text holds, in order.

    Args:
        text: what the programs printed, one after another, other lines between them.
        source: where the text is from; its name tells the program where no line does (`all_gather_perf.log`).
        operation: what to take it for where neither tells.

    Raises:
        TraceFormatError: no row of a test, ranks that are not printed, or a bandwidth that other ranks would have.
    """
    tests = [test for test in _tests(text, source, operation or _named(source)) if test.rows]
    if not tests:
        raise TraceFormatError(f"{source}: no row of nccl-tests in {len(text.splitlines())} lines; save all it prints")
    return [_series(test, source) for test in tests]


def _named(source: str) -> str:
    return next((operation for name, operation in TESTS.items() if name in source), "")


def _tests(text: str, source: str, fallback: str) -> Iterator[_Test]:
    """A test ends where the next one lists its devices again."""
    program, test = fallback, _Test(fallback)
    for line in text.splitlines():
        if (match := _PROGRAM.search(line)) and (match[1] in TESTS or "test starting" in line):
            program = TESTS.get(match[1], match[1])
            if not test.rows:
                test.program = program
        elif match := _RANK.search(line):
            if test.rows:
                yield test
                test = _Test(program)
            if match[2] in {None, "0"}:
                if int(match[1]) in test.ranks:
                    raise TraceFormatError(
                        f"{source}: lists a rank twice: build nccl-tests with MPI=1, or start one process"
                    )
                test.ranks[int(match[1])] = (match[3], match[4])
        elif (match := _ROW.match(line)) and len(line.split()) > COLUMNS:
            time_us, algbw, busbw = (float(word) for word in line.split()[-COLUMNS:][:3])
            test.rows[int(match[1])] = (time_us, algbw, busbw)
    yield test


def _series(test: _Test, source: str) -> MeasuredCurve:
    operation, n = test.program, len(test.ranks)
    if operation not in TESTS.values():
        raise TraceFormatError(f"{source}: which test it is was not printed; pass --operation all_reduce or another")
    if not n:
        raise TraceFormatError(f"{source}: no line '#  Rank  0 … device', which says what ran; save all it prints")
    factor = PASSES.get(operation, 0.0) * (n - 1) / n or 1.0
    for size, (_, algbw, busbw) in test.rows.items():
        if algbw >= SHOWN_EXACTLY and abs(busbw / algbw / factor - 1) > AGREE:
            raise TraceFormatError(
                f"{source}: busbw over algbw is {busbw / algbw:.2f} at {size} bytes, {operation} on {n} ranks has "
                f"{factor:.2f}; the list of ranks or the operation is wrong"
            )
    sizes = sorted(size for size in test.rows if size > 0)
    hosts = {host for host, _ in test.ranks.values()}
    devices = {device for _, device in test.ranks.values()}
    return MeasuredCurve(
        operation,
        n,
        len(hosts),
        devices.pop() if len(devices) == 1 else "",
        f"nccl-tests on {', '.join(sorted(hosts))}",
        tuple(sizes),
        tuple(test.rows[size][0] for size in sizes),
    )
