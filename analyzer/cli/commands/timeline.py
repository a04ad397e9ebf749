"""`shardscope timeline RUN…`: one Perfetto file of all ranks on one clock."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from analyzer.cli.output import check_place, file_options, say, writing
from analyzer.errors import UsageError

NS_PER_MS = 1e6


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@file_options(".json or .json.gz", required=True)
@click.option("--ranks", default="", metavar="0,3", help="Ranks to show.  [default: all]")
@click.option("--from", "from_ms", type=click.FloatRange(min=0), default=0.0, help="Milliseconds after the start.")
@click.option("--to", "to_ms", type=click.FloatRange(min=0), help="Milliseconds after the start.")
def command(runs: tuple[str, ...], out: Path, ranks: str, from_ms: float, to_ms: float | None, force: bool) -> None:
    """Write the timeline of RUN for ui.perfetto.dev: streams, steps, the four terms, who waits for whom, findings.

    RUN is a directory of traces, a file, a glob, or several of them that belong together. Ranks stand on one clock,
    fitted on the ends of collectives; the file and the last line say how, and within which error.
    """
    if to_ms is not None and to_ms <= from_ms:
        raise UsageError(f"--to {to_ms:g} is not after --from {from_ms:g}")
    chosen = _numbers(ranks)
    import rules  # noqa: PLC0415 (--help stays fast)
    from analyzer.cli.progress import progress  # noqa: PLC0415
    from analyzer.cli.runs import run_of  # noqa: PLC0415
    from analyzer.diagnose.diagnose import diagnose  # noqa: PLC0415
    from analyzer.plugins import offers  # noqa: PLC0415
    from analyzer.timeline.timeline import TimeWindow, document, timeline  # noqa: PLC0415

    run = run_of(*runs)
    until_ns = None if to_ms is None else round(to_ms * NS_PER_MS)
    line = timeline(run, TimeWindow(chosen, round(from_ms * NS_PER_MS), until_ns))
    with progress("Asking the rules"):
        findings = diagnose(run, offers(rules, "check").values()).findings
    with progress("Writing the timeline"), _opened(out, force=force) as file:
        file.writelines(document(line, findings))
    for note in line.notes:
        say(note)
    say(f"Wrote {out}; open it at ui.perfetto.dev")


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"--ranks {text}: numbers with commas between them, for example --ranks 0,3")
    return tuple(int(word) for word in words)


@contextmanager
def _opened(out: Path, *, force: bool) -> Iterator[IO[str]]:
    """The file to write, packed where its name says so.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    check_place(out, force=force)
    with writing(out):
        if out.suffix == ".gz":
            with gzip.open(out, "wt", compresslevel=3, encoding="utf-8") as file:
                yield file
        else:
            with out.open("w", encoding="utf-8") as file:
                yield file
