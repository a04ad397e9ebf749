"""`shardscope collect vllm`: traces, metrics and facts of running vLLM servers under a load, or of an offline LLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from analyzer.errors import UsageError
from collectors.servers.options import CLIENTS, json_object, need, server_options


@click.command()
@server_options
@click.option("--offline", metavar="MODEL", help="Run this model in an LLM of this process instead of --url.")
@click.option("--engine-args", metavar="FILE", type=click.Path(path_type=Path), help="JSON arguments of that LLM.")
def command(*, offline: str | None, engine_args: Path | None, **options: Any) -> None:  # noqa: ANN401 -- click's
    """Profile running vLLM servers under a load.

    \b
    One server:           --url http://127.0.0.1:8000
    Prefill and decode:   --url prefill=http://a:8000 --url decode=http://b:8000
    Replicas:             --url w0=http://a:8000 --url w1=http://b:8000 --router http://r:8080

    Start each server with --profiler-config.profiler torch and --profiler-config.torch_profiler_dir DIR; with
    VLLM_SERVER_DEV_MODE=1 it also tells its layout and where it writes.
    """  # noqa: D301 -- click keeps the lines after its mark \b
    if bool(offline) == bool(options["urls"]):
        raise UsageError("give either --url or --offline MODEL")
    if offline:
        need(("vllm",))
        from collectors.servers.vllm_offline import collect_offline  # noqa: PLC0415 -- not for --help

        collect_offline(offline, json_object(engine_args), options)
        return
    need(CLIENTS)
    from collectors.servers.collect import collect_from_servers  # noqa: PLC0415 -- not for --help
    from collectors.servers.vllm_server import VllmServer  # noqa: PLC0415 -- not for --help

    collect_from_servers(VllmServer(), options)
