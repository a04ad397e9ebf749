"""The `shardscope` command: subcommands on demand, user errors as one line, exit codes."""

import sys
from typing import NoReturn

import click

from analyzer.cli import commands
from analyzer.cli.on_demand import OnDemand
from analyzer.errors import ShardscopeError
from analyzer.render.safe import safe
from analyzer.version import VERSION

STOPPED = 130
"""Exit code of a program that Ctrl-C ended, as shells have it."""


class _Commands(OnDemand):
    package = commands


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION)
def shardscope() -> None:
    """Where does the time of LLM inference go, which data stopped being local, would fewer ranks be faster?"""


def main() -> None:
    """Run the command; a user's error is one line on stderr and exit code 2."""
    if sys.stdout is None:  # the caller closed it: nothing printed would arrive
        _exit("stdout is closed; send it to a file or to /dev/null")
    try:
        code = shardscope.main(prog_name="shardscope", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        click.echo("shardscope: stopped", err=True)
        sys.exit(STOPPED)
    except click.ClickException as error:
        if "\n" in error.format_message():  # the help itself, where no command was named
            error.show()
            sys.exit(error.exit_code)
        _exit(_usage(error))
    except ShardscopeError as error:
        _exit(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _exit(f"{error.filename}: {error.strerror}; name a file or directory that this user may read")
    except (ImportError, AttributeError) as error:
        from importlib.metadata import packages_distributions  # noqa: PLC0415 (25 ms, on the way to an error only)

        owners = packages_distributions().get("rules", [])
        if set(owners) <= {"shardscope"}:
            raise
        click.echo(
            f"shardscope {VERSION}: another distribution installed a package named 'rules' "
            f"({', '.join(sorted(set(owners)))}) over this one ({error}); install in an environment of its own: "
            "uv tool install shardscope",
            err=True,
        )
        sys.exit(2)


def _usage(error: click.ClickException) -> str:
    """What is wrong with the command line, and where its options are told."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"; see {context.command_path} --help" if context else ""
    return f"{error.format_message().rstrip('.')}{hint}"


def _exit(message: str) -> NoReturn:
    """One line whatever a path or a file holds: a line feed or an escape in it acts on no terminal."""
    line = safe(message).replace("\n", "\ufffd")
    click.echo(f"shardscope: {line}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
