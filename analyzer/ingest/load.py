"""load(path, …) → Run: the only door."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import cpu_count
from pathlib import Path

from analyzer.errors import RunNotFoundError, TraceFormatError
from analyzer.ingest.events.assemble import read_traces
from analyzer.ingest.filenames import FileIdentity
from analyzer.ingest.folder import RunFiles, find
from analyzer.ingest.hardware import read_hardware
from analyzer.ingest.kineto.detail import Detail
from analyzer.ingest.layout.claims import engine_of
from analyzer.ingest.layout.layout import guess
from analyzer.ingest.manifest import Manifest, read_manifest
from analyzer.ingest.scrapes import growth
from analyzer.ingest.server_args import ServerArgs, read_server_args, server_role
from analyzer.ingest.sessions import UNRANKED, one_run
from analyzer.ingest.topology import read_topology
from analyzer.model.hardware import Hardware
from analyzer.model.run import Run
from analyzer.model.topology import Topology
from analyzer.model.trace import Note, Trace
from analyzer.model.workload import Workload
from analyzer.units import count

WORTH_A_PROCESS_BYTES = 20_000_000
"""Of a file, compressed or not: starting a process takes as long as reading a tenth of this."""

NO_WORK = "no device work and no operation"

Advance = Callable[[int, int], None]
Traces = tuple[Trace, ...]


def load(*places: str | Path, detail: Detail = Detail.DEVICE, advance: Advance | None = None) -> Run:
    """The run that lies at one or several places.

    Args:
        places: directories, files or globs that belong together.
        detail: how much of each trace is read.
        advance: called with files done and files in all.

    Raises:
        RunNotFoundError: nothing there that could be a trace, or no trace with any work.
        TraceFormatError: the one file that was named is no trace; or run.json is wrong.
    """
    files = find(tuple(str(pattern) for pattern in places))
    notes = list(files.notes)
    traces: list[Trace] = []
    for done, (path, outcome) in enumerate(_read_all(files, detail), start=1):
        if isinstance(outcome, str):
            notes.append(Note(f"left out {outcome}"))
        else:
            working = [trace for trace in outcome if len(trace.activities)]
            traces += working
            if not working:
                notes.append(Note(f"{path.name}: {NO_WORK}, left out"))
        if advance:
            advance(done, len(files.files))
    label = os.fsencode(", ".join(map(str, places))).decode(errors="replace")  # a name on disk need not be UTF-8
    if not traces:
        raise RunNotFoundError(_nothing(label, files, notes))
    ranked, session_notes = one_run(_by_folder(traces, files))
    return _run(label, ranked, files, (*notes, *session_notes))


def _run(label: str, traces: tuple[Trace, ...], files: RunFiles, notes: tuple[Note, ...]) -> Run:
    manifest = read_manifest(files.manifest) if files.manifest else None
    server_args = read_server_args(files.server_args) if files.server_args else None
    layout, layout_notes = guess(traces, manifest.layout if manifest else None, server_args)
    if manifest and not manifest.complete:
        notes = (*notes, Note("run.json says that the collector was broken off: steps may be missing"))
    topology = manifest.topology if manifest and manifest.topology.node_of else _placed(traces)
    topology_notes: tuple[Note, ...] = ()
    if files.topology:
        topology, topology_notes = read_topology(files.topology, traces, topology)
    return Run(
        label,
        traces,
        layout,
        topology,
        _scraped(_workload(traces, manifest, server_args), files),
        (*notes, *layout_notes, *topology_notes),
        read_hardware(files.hardware) if files.hardware else Hardware(),
    )


def _read_all(files: RunFiles, detail: Detail) -> Iterator[tuple[Path, Traces | str]]:
    """Each file's trace, or why it is none; large files one process each."""
    jobs = [(path, stated, detail) for path, stated in files.files]
    outcomes: Iterator[Traces | TraceFormatError]
    workers = min(cpu_count() or 1, sum(path.stat().st_size >= WORTH_A_PROCESS_BYTES for path, _ in files.files))
    if workers < 2:  # noqa: PLR2004 (one process is this one)
        outcomes = map(_read_one, jobs)
        yield from zip((path for path, _, _ in jobs), _or_raise(outcomes, named=files.named), strict=True)
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 (20 ms, for large files only)
    from multiprocessing import get_context  # noqa: PLC0415

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        outcomes = pool.map(_read_one, jobs)
        yield from zip((path for path, _, _ in jobs), _or_raise(outcomes, named=files.named), strict=True)


def _or_raise(outcomes: Iterator[Traces | TraceFormatError], *, named: bool) -> Iterator[Traces | str]:
    for outcome in outcomes:
        if isinstance(outcome, TraceFormatError):
            if named:
                raise outcome
            yield str(outcome)
        else:
            yield outcome


def _read_one(job: tuple[Path, FileIdentity, Detail]) -> Traces | TraceFormatError:
    try:
        return read_traces(*job)
    except TraceFormatError as fault:
        return fault


def _by_folder(traces: list[Trace], files: RunFiles) -> list[Trace]:
    """Traces that state no rank take the numbers that end their folders' names, where these tell all of them apart."""
    numbers = {str(path): stated.folder_number for path, stated in files.files}
    unranked = [trace for trace in traces if trace.rank == UNRANKED]
    folder_numbers = [numbers[trace.origin.path] for trace in unranked]
    if None in folder_numbers or len(set(folder_numbers)) < len(folder_numbers):
        return traces
    return [
        replace(trace, rank=numbers[trace.origin.path] or 0) if trace.rank == UNRANKED else trace for trace in traces
    ]


def _placed(traces: tuple[Trace, ...]) -> Topology:
    """Nodes by the host names that the traces state, where all do."""
    hosts = {trace.rank: trace.origin.host for trace in traces if trace.origin.host}
    return Topology(hosts, source="metadata") if len(hosts) == len(traces) else Topology()


def _workload(traces: tuple[Trace, ...], manifest: Manifest | None, server_args: ServerArgs | None) -> Workload:
    """What is declared; else what the traces and the server's arguments tell."""
    declared = manifest.workload if manifest else Workload()
    engine = declared.engine
    if engine == "unknown":
        engine = engine_of(traces) or ("sglang" if server_args else "unknown")
    stages = {trace.origin.stage for trace in traces}
    served = server_role(server_args) if server_args else ""
    return replace(declared, engine=engine, role=declared.role or served or (stages.pop() if len(stages) == 1 else ""))


def _scraped(workload: Workload, files: RunFiles) -> Workload:
    """With the growth of the metrics that lie beside the traces, where run.json does not hold it."""
    if workload.counters or files.metrics is None:
        return workload
    return replace(workload, counters=growth(*files.metrics))


def _nothing(label: str, files: RunFiles, notes: list[Note]) -> str:
    first = next((note.text for note in notes if note.text.startswith("left out ")), "")
    if first:
        return f"{label}: no trace among {count(len(files.files), 'file')}; the first was {first}"
    return f"{label}: {count(len(files.files), 'trace')} with {NO_WORK}; was the profiler on while requests ran?"
