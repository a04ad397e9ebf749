"""`shardscope hardware OUTPUT…`: a site's own figures from nccl-tests, for `diagnose --hardware`."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import emit, file_options


@click.command()
@click.argument("outputs", nargs=-1, required=True, metavar="OUTPUT…", type=click.Path(path_type=Path))
@click.option("--operation", default="", metavar="NAME", help="Which collective, where the output does not say.")
@file_options()
def command(outputs: tuple[Path, ...], operation: str, out: Path | None, force: bool) -> None:
    """Make hardware.toml from what nccl-tests printed: times that collectives take on your machines.

    Put the file beside the traces, or pass it with `diagnose --hardware FILE`: expected times then come from it.
    Single links can be stated by hand: a table [link.nvlink], [link.pcie] or [link.network] with gigabytes_per_s
    (bus bandwidth of large messages) and hop_us.
    """
    from analyzer.errors import RunNotFoundError  # noqa: PLC0415 (--help stays fast)
    from analyzer.ingest.hardware import to_toml  # noqa: PLC0415
    from analyzer.ingest.nccl_tests import read_nccl_tests  # noqa: PLC0415

    series = []
    for path in outputs:
        try:
            text = path.read_text(errors="replace")
        except OSError as error:
            raise RunNotFoundError(f"{path}: {error.strerror}; give the file that holds what it printed") from error
        series += read_nccl_tests(text, str(path), operation)
    emit(to_toml(series), out, force=force)
