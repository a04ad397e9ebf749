"""`shardscope pd`: is prefill/decode disaggregation worth its transfer?"""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import emit, file_options
from analyzer.cli.page import page

RUN = click.Path(path_type=Path)
_GIGABIT_BYTES = 125_000_000


@click.command()
@click.option("--prefill", required=True, metavar="RUN", type=RUN, help="Run with the prefill ranks.")
@click.option("--decode", required=True, metavar="RUN", type=RUN, help="Run with the decode ranks; may be the same.")
@click.option("--colocated", metavar="RUN", type=RUN, help="The same load on ranks that prefill and decode.")
@click.option("--link-gbps", type=click.FloatRange(0, min_open=True), metavar="GBIT", help="Line rate in Gbit/s.")
@click.option("--log", metavar="FILE", type=RUN, help="Log of the engine that moves the keys and values.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@file_options()
def command(  # noqa: PLR0917 (a command has as many arguments as options)
    prefill: Path,
    decode: Path,
    colocated: Path | None,
    link_gbps: float | None,
    log: Path | None,
    form: str,
    out: Path | None,
    force: bool,
) -> None:
    """Lay out how prefill hands over to decode, and weigh it: gain of separate phases against transfer and locality.

    Each hand-over is split into prefill, KV transfer that nothing hides, prompt computed again, queue, handshake,
    unexplained, and first decode step; the terms add up exactly. The verdict needs --colocated. It also says when the
    decode side computes prompts again, when nothing is transferred, what bounds the transfer, and which pool is full.

    A run directory's run.json says the role: one for the run, or one for each rank.
    """
    from analyzer.cli.runs import runs_of  # noqa: PLC0415 (--help stays fast)
    from analyzer.ingest.transfer_log import read_transfer_log  # noqa: PLC0415
    from analyzer.pd.pd import pd  # noqa: PLC0415
    from analyzer.render import pd as _pd  # noqa: PLC0415
    from analyzer.render.safe import safe  # noqa: PLC0415

    runs = runs_of([path for path in (prefill, decode, colocated) if path is not None])
    together = runs[colocated] if colocated else None
    link_bytes_per_s = link_gbps * _GIGABIT_BYTES if link_gbps else None
    logged = read_transfer_log(log) if log else None
    result = safe(pd(runs[prefill], runs[decode], together, link_bytes_per_s, logged))
    width, color = page(out)
    rendered = {
        "text": lambda: _pd.to_text(result, width, color=color),
        "json": lambda: _pd.to_json(result),
        "markdown": lambda: _pd.to_markdown(result),
    }
    emit(rendered[form](), out, force=force)
