"""Record expert parallelism.

A mixture-of-experts transformer: each rank serves its own sequences and holds some experts of every layer; tokens go to
them and come back by all-to-all.
"""

import click

from collectors.torchrun.options import command as workload

SKEW = click.Option(
    ["--skew"],
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Zipf exponent of the experts' popularity; 0 is even.",
)

command = workload("ep", __doc__, SKEW, divides={"batch": 1, "experts": 1}, experts=8, ffn=256)
