"""The `shardscope` command: subcommands on demand, user errors as one line, exit codes."""

import sys
from importlib.metadata import packages_distributions, version

import click

from analyzer import cli
from analyzer.cli._on_demand import OnDemand
from analyzer.errors import ShardscopeError


class _Commands(OnDemand):
    package = cli


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shardscope")
def shardscope() -> None:
    """Where does the time of LLM inference go, which data stopped being local, would fewer ranks be faster?"""


def main() -> None:
    """Run the command; a user's error is one line on stderr and exit code 2."""
    try:
        shardscope(prog_name="shardscope")
    except ShardscopeError as error:
        click.echo(f"shardscope: {error}", err=True)
        sys.exit(2)
    except (ImportError, AttributeError) as error:
        owners = packages_distributions().get("rules", [])
        if set(owners) <= {"shardscope"}:
            raise
        click.echo(
            f"shardscope {version('shardscope')}: another distribution installed a package named 'rules' "
            f"({', '.join(sorted(set(owners)))}) over this one ({error}); install in an environment of its own: "
            "uv tool install shardscope",
            err=True,
        )
        sys.exit(2)


if __name__ == "__main__":
    main()
