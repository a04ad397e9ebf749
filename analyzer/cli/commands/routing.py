"""`shardscope routing`: what KV-aware routing would make of a request log."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import emit, file_options
from analyzer.cli.page import page

_POLICIES = ("round_robin", "least_loaded", "session_sticky", "kv_aware")


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--workers", type=click.IntRange(1), required=True, metavar="N", help="Workers to replay the log on.")
@click.option(
    "--capacity", type=click.IntRange(0), default=0, metavar="BLOCKS", help="KV blocks a worker holds; 0: no limit."
)
@click.option(
    "--block-tokens", type=click.IntRange(1), default=512, show_default=True, metavar="N", help="Tokens of a block."
)
@click.option(
    "--policy", "policies", type=click.Choice(_POLICIES), multiple=True, help="Only this one; may be repeated."
)
@click.option("--time-unit", type=click.Choice(("s", "ms", "us", "ns")), help="Unit of the log's times.")
@click.option("--prefill-ns", type=click.FloatRange(0), metavar="NS", help="Prefill time of a token.")
@click.option("--prefill-ns2", type=click.FloatRange(0), metavar="NS", help="Prefill time of a token squared.")
@click.option("--decode-ns", type=click.FloatRange(0), metavar="NS", help="Decode time of a generated token.")
@click.option("--format", "form", type=click.Choice(("text", "json", "markdown")), default="text", show_default=True)
@file_options()
def command(
    *,
    log: Path,
    workers: int,
    capacity: int,
    block_tokens: int,
    policies: tuple[str, ...],
    time_unit: str | None,
    prefill_ns: float | None,
    prefill_ns2: float | None,
    decode_ns: float | None,
    form: str,
    out: Path | None,
    force: bool,
) -> None:
    """Reuse of KV that routing achieves, could achieve, and its price, from a request log.

    LOG is JSON lines, plain or gzip: Mooncake's traces (timestamp, input_length, output_length, hash_ids), or lines
    with block_hashes, prefix_hashes, prompt_token_ids or token_ids. session_id or user, worker, and cached_tokens or
    num_cached_tokens are used where they are there.
    """
    from analyzer.cli.progress import progress  # noqa: PLC0415  # --help must not wait for numpy
    from analyzer.render import routing as _routing  # noqa: PLC0415
    from analyzer.routing.policies import ReplaySetup  # noqa: PLC0415
    from analyzer.routing.request_log import load  # noqa: PLC0415
    from analyzer.routing.routing import routing  # noqa: PLC0415
    from analyzer.routing.service import Service  # noqa: PLC0415

    given = {"prefill_ns_per_token": prefill_ns, "prefill_ns_per_token2": prefill_ns2, "decode_ns_per_token": decode_ns}
    service = Service(**{name: value for name, value in given.items() if value is not None})
    setup = ReplaySetup(workers, capacity or None, tuple(dict.fromkeys(policies)) or _POLICIES, service)
    size = log.stat().st_size
    with progress("Replaying the log") as advance:
        requests = load(
            log,
            block_tokens=block_tokens,
            time_unit=time_unit,
            tick=lambda done: advance("reading", done, size),
        )
        result = routing(requests, setup, lambda done, whole: advance("replaying", done, whole))
    width, color = page(out)
    rendered = {
        "text": lambda: _routing.to_text(result, width, color=color),
        "json": lambda: _routing.to_json(result),
        "markdown": lambda: _routing.to_markdown(result),
    }
    emit(rendered[form](), out, force=force)
