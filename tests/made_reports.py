"""Reports made by hand for comparisons: two ranks, decode and prefill steps, one collective."""

from analyzer.schema.breakdown import BreakdownTables, Hidden, RankBreakdown, StepKind, SyncCauses
from analyzer.schema.report import ClockFacts, CollectiveRow, FindingEvidence, FindingRow, Report, RunFacts, Tool

MS = 1_000_000


def step(kind="decode", compute=8.0, communication=1.0, movement=0.2, sync=0.8, count=100, requests=8):
    """Steps of so many milliseconds a term, one after another."""
    terms = {"compute": compute, "communication": communication, "movement": movement, "sync": sync}
    terms = {term: round(time * MS) for term, time in terms.items()}
    span = sum(terms.values())
    return StepKind(kind, "annotation", count, span, span, span, terms, {}, requests, requests)


def rank(number=0, compute=800.0, communication=100.0, movement=20.0, sync=80.0, hidden=0.0, subclasses=None):
    """A rank's window of so many milliseconds a term; waiting is for launches."""
    times = [round(time * MS) for time in (compute, communication, movement, sync)]
    classes = {"gemm": times[0], "all_reduce": times[1], "kv_write": times[2]} if subclasses is None else subclasses
    return RankBreakdown(
        number,
        sum(times),
        *times,
        Hidden(round(hidden * MS), 0),
        SyncCauses(0, 0, times[3], 0, 0, 0),
        classes,
        0,
        sum(times[:3]),
    )


def collective(calls=6400, message=16384, level="nvlink", median_us=20.0, group=(0, 1), dimension="tp"):
    return CollectiveRow(
        list(group), dimension, "all_reduce", calls, message, round(median_us * 1000), None, None, level=level
    )


def finding(code="Q301", severity="warning"):
    evidence = FindingEvidence([0], [], [])
    return FindingRow(
        code, "a-finding", severity, 3, None, f"{code} says so", 1, 1, 0.1, "measured", evidence, ["do it"], ""
    )


def report(label="run", *, steps=None, ranks=None, collectives=None, findings=(), extra=None, **facts):
    """One run's report; `facts` are fields of its run."""
    known = {
        "ranks": [0, 1],
        "world_size": 2,
        "layout": {"tp": 2, "pp": 1, "source": "declared"},
        "engine": "vllm",
        "role": "decode",
        "devices": ["NVIDIA H100"],
        "versions": {"vllm": "0.32.0"},
        "settings": {"batch": 8, "port": 8000},
        **facts,
    }
    run = RunFacts(
        label=label, layout_evidence={}, nodes=1, clock=ClockFacts("shared", 0), warnings=[], wait_method="", **known
    )
    tables = BreakdownTables(
        [rank(0), rank(1)] if ranks is None else list(ranks), [step()] if steps is None else list(steps)
    )
    rows = [collective()] if collectives is None else list(collectives)
    return Report(1, Tool("shardscope", "0"), run, tables, rows, [], [], list(findings), [], extra=dict(extra or {}))
