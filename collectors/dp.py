"""Record data parallelism.

Whole replicas with their own sequences, kept in step by one small all-reduce before each step, as engines do.
"""

import click

from collectors.torchrun.options import command as workload

IDLE = click.Option(
    ["--idle-steps"],
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Decode steps at the end of a round for which the last replica has no sequences left, and runs dummy steps.",
)

command = workload("dp", __doc__, IDLE, divides={"batch": 1})
