"""Record context parallelism.

Each prompt is split by position (zigzag), keys and values go round a ring or are gathered; decode attends where the
keys are and merges the parts.
"""

import click

from collectors.torchrun.options import command as workload

ATTENTION = click.Option(
    ["--attention"],
    type=click.Choice(["ring", "all_gather"]),
    default="ring",
    show_default=True,
    help="How the keys and values of a prompt reach the other ranks.",
)

command = workload("cp", __doc__, ATTENTION, divides={"context": 2})
