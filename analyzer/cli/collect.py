"""`collect`: record a run. Each way to record is a module of `collectors`."""

from importlib import import_module

import click

import collectors
from analyzer import plugins


class _OnDemand(click.Group):
    """Subcommands are the modules of `collectors`, imported when asked for."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return plugins.names(collectors)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in plugins.names(collectors):
            return None
        offered: click.Command = import_module(f"{collectors.__name__}.{cmd_name}").command
        return offered


@click.group(cls=_OnDemand)
def command() -> None:
    """Record a run: a built-in workload under torchrun, a running vLLM or SGLang server, or the topology."""
