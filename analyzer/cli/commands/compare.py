"""`shardscope compare BASE HEAD`: two states of the code, term by term and kernel by kernel."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import emit, file_options
from analyzer.cli.page import page
from analyzer.errors import UsageError

RUN = click.Path(path_type=Path)


@click.command()
@click.argument("runs", nargs=-1, metavar="[BASE HEAD]", type=RUN)
@click.option("--base", "base", multiple=True, metavar="RUN", type=RUN, help="A run of the base; repeat for repeats.")
@click.option("--head", "head", multiple=True, metavar="RUN", type=RUN, help="A run of the head; repeat for repeats.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown", "html"]), default="text", show_default=True
)
@file_options()
def command(
    runs: tuple[Path, ...], base: tuple[Path, ...], head: tuple[Path, ...], form: str, out: Path | None, force: bool
) -> None:
    """Compare two runs, or several repeats of each: what is exactly equal, what takes longer, and where it went.

    A run is a directory of traces, or a report that `diagnose --format json` wrote. With one or two runs a side, what
    differs is a hint; three or more can prove it. A change that the runs cannot show is written ~.
    """
    if bool(runs) == bool(base or head) or len(runs) not in {0, 2} or bool(base) != bool(head):
        raise UsageError("name two runs, BASE and HEAD, or repeats of each with --base RUN… and --head RUN…")
    import rules  # noqa: PLC0415 (--help stays fast)
    from analyzer.cli.runs import reports_of  # noqa: PLC0415
    from analyzer.compare.comparison import compare  # noqa: PLC0415
    from analyzer.plugins import offers  # noqa: PLC0415
    from analyzer.render.compare import html as compare_html  # noqa: PLC0415
    from analyzer.render.compare import markdown as compare_markdown  # noqa: PLC0415
    from analyzer.render.compare import text as compare_text  # noqa: PLC0415
    from analyzer.render.compare.json import to_json  # noqa: PLC0415
    from analyzer.render.safe import quoted  # noqa: PLC0415

    sides = (runs[:1], runs[1:]) if runs else (base, head)
    reports = reports_of([*sides[0], *sides[1]], offers(rules, "check").values())
    comparison = compare(reports[: len(sides[0])], reports[len(sides[0]) :])
    width, color = page(out)
    rendered = {
        "text": lambda: compare_text.render(comparison, width, color=color),
        "markdown": lambda: compare_markdown.render(comparison),
        "html": lambda: compare_html.render(comparison),
        "json": lambda: quoted(to_json(comparison)),
    }
    emit(rendered[form](), out, force=force)
