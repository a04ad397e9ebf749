"""`collect`: record a run. Each way to record is a module of `collectors`."""

import click

import collectors
from analyzer.cli.on_demand import OnDemand


class _Collectors(OnDemand):
    package = collectors


@click.group(cls=_Collectors)
def command() -> None:
    """Record a run: a built-in workload under torchrun, a running vLLM or SGLang server, or the topology."""
