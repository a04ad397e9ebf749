"""The one door to Holistic Trace Analysis (module `hta`, distribution `traceinsight`): a second opinion on a run.

It runs in processes of its own: it configures the root logger, prints, and holds about five times a file's size in
memory, which this process should neither inherit nor die of.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from analyzer.errors import UsageError
from analyzer.ingest.events.device import WORK
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.model.trace import Trace

DISTRIBUTION = "traceinsight"
AT_ONCE = 4
"""Processes; each holds a whole file as rows (measured: 4.9 GB for 1 GB of JSON)."""
STEPS = ("ProfilerStep#", "execute_context_", "execute_new_", "step[")
"""Annotations that cut a piece for the critical path: torch's own, vLLM's, SGLang's."""
WHOLE_TRACE = 100_000
"""Device entries up to which a trace without steps is searched as a whole: the graph has several nodes for each."""
LONGEST = 5
REASON = 120
"""Characters of an error's text that are passed on; some quote whole columns."""
FAULTS = (AssertionError, AttributeError, EOFError, IndexError, KeyError, OSError, TypeError, ValueError)
"""What it has been seen to stop with: lists at top level (AttributeError), no kernels (IndexError), no events
(KeyError), columns that pandas 3 does not widen (TypeError), gzip cut short (EOFError), damaged JSON (ValueError)."""
PANDAS_3 = "Invalid value"
"""In the text of that TypeError; traceinsight 0.6.1 writes row numbers into a column narrowed to 16 bits."""

Opinion = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Job:
    """One rank's file; `annotation` and `instance` cut the piece whose critical path is wanted, None for no path."""

    rank: int
    path: str
    folder: str
    annotation: str | None = None
    instance: int = 0
    refused: str = ""


def second_opinion(run: Run) -> dict[str, object]:
    """What Holistic Trace Analysis says of the same files, as JSON can hold it.

    Its rounding to whole microseconds is off (it makes short kernels negative), its cut of the last step too.
    Compute there is every kernel that is neither NCCL, HCCL nor a copy by name; non-compute is the rest of busy time.

    Returns:
        `tool`: distribution and version.
        `breakdown`: one object a rank with `rank` and either `unknown` (the reason) or `window_ns`, `compute_ns`,
        `non_compute_ns`, `idle_ns`, `device_entries` (that it kept), `other_entries` (host operations and waits that
        it takes for device work) and `entries_read` (device entries that this reader found).
        `critical_path`: `rank` (the one with the least time in collectives: the others wait for it), `annotation`
        ("" for the whole trace), and either `unknown` or `length_ns`, `bound_ns` (its class → time) and `longest`
        (list of `name`, `time_ns`).

    Raises:
        UsageError: it is not installed.
    """
    try:
        tool = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
    except PackageNotFoundError as error:
        raise UsageError(
            "--second-opinion hta: Holistic Trace Analysis is not installed; pip install 'shardscope[hta]'"
        ) from error
    with TemporaryDirectory(prefix="shardscope-hta-") as folder:
        sharing = Counter(trace.origin.path for trace in run.traces)
        jobs = [_job(trace, folder, sharing[trace.origin.path]) for trace in run.traces]
        chosen = _chosen(run, jobs)
        jobs[chosen] = _with_path(jobs[chosen], run.traces[chosen])
        opinions = _ask(jobs)
    rows = [
        {"rank": trace.rank, **opinion["breakdown"], "entries_read": len(trace.activities)}
        for trace, opinion in zip(run.traces, opinions, strict=True)
    ]
    path = {"rank": run.traces[chosen].rank, "annotation": jobs[chosen].annotation or ""}
    return {"tool": tool, "breakdown": rows, "critical_path": path | opinions[chosen]["critical_path"]}


def _job(trace: Trace, folder: str, in_file: int) -> _Job:
    refused = ""
    if trace.origin.device == "cpu":
        refused = "a trace without device work: it reads kernels only"
    elif in_file > 1:
        refused = "several ranks share one file, which it takes for one rank"
    return _Job(trace.rank, trace.origin.path, folder, refused=refused)


def _chosen(run: Run, jobs: list[_Job]) -> int:
    """Index of the rank that the others wait for: it spends the least time in collectives."""
    times = [
        (bool(job.refused), trace.activities.busy(Kind.COMMUNICATION).total_ns)
        for job, trace in zip(jobs, run.traces, strict=True)
    ]
    return times.index(min(times))


def _with_path(job: _Job, trace: Trace) -> _Job:
    """The job with the step in the middle, past the warm-up, as the piece to search."""
    names = trace.annotations.name
    for start in STEPS:
        rows = np.flatnonzero(np.array([name.startswith(start) for name in names.values] or [False])[names.codes])
        if rows.size:
            middle = rows[rows.size // 2]
            earlier = rows[: rows.size // 2]
            return replace(
                job, annotation=names[middle], instance=int(np.sum(names.codes[earlier] == names.codes[middle]))
            )
    return job if len(trace.activities) > WHOLE_TRACE else replace(job, annotation="")


def _ask(jobs: list[_Job]) -> list[dict[str, Opinion]]:
    workers = min(os.cpu_count() or 1, AT_ONCE, len(jobs))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_silence) as pool:
        asked = [None if job.refused else pool.submit(_opinion, job) for job in jobs]
        return [_answer(job, future) for job, future in zip(jobs, asked, strict=True)]


def _answer(job: _Job, asked: Future[dict[str, Opinion]] | None) -> dict[str, Opinion]:
    if asked is None:
        return {"breakdown": {"unknown": job.refused}, "critical_path": {"unknown": job.refused}}
    try:
        return asked.result()
    except BrokenProcessPool:
        killed = {"unknown": "its process was killed, most likely for want of memory"}
        return {"breakdown": killed, "critical_path": killed}


def _silence() -> None:
    """Send what this process and everything in it prints to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _opinion(job: _Job) -> dict[str, Opinion]:
    """One rank's figures, in a process of its own."""
    from hta.common.trace import Trace as HtaTrace  # noqa: PLC0415 (2 s and an optional package)
    from hta.configs.env_options import HTAEnvOptions  # noqa: PLC0415

    HTAEnvOptions.instance().set_disable_ns_rounding(True)
    try:
        held = HtaTrace({job.rank: _named_for_it(job)})
        held.load_traces(include_last_profiler_step=True, use_multiprocessing=False)
        breakdown = _breakdown(held, job.rank)
    except FAULTS as fault:
        unknown = _stopped(fault)
        return {"breakdown": unknown, "critical_path": unknown}
    try:
        return {"breakdown": breakdown, "critical_path": _critical_path(held, job)}
    except FAULTS as fault:
        return {"breakdown": breakdown, "critical_path": _stopped(fault)}


def _named_for_it(job: _Job) -> str:
    """Path of the file under a name that ends as its content demands: it goes by `.gz` and `.json` alone."""
    path = Path(job.path).resolve()
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if path.name.endswith(".gz" if packed else ".json"):
        return str(path)
    link = Path(job.folder) / f"rank{job.rank}.json{'.gz' if packed else ''}"
    link.symlink_to(path)
    return str(link)


def _stopped(fault: Exception) -> Opinion:
    text = " ".join(str(fault).split())
    cure = "; pip install 'pandas<3' cures it" if isinstance(fault, TypeError) and PANDAS_3 in text else ""
    return {"unknown": f"it stopped with {type(fault).__name__}: {text[:REASON]}{cure}"}


def _breakdown(held: Any, rank: int) -> Opinion:  # noqa: ANN401 (its own type)
    from hta.analyzers.breakdown_analysis import BreakdownAnalysis  # noqa: PLC0415

    row = BreakdownAnalysis.get_temporal_breakdown(held, visualize=False).iloc[0]
    names = held.symbol_table.get_sym_table()
    table = held.get_trace(rank)
    kept = table[table["stream"].ne(-1)].drop_duplicates("index")
    work = sum(names[code].lower() in WORK for code in kept["cat"])
    return {
        "window_ns": _ns(row["kernel_time(us)"]),
        "compute_ns": _ns(row["compute_time(us)"]),
        "non_compute_ns": _ns(row["non_compute_time(us)"]),
        "idle_ns": _ns(row["idle_time(us)"]),
        "device_entries": work,
        "other_entries": len(kept) - work,
    }


def _critical_path(held: Any, job: _Job) -> Opinion:  # noqa: ANN401 (its own type)
    from hta.analyzers.critical_path_analysis import CriticalPathAnalysis  # noqa: PLC0415

    if job.annotation is None:
        return {"unknown": f"no annotation of a step, and more than {WHOLE_TRACE:,} device entries"}
    analysis = CriticalPathAnalysis.critical_path_analysis(held, job.rank, job.annotation, job.instance)
    edges = analysis[0].get_critical_path_breakdown() if analysis and analysis[1] else None
    if edges is None:
        return {"unknown": "its graph of dependencies has a cycle, or an edge against time"}
    bound = edges.groupby("bound_by")["duration"].sum()
    longest = edges.groupby("s_name")["duration"].sum().nlargest(LONGEST)
    return {
        "length_ns": _ns(edges["duration"].sum()),
        "bound_ns": {str(name): _ns(time_us) for name, time_us in bound.items() if name},
        "longest": [{"name": str(name), "time_ns": _ns(time_us)} for name, time_us in longest.items()],
    }


def _ns(time_us: Any) -> int:  # noqa: ANN401 (numpy's or Python's number)
    return round(1000 * float(time_us))
