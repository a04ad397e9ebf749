"""What a collection from servers leaves beside the traces: run.json, metrics, the engine's own facts, a request log."""

from __future__ import annotations

import json
import socket
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from analyzer.ingest.filenames import identity as named
from collectors.servers import load as _load
from collectors.servers import metrics
from collectors.servers.engine import Identity, without_secrets
from collectors.servers.prompts import FIRST_TOKEN
from collectors.servers.session import Request, Server, Turns
from collectors.servers.trace_files import WORKLOAD
from collectors.workloads import manifest

REQUEST_LOG = "requests.jsonl"
METRICS_BEFORE, METRICS_AFTER = "metrics_before.prom", "metrics_after.prom"

FEWEST_REQUESTS = 3
"""Whose times between tokens give a median with a spread."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def write(engine: str, request: Request, servers: Sequence[Server], turns: Turns) -> list[Path]:
    """Write everything; the run directories that hold traces or should."""
    if turns.profiled:
        lines = _load.records(turns.profiled, turns.prompts)
        (request.out / REQUEST_LOG).write_text("".join(f"{line}\n" for line in lines))
    reference = _reference(request, turns)
    folders: list[Path] = []
    for server in servers:
        if server.before.text:
            (server.out / METRICS_BEFORE).write_text(server.before.text)
        if server.after.text:
            (server.out / METRICS_AFTER).write_text(server.after.text)
        if server.identity.info:
            facts = json.dumps(without_secrets(server.identity.info), indent=1, default=str)
            (server.out / server.identity.info_file).write_text(facts + "\n")
        for folder, stage in _by_stage(server, is_split=request.plan.by_stage):
            manifest.write(folder, _entries(engine, request, server, turns) | reference | stage)
            folders.append(folder)
    return folders


def _by_stage(server: Server, *, is_split: bool) -> list[tuple[Path, dict[str, object]]]:
    """Run directories of one server: one, or one for each stage whose traces the engine wrote apart."""
    stages = {path: named(path).stage for path in server.files} if is_split else {}
    if not any(stages.values()):
        return [(server.out, {})]
    folders: dict[Path, dict[str, object]] = {}
    for path, stage in stages.items():
        folder = server.out / (stage or "both")
        folder.mkdir(exist_ok=True)
        path.replace(folder / path.name)
        folders[folder] = {"stage": stage} if stage else {}
    server.files = [server.out / (stages[path] or "both") / path.name for path in server.files]
    return list(folders.items())


def _entries(engine: str, request: Request, server: Server, turns: Turns) -> dict[str, object]:
    identity, load = server.identity, turns.load
    changes = metrics.change(server.before, server.after) if server.after.text else {}
    entries: dict[str, object] = {
        "schema": manifest.SCHEMA,
        "complete": turns.fault is None,
        "engine": engine,
        "workload": manifest.sort(WORKLOAD, "serving", engine),
        "role": server.endpoint.role,
        "layout": _layout(server),
        "model": identity.model,
        "topology": _topology(server),
        "versions": manifest.versions(("shardscope",)) | identity.versions,
        "settings": {
            "url": server.endpoint.url,
            "router": request.router,
            "requests": load.requests,
            "concurrency": load.concurrency,
            "input_tokens": load.input_tokens,
            "output_tokens": load.output_tokens,
            "shared_prefix": load.shared_prefix,
            "seed": load.seed,
            "token_ids": f"{FIRST_TOKEN}-{load.tokens - 1}",
            **identity.settings,
        },
        "command": request.command,
        "profile": identity.profiler | {"trace_dir": identity.trace_dir, "trace_bytes": _bytes(server.files)},
        "load": {"reference": _load.summary(turns.reference), "profiled": _load.summary(turns.profiled)},
        "metrics": {"change": changes, "gauges": server.after.gauges},
        "memory": metrics.memory(server.before, server.after),
        "prefix_cache": metrics.reuse(changes),
        "kv_transfers": metrics.transfers(changes),
        "transfers": server.watch.transfers(server.before),
        "absent": server.absent,
    }
    return {name: entry for name, entry in entries.items() if entry or name == "complete"}


def _layout(server: Server) -> dict[str, int]:
    """Degrees as the server tells them; replicas as its metrics count engines, where it does not."""
    engines = len(server.after.engines)
    return ({"dp": engines} if engines > 1 else {}) | server.identity.layout


def _topology(server: Server) -> dict[str, object]:
    """The node of each rank, where the server says that all are on its own."""
    identity: Identity = server.identity
    if not identity.is_one_host or not identity.ranks:
        return {}
    name = urlsplit(server.endpoint.url).hostname or ""
    host = socket.gethostname() if name in _LOOPBACK else name
    return {"nodes": {str(rank): host for rank in range(identity.ranks)}}


def _bytes(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _reference(request: Request, turns: Turns) -> dict[str, Any]:
    """The same load without the profiler and with it; `inflation` compares tokens that the profile surely covers.

    It is absent, which means unknown, where fewer than three requests on a side tell the time between tokens.
    """
    if not turns.reference:
        return {}
    steps = request.plan.steps
    tokens = request.plan.skip_steps + steps // 2 if steps else turns.load.output_tokens
    entry: dict[str, int | float] = {"requests": len(turns.reference), "early_tokens": tokens}
    early: dict[str, list[float]] = {}
    for prefix, answers in (("", turns.reference), ("profiled_", turns.profiled)):
        times = _load.summary(answers)
        for name in ("ttft_ns", "itl_ns", "tpot_ns", "request_ns"):
            quantiles = times[name]
            if isinstance(quantiles, dict) and quantiles:
                entry[f"{prefix}{name.removesuffix('_ns')}_median_ns"] = quantiles["median"]
        paces = _load.paces_ns(answers, turns.load.concurrency, tokens)
        if len(paces) >= FEWEST_REQUESTS:
            early[prefix] = statistics.quantiles(paces, n=4, method="inclusive")
            entry[f"{prefix}early_itl_median_ns"] = round(early[prefix][1])
    if len(early) > 1:
        low, middle, high = early[""]
        profiled_low, profiled_middle, profiled_high = early["profiled_"]
        entry["inflation"] = round(profiled_middle / middle, 3)
        entry["inflation_low"], entry["inflation_high"] = round(profiled_low / high, 3), round(profiled_high / low, 3)
    return {"reference": entry}
