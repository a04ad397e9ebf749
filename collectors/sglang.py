"""`shardscope collect sglang`: traces, metrics and server arguments of running SGLang servers under a load."""

from __future__ import annotations

from typing import Any

import click

from analyzer.errors import UsageError
from collectors.servers.options import CLIENTS, need, server_options


@click.command()
@server_options
@click.option("--by-stage", is_flag=True, help="Record --steps of prefill and of decode, each into a run of its own.")
def command(*, by_stage: bool, **options: Any) -> None:  # noqa: ANN401 -- click's
    """Profile running SGLang servers under a load.

    \b
    One server:           --url http://127.0.0.1:30000
    Prefill and decode:   --url prefill=http://a:30000 --url decode=http://b:30000
    Replicas:             --url w0=http://a:30000 --url w1=http://b:30000 --router http://r:8080

    The server needs no flag to be profiled; start it with --enable-metrics for metrics. It writes traces to --out, or
    to --trace-dir where that is another path on its machine.
    """  # noqa: D301 -- click keeps the lines after its mark \b
    if not options["urls"]:
        raise UsageError("give --url URL of a running server, for example --url http://127.0.0.1:30000")
    need(CLIENTS)
    from collectors.servers.collect import collect_from_servers  # noqa: PLC0415 -- not for --help
    from collectors.servers.sglang_server import SglangServer  # noqa: PLC0415 -- not for --help

    collect_from_servers(SglangServer(), options, by_stage=by_stage)
