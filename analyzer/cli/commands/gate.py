"""`shardscope gate RUN… --baseline FILE`: did this change make it worse?"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click

from analyzer.cli.output import check_place, emit, file_options, say
from analyzer.cli.page import page
from analyzer.errors import UsageError

FORMS = ("text", "json", "markdown", "junit", "github")
FILE = click.Path(path_type=Path, dir_okay=False)


def _outputs(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, Path]:
    outputs = {}
    for value in values:
        form, _, path = value.partition("=")
        if form not in FORMS or not path:
            raise click.BadParameter(f"{value!r} is not FORM=FILE with FORM one of {', '.join(FORMS)}")
        outputs[form] = Path(path)
    return outputs


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--baseline", required=True, metavar="FILE", type=FILE, help="Runs to hold against; keep it in git.")
@click.option("--update-baseline", is_flag=True, help="Make these runs the baseline, and exit 0.")
@click.option("--reason", default="", help="Why a loss becomes the baseline; kept in it.")
@click.option("--strict", is_flag=True, help="Exit 1 when undecided, too.")
@click.option("--fail-on-new", type=click.Choice(["info", "warning", "error"]), help="Fail on new findings this bad.")
@click.option("--allow-different", is_flag=True, help="Compare although engine, device, layout or workload differ.")
@click.option("--config", metavar="FILE", type=FILE, help="Settings  [default: shardscope.toml, pyproject.toml]")
@click.option("--history", metavar="FILE", type=FILE, help="Append this gate, show jumps and drifts of past ones.")
@click.option("--label", default="", help="Commit or build, for the history.")
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True)
@click.option("--also", multiple=True, metavar="FORM=FILE", callback=_outputs, help="Write this form, too; repeatable.")
@file_options()
def command(
    *,
    runs: tuple[Path, ...],
    baseline: Path,
    update_baseline: bool,
    reason: str,
    strict: bool,
    fail_on_new: str | None,
    allow_different: bool,
    config: Path | None,
    history: Path | None,
    label: str,
    form: str,
    also: dict[str, Path],
    out: Path | None,
    force: bool,
) -> None:
    """Hold RUN… against a baseline; each RUN is one repeat: a directory of traces, or a report saved as JSON.

    Verdicts: pass, regression, improved, undecided, not comparable. Exit code 0, 1 for a regression (with --strict for
    undecided too), 2 for what is not comparable, in every format. Fewer than three runs a side never prove a change
    of a time; calls, bytes and launches need no repeats.
    """
    from dataclasses import replace  # noqa: PLC0415 (--help stays fast)

    import rules  # noqa: PLC0415
    from analyzer.cli import gate_files as files  # noqa: PLC0415
    from analyzer.cli.gate_forms import rendered  # noqa: PLC0415
    from analyzer.cli.runs import reports_of  # noqa: PLC0415
    from analyzer.gate.verdict import entry, gate  # noqa: PLC0415
    from analyzer.plugins import offers  # noqa: PLC0415

    if reason and not update_baseline:
        raise UsageError("--reason is kept in a baseline; pass --update-baseline with it")
    for path in also.values():
        check_place(path, force=force)
    for path in filter(None, (baseline if update_baseline else None, history)):
        check_place(path, force=True)
    settings = files.settings_of(config)
    settings = replace(settings, fail_on_new=fail_on_new or settings.fail_on_new)
    kept = None if update_baseline and not baseline.exists() else files.baseline_of(baseline)
    past = files.history_of(history)
    reports = reports_of(runs, offers(rules, "check").values())
    if kept is None:
        files.accept(baseline, reports, None, reason, None)
        say(f"Wrote {baseline}")
        return
    result = gate(reports, kept, settings, history=past, allow_different=allow_different or update_baseline)
    width, color = page(out)
    emit(rendered(result, form, strict=strict, width=width, color=color), out, force=force)
    for other, path in also.items():
        emit(rendered(result, other, strict=strict), path, force=force)
    if update_baseline:
        files.accept(baseline, reports, result, reason, kept)
        say(f"Wrote {baseline}")
    if history:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        files.remember(history, entry(result, now, label))
    raise click.exceptions.Exit(0 if update_baseline else result.exit_code(strict=strict))
