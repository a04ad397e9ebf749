"""From the options of `collect vllm` and `collect sglang` to run directories, and what is said at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from analyzer import units
from analyzer.errors import UsageError
from collectors.servers import run_record
from collectors.servers.engine import Engine, Plan, address, by_name, endpoints, without_password
from collectors.servers.hf_config import dimensions
from collectors.servers.http import Access
from collectors.servers.options import api_key, command_line, json_object, layout, told
from collectors.servers.prompts import load_of
from collectors.servers.session import Request, Server, record


def collect_from_servers(engine: Engine, options: Mapping[str, Any], *, by_stage: bool = False) -> None:
    """Profile servers, write their run directories and say where they are.

    Args:
        engine: kind of the servers.
        options: values of `server_options` by name.
        by_stage: record prefill and decode apart.

    Raises:
        ShardscopeError: what was wrong; whatever could be written was written.
        KeyboardInterrupt: the user broke off.
    """
    request = _request(options, by_stage=by_stage)
    with told() as tell:
        servers, turns = record(engine, request, tell)
        folders = run_record.write(engine.name, request, servers, turns)
    for server in servers:
        _say(server)
    for folder in folders:
        click.echo(f"Wrote {folder}", err=True)
    if failed := sum(bool(answer.fault) for answer in turns.profiled):
        first = next(answer.fault for answer in turns.profiled if answer.fault)
        click.echo(f"{failed} of {units.count(len(turns.profiled), 'request')} failed; the first: {first}", err=True)
    if turns.fault:
        raise turns.fault


def _request(options: Mapping[str, Any], *, by_stage: bool) -> Request:
    servers = endpoints(options["urls"])
    trace_dirs = by_name(options["trace_dirs"], "--trace-dir")
    if unknown := sorted(trace_dirs.keys() - {server.name for server in servers}):
        raise UsageError(
            f"--trace-dir for {unknown[0] or 'a server without a name'}, but --url names "
            f"{', '.join(server.name or 'no server' for server in servers)}"
        )
    router = address(options["router"]) if options["router"] else ""
    return Request(
        endpoints=servers,
        router=router,
        out=options["out"],
        load=load_of(options),
        plan=Plan(options["steps"], options["skip_steps"], by_stage=by_stage),
        trace_dirs=trace_dirs,
        layout=layout(options["layout"]),
        model=dimensions(json_object(options["model_config"])),
        access=Access(api_key(options["api_key_env"]), options["timeout_s"]),
        with_reference=options["reference"],
        force=options["force"],
        command=without_password(command_line()),
    )


def _say(server: Server) -> None:
    name = f"{server.endpoint.name}: " if server.endpoint.name else ""
    for what, why in server.absent.items():
        click.echo(f"{name}no {what}: {why}", err=True)
    if server.files:
        traces = units.count(_traces(server), "trace")
        n_bytes = sum(path.stat().st_size for path in server.files)
        expected = server.identity.ranks
        of = f" of {expected}" if expected and _traces(server) < expected else ""
        click.echo(f"{name}{traces}{of}, {units.size(n_bytes)}", err=True)


def _traces(server: Server) -> int:
    return sum(".json" in path.name and ".async_llm." not in path.name for path in server.files)
