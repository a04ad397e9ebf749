"""`shardscope diagnose RUN…`: where the time goes, the six answers, findings by cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from analyzer.cli.output import output_options, write

SEVERITIES = ("info", "warning", "error")


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@output_options
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit 1 when a finding is at least this bad.",
)
@click.option("--second-opinion", type=click.Choice(["hta"]), help="Add the critical path by Holistic Trace Analysis.")
@click.option("--hardware", metavar="FILE", type=click.Path(path_type=Path), help="Your machines' figures (TOML).")
def command(  # noqa: PLR0917 (a command has as many arguments as options)
    runs: tuple[str, ...],
    form: str,
    out: Path | None,
    force: bool,
    fail_on: str | None,
    second_opinion: str | None,
    hardware: Path | None,
) -> None:
    """Diagnose RUN: a directory of traces, a file, a glob, or several of them that belong together."""
    import rules  # noqa: PLC0415 (--help stays fast)
    from analyzer.cli.progress import progress  # noqa: PLC0415
    from analyzer.cli.runs import run_of  # noqa: PLC0415
    from analyzer.diagnose.diagnose import diagnose  # noqa: PLC0415
    from analyzer.ingest.hardware import read_hardware  # noqa: PLC0415
    from analyzer.plugins import offers  # noqa: PLC0415

    run = run_of(*runs)
    if hardware:
        run = replace(run, hardware=read_hardware(hardware))
    with progress("Asking the rules"):
        report = diagnose(run, offers(rules, "check").values())
    if second_opinion:
        from analyzer.ingest.hta import second_opinion as opinion  # noqa: PLC0415

        report.extra["hta"] = opinion(run)
    write(report, form, out, force=force)
    if fail_on and any(SEVERITIES.index(row.severity) >= SEVERITIES.index(fail_on) for row in report.findings):
        raise click.exceptions.Exit(1)
