"""`shardscope collect topology`: where ranks, devices, NICs and memory are, as topology.json."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path

import click

from analyzer.errors import RunNotFoundError, TraceFormatError, UsageError
from collectors.hosts import linux
from collectors.hosts.fabric import Placement
from collectors.hosts.snapshot import PARSERS, RANK_TABLE, SCHEMA, Snapshot
from collectors.hosts.topology_xml import lstopo_host

FILE_NAME = "topology.json"


@click.command()
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write topology.json into; else stdout.")
@click.option("--host", help="Name of this host, or of the host that printed --from.")
@click.option("--pid", "pids", multiple=True, metavar="[RANK=]PID", help="Record where this process runs.")
@click.option("--workers", is_flag=True, help="Record every vLLM and SGLang worker process of this host.")
@click.option("--nccl-topo", type=click.Path(path_type=Path), help="File that NCCL_TOPO_DUMP_FILE named.")
@click.option("--rank-table", type=click.Path(path_type=Path), help="Ascend rank table (hccl.json).")
@click.option("--from", "recorded", multiple=True, type=click.Path(path_type=Path), help="Read recorded text instead.")
@click.option("--as", "tools", multiple=True, type=click.Choice([*PARSERS, RANK_TABLE]), help="What printed --from.")
@click.option("--force", is_flag=True, help="Replace what topology.json says of this host.")
def command(
    *,
    out: Path | None,
    host: str | None,
    pids: tuple[str, ...],
    workers: bool,
    nccl_topo: Path | None,
    rank_table: Path | None,
    recorded: tuple[Path, ...],
    tools: tuple[str, ...],
    force: bool,
) -> None:
    """Record GPUs, NICs, NUMA nodes, the links between them, and where ranks run.

    Run it on each node with the same --out on a shared file system: each run adds its node.
    """
    if len(recorded) != len(tools):
        raise UsageError(f"{len(recorded)} --from and {len(tools)} --as; give one --as for each --from, in order")
    if recorded and (pids or workers):
        raise UsageError("--from reads recorded text, --pid and --workers this host's processes: use one at a time")
    files = dict(zip(tools, recorded, strict=True))
    files |= {tool: path for tool, path in (("nccl", nccl_topo), (RANK_TABLE, rank_table)) if path}
    texts = {tool: _text(path) for tool, path in files.items()}
    snapshot = Snapshot()
    if not recorded:
        snapshot.probe_tools()
        snapshot.probe_linux(_by_rank(pids, workers=workers))
    snapshot.read(texts)
    name = _host(host, texts, is_local=not recorded)
    hosts = {name: snapshot.as_json()} if name else {}
    if out:
        click.echo(f"Wrote {_add(out / FILE_NAME, hosts, _ranks(snapshot.placements), force=force)}", err=True)
    else:
        click.echo(_document(hosts, _ranks(snapshot.placements)))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise RunNotFoundError(f"{path}: {error.strerror}; give the file that holds the tool's output") from error


def _by_rank(pids: tuple[str, ...], *, workers: bool) -> dict[str, int]:
    """PIDs by rank; 'pid N' stands for the rank where it was not given."""
    by_rank: dict[str, int] = {}
    for text in pids:
        rank, _, pid = text.rpartition("=")
        if not pid.isdigit() or (rank and not rank.isdigit()):
            raise UsageError(f"--pid {text}: expected PID or RANK=PID, for example --pid 0=4711")
        by_rank[rank or f"pid {pid}"] = int(pid)
    if workers:
        by_rank |= {f"pid {pid}": pid for pid in linux.engine_processes(Path("/proc"))}
    return by_rank


def _host(given: str | None, texts: Mapping[str, str], *, is_local: bool) -> str:
    if given or is_local:
        return given or socket.gethostname()
    if name := lstopo_host(texts["lstopo"]) if "lstopo" in texts else "":
        return name
    if set(texts) == {RANK_TABLE}:
        return ""
    raise UsageError("--from needs --host NAME: the text does not say which machine printed it")


def _ranks(placements: tuple[Placement, ...]) -> dict[str, object]:
    """Places by rank; by 'group/rank' where the table has server groups, each of which counts from 0."""
    return {
        f"{placement.group}/{placement.rank}" if placement.group else str(placement.rank): {
            "node": placement.node,
            "device": placement.device,
        }
        | {name: text for name in ("address", "super_pod") if (text := getattr(placement, name))}
        for placement in placements
    }


def _document(hosts: Mapping[str, object], ranks: Mapping[str, object]) -> str:
    return json.dumps({"schema": SCHEMA, "hosts": hosts} | ({"ranks": ranks} if ranks else {}), indent=2)


def _add(path: Path, hosts: Mapping[str, object], ranks: Mapping[str, object], *, force: bool) -> Path:
    """Write hosts and ranks, keeping what the file says of others.

    Raises:
        UsageError: the file speaks of such a host already and `force` is not set; or it cannot be written.
        TraceFormatError: the file is there and is no topology.json.
    """
    if path.is_file():
        try:
            old = json.loads(path.read_text())
            known = dict(old["hosts"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise TraceFormatError(f"{path}: not a topology.json ({error!r}); move it away") from error
        if (twice := sorted(known.keys() & hosts.keys())) and not force:
            raise UsageError(f"{path} has {', '.join(twice)} already; pass --force to replace it")
        hosts, ranks = {**known, **hosts}, {**old.get("ranks", {}), **ranks}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_document(hosts, ranks) + "\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); give another directory with --out") from error
    return path
