"""`shardscope sweep PATH…`: the same workload at several degrees, its optimum, and what eats the gain."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import emit, file_options
from analyzer.errors import UsageError
from analyzer.sweep.point import PointSeries

FORMATS = ("text", "json", "markdown", "html")
OBJECTIVES = ("latency", "per-gpu", "total")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@click.option("--objective", type=click.Choice(OBJECTIVES), default="latency", show_default=True, help="What is best.")
@click.option(
    "--dimension", default="tp", show_default=True, help="The axis whose degree varies: tp, ep, dcp, …; or layout."
)
@click.option("--step", "kind", default="", help="Kind of step to compare: decode, prefill, …  [default: decode]")
@click.option("--what-if", "wish", metavar="tp=N", help="What one RUN lets expect of another degree: a model.")
@click.option("--platform", default="", metavar="DEVICE", help="Links to expect, with --what-if.  [default: RUN's own]")
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs to fill with replicas, for --objective total.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@file_options()
def command(  # noqa: PLR0917 (a command has as many arguments as options)
    paths: tuple[Path, ...],
    objective: str,
    dimension: str,
    kind: str,
    wish: str | None,
    platform: str,
    gpus: int | None,
    form: str,
    out: Path | None,
    force: bool,
) -> None:
    """Find the best degree in PATH: runs at several degrees, or a CSV of measured points.

    A run is a directory of traces, or a report that `diagnose --format json` wrote; several of one degree are repeats.

    A CSV holds degree,value_ms, a row a run. A column layout instead of degree compares layouts of one number of
    GPUs. Further columns: tokens_per_s instead of value_ms; compute_ms, communication_ms, movement_ms, sync_ms;
    steps, host_ms, calls, message_bytes, level, preemptions, kv_use, hit_rate; gpus of one instance, where that is not
    the degree; context, which makes a series of each length.
    """
    if wish is not None:
        emit(_foresight(paths, wish, kind, platform, form), out, force=force)
        return
    from analyzer.render.safe import quoted, safe  # noqa: PLC0415
    from analyzer.render.sweep import html as sweep_html  # noqa: PLC0415
    from analyzer.render.sweep import markdown as sweep_markdown  # noqa: PLC0415
    from analyzer.render.sweep import text as sweep_text  # noqa: PLC0415
    from analyzer.sweep.csv_points import is_table, read_points  # noqa: PLC0415 (--help stays fast)
    from analyzer.sweep.optimum import Objective  # noqa: PLC0415
    from analyzer.sweep.sweep import SweepRequest, sweep, to_json  # noqa: PLC0415

    tables = [path for path in paths if is_table(path)]
    if tables and len(tables) < len(paths):
        raise UsageError("measured points and recorded runs are two things; sweep one or the other")
    series = tuple(one for path in tables for one in read_points(path)) if tables else (_runs(paths, dimension, kind),)
    ask = SweepRequest(dimension, Objective(objective), gpus)
    sweeps = tuple(sweep(safe(one), ask) for one in series)
    rendered = {
        "text": lambda: sweep_text.render(sweeps),
        "markdown": lambda: sweep_markdown.render(sweeps),
        "html": lambda: sweep_html.render(sweeps),
        "json": lambda: quoted(to_json(sweeps)),
    }
    emit(rendered[form](), out, force=force)


def _foresight(paths: tuple[Path, ...], wish: str, kind: str, platform: str, form: str) -> str:
    """What one run lets expect.

    Raises:
        UsageError: not one run, no degree, a form that it does not have; or refused.
    """
    dimension, _, degree = wish.partition("=")
    if not degree.isdecimal() or int(degree) < 1:
        raise UsageError(f"--what-if {wish}: say the axis and the degree, for example --what-if tp=8")
    if len(paths) != 1 or form == "html":
        raise UsageError("--what-if reads the traces of one run, and writes text, json or markdown")
    from analyzer.cli.runs import run_of  # noqa: PLC0415
    from analyzer.render.safe import quoted, safe  # noqa: PLC0415
    from analyzer.render.whatif import markdown as foresight_markdown  # noqa: PLC0415
    from analyzer.render.whatif import text as foresight_text  # noqa: PLC0415
    from analyzer.whatif.foresight import foresee, to_json  # noqa: PLC0415

    foresight = foresee(run_of(paths[0]), dimension, int(degree), kind, platform)
    if form == "json":
        return quoted(to_json(foresight))
    return safe(foresight_markdown.render(foresight) if form == "markdown" else foresight_text.render(foresight))


def _runs(paths: tuple[Path, ...], dimension: str, kind: str) -> PointSeries:
    from analyzer.cli.runs import reports_of  # noqa: PLC0415
    from analyzer.sweep.runs import series_of  # noqa: PLC0415

    return series_of(tuple(reports_of(paths)), dimension, kind)
