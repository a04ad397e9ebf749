"""`shardscope sweep PATH…`: the same workload at several degrees, its optimum, and what eats the gain."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli._output import emit
from analyzer.errors import UsageError

OBJECTIVES = ("latency", "per-gpu", "total")
WIDTH = 100
"""Columns: the table of terms needs more than 80."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@click.option("--objective", type=click.Choice(OBJECTIVES), default="latency", show_default=True, help="What is best.")
@click.option("--dimension", default="tp", show_default=True, help="The axis whose degree varies: tp, pp, ep, dcp, …")
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs to fill with replicas, for --objective total.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "out", type=click.Path(path_type=Path), help="Write to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(  # noqa: PLR0917 (a command has as many arguments as options)
    paths: tuple[Path, ...], objective: str, dimension: str, gpus: int | None, form: str, out: Path | None, force: bool
) -> None:
    """Find the best degree in PATH: a CSV of measured points (degree,value_ms; a row a run).

    A column layout instead of degree compares layouts of one number of GPUs. Further columns: tokens_per_s instead
    of value_ms; compute_ms, communication_ms, movement_ms, sync_ms; steps, host_ms, calls, message_bytes, level,
    preemptions, kv_use; context, which makes a series of each length.
    """
    from analyzer.ingest.points import read_points  # noqa: PLC0415 (--help stays fast)
    from analyzer.measures.scaling import Objective  # noqa: PLC0415
    from analyzer.render._sweep_text import render  # noqa: PLC0415
    from analyzer.sweep import Ask, sweep, to_json  # noqa: PLC0415

    for path in paths:
        if path.is_dir():
            raise UsageError(f"{path} is a directory; sweep reads a CSV of points (degree,value_ms), one row a run")
    ask = Ask(dimension, Objective(objective), gpus)
    sweeps = tuple(sweep(series, ask) for path in paths for series in read_points(path))
    emit(to_json(sweeps) if form == "json" else render(sweeps, WIDTH), out, force=force)
