"""Record prefill/decode disaggregation.

Some ranks prefill and send keys and values, the others decode; run.json has the bytes and the time of each transfer.
Degrees are prefill + decode ranks: 1+1, 2+1.
"""

import click

from collectors.torchrun.options import command as workload

TRANSFER = click.Option(
    ["--transfer"],
    type=click.Choice(["layer", "end"]),
    default="layer",
    show_default=True,
    help="Send a layer's keys and values as soon as it is done, or all after the last.",
)

RECOMPUTE = click.Option(
    ["--recompute"],
    is_flag=True,
    help="Decode ranks compute the prompts again, although they are sent their keys and values: double prefill.",
)

command = workload("pd", __doc__, TRANSFER, RECOMPUTE, divides={"batch": 1}, roles=2)
