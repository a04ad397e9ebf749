"""Ascend's own Overlap Analysis, rows of the same file, as the oracle for our columns of NPU traces.

The vendor's Computing is every task of the cores: layout conversions and fills too, which are movement here. Its
window opens with the first of these; copies by the DMA engines are no part of it, and what they alone fill is Free.
Communication is the span of each collective, waiting included.
"""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from analyzer.ingest.load import load
from analyzer.intervals import Intervals
from analyzer.measures.breakdown import breakdown
from analyzer.model.kind import Kind

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the fetched trace corpus is not at hand; it is never committed"),
]
MINDSPORE = "mindspore_910_2device/device_*/msprof_*_3.json"
"""The third iteration on both devices; `task_time_*` and `hccl_*` beside these files hold parts of them again."""
RANKS = [
    ("ascend_level0_2rank", 0),
    ("ascend_level0_2rank", 1),
    ("ascend_level1_2rank", 0),
    ("ascend_level1_2rank", 1),
    (MINDSPORE, 0),
    (MINDSPORE, 1),
]
each_rank = pytest.mark.parametrize(("name", "rank"), RANKS)
DMA = "MEMCPY_ASYNC"
COLLECTIVE_STEP = "REDUCE_ASYNC"
"""MindSpore's files list these tasks of a collective beside its own row."""


def ns(value):
    """Microseconds as the file writes them, text or number, in whole nanoseconds."""
    return round(Decimal(str(value)) * 1_000)


class Vendor:
    """Rows of the Overlap Analysis of one file."""

    def __init__(self, path):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        events = json.loads(text)
        own = {
            row["pid"] for row in events if row["name"] == "process_name" and row["args"]["name"] == "Overlap Analysis"
        }
        self.rows = [row for row in events if row["ph"] == "X" and row["pid"] in own]

    def time(self, name):
        rows = [row for row in self.rows if row["name"] == name]
        start = np.array([ns(row["ts"]) for row in rows], np.int64)
        return Intervals.from_arrays(start, start + np.array([ns(row["dur"]) for row in rows], np.int64))

    def approx(self, name):
        """The total, within a nanosecond a row: each row is rounded for itself."""
        return pytest.approx(self.time(name).total_ns, abs=sum(row["name"] == name for row in self.rows), rel=0)


class Here:
    """Our columns of one rank, summed up the vendor's way."""

    def __init__(self, name, rank):
        run = load(str(CORPUS / name))
        self.trace, self.part = run.traces[rank], breakdown(run)[rank]
        activities = self.trace.activities
        self.vendor = Vendor(Path(self.trace.origin.path))
        communicates = activities.kind == Kind.COMMUNICATION
        copied = activities.name.where(lambda name: name == DMA)
        steps = activities.name.where(lambda name: name.startswith(COLLECTIVE_STEP))
        self.on_cores = activities.take(~communicates & ~copied)
        self.cores = self.on_cores.union()
        self.collectives = activities.take(communicates & ~steps).union()
        self.steps = activities.take(steps).union()
        self.copies = activities.take(copied).union()
        self.window = Intervals.single(int(self.busy.start_ns[0]), int(self.busy.end_ns[-1]))

    @property
    def busy(self):
        return self.cores | self.collectives


@each_rank
def test_computing_is_what_our_tasks_of_the_cores_fill(name, rank):
    here = Here(name, rank)
    assert here.cores.total_ns == here.vendor.approx("Computing")


@each_rank
def test_communication_is_what_our_collectives_fill(name, rank):
    here = Here(name, rank)
    assert here.collectives.total_ns == here.vendor.approx("Communication")


@each_rank
def test_communication_not_overlapped_is_what_our_collectives_add_to_the_cores(name, rank):
    here = Here(name, rank)
    assert (here.collectives - here.cores).total_ns == here.vendor.approx("Communication(Not Overlapped)")


@each_rank
def test_free_is_what_our_cores_and_collectives_leave(name, rank):
    here = Here(name, rank)
    assert (here.window - here.busy).total_ns == here.vendor.approx("Free")


@pytest.mark.parametrize(
    ("name", "rank", "compute_ns", "converting_ns"),
    [
        ("ascend_level0_2rank", 0, 6_577_004, 2_250_450),
        ("ascend_level0_2rank", 1, 6_592_343, 2_220_811),
        ("ascend_level1_2rank", 0, 6_588_101, 2_285_636),
        ("ascend_level1_2rank", 1, 6_605_703, 2_272_572),
        (MINDSPORE, 0, 4_490_030, 1_456_570),
        (MINDSPORE, 1, 4_467_200, 1_484_040),
    ],
)
def test_computing_beyond_our_compute_is_layout_conversions_and_fills(name, rank, compute_ns, converting_ns):
    here = Here(name, rank)
    moved = here.on_cores.of_kind(Kind.MOVEMENT)
    assert here.part.compute.total_ns == compute_ns
    assert (moved.union() - here.part.compute).total_ns == converting_ns
    assert {moved.subclass[row] for row in range(len(moved))} == {"layout_copy", "fill"}
    assert compute_ns + converting_ns == here.vendor.approx("Computing")


# Our window opens with the copies that feed the first step, the vendor's with the first conversion; copies that
# nothing covers are movement here. MindSpore has neither, but two steps of its collective reach beyond the row of it.
@pytest.mark.parametrize(
    ("name", "rank", "idle_ns", "lead_ns", "copying_ns", "beyond_ns"),
    [
        ("ascend_level0_2rank", 0, 29_355_299, 4_456_810, 1_009_620, 0),
        ("ascend_level0_2rank", 1, 30_806_184, 4_531_351, 898_118, 0),
        ("ascend_level1_2rank", 0, 29_474_319, 4_583_391, 853_137, 0),
        ("ascend_level1_2rank", 1, 30_665_885, 5_275_986, 1_285_385, 0),
        (MINDSPORE, 0, 118_410, 0, 0, 2_390),
        (MINDSPORE, 1, 120_080, 0, 0, 1_940),
    ],
)
def test_our_idle_time_is_free_and_the_lead_without_bare_copies(name, rank, idle_ns, lead_ns, copying_ns, beyond_ns):
    here = Here(name, rank)
    covered = here.busy | here.steps
    assert here.part.window.total_ns - here.part.device_busy_ns == idle_ns
    assert int(here.window.start_ns[0] - here.part.window.start_ns[0]) == lead_ns
    assert (here.copies - covered).total_ns == copying_ns
    assert (here.steps - here.busy).total_ns == beyond_ns
    assert idle_ns - lead_ns + copying_ns + beyond_ns == here.vendor.approx("Free")
