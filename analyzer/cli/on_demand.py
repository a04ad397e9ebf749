"""A command group whose subcommands are the modules of a package, imported when asked for."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import click

from analyzer import plugins


class OnDemand(click.Group):
    """Subcommands by module name; each module offers `command`."""

    package: ModuleType

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Public modules, sorted."""
        return plugins.names(self.package)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of one module; None where there is no such module."""
        if cmd_name not in plugins.names(self.package):
            return None
        offered: click.Command = import_module(f"{self.package.__name__}.{cmd_name}").command
        return offered
