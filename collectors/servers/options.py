"""Options that `collect vllm` and `collect sglang` share, and the frame of both commands."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from analyzer.errors import ShardscopeError, UsageError

F = TypeVar("F", bound=Callable[..., Any])

CLIENTS = ("httpx", "prometheus_client")
HIDDEN_FROM_COMMAND = ("--out",)

# A load that fills a batch of eight and lasts about 64 × 4 engine steps.
REQUESTS, CONCURRENCY, INPUT_TOKENS, OUTPUT_TOKENS = 32, 8, 512, 64
# Enough steps for quantiles; with eight GPUs and shapes on, some 100 MB of gzipped traces.
STEPS = 32
TIMEOUT_S = 600.0

_OPTIONS = (
    click.option(
        "--url", "urls", multiple=True, metavar="[NAME=]URL", help="Server to profile; names: prefill, decode, …"
    ),
    click.option("--router", default="", metavar="URL", help="Send the load here instead of to the servers."),
    click.option("--out", required=True, type=click.Path(path_type=Path), help="Run directory to make."),
    click.option("--steps", default=STEPS, show_default=True, help="Engine steps to record; 0: the whole load."),
    click.option("--skip-steps", default=0, show_default=True, help="Engine steps to let pass first."),
    click.option("--requests", default=REQUESTS, show_default=True, type=click.IntRange(1), help="Requests to send."),
    click.option("--concurrency", default=CONCURRENCY, show_default=True, type=click.IntRange(1), help="At a time."),
    click.option("--input-len", default=INPUT_TOKENS, show_default=True, type=click.IntRange(1), help="Tokens."),
    click.option("--output-len", default=OUTPUT_TOKENS, show_default=True, type=click.IntRange(1), help="Tokens."),
    click.option(
        "--shared-prefix", default=0.0, show_default=True, type=click.FloatRange(0, 1), help="Share of each prompt."
    ),
    click.option("--seed", default=0, show_default=True, help="Of the prompts."),
    click.option(
        "--trace-dir", "trace_dirs", multiple=True, metavar="[NAME=]DIR", help="Where the server writes; or HOST:DIR."
    ),
    click.option("--layout", default="", metavar="tp=2,pp=1", help="Degrees, where the server does not tell them."),
    click.option("--model-config", type=click.Path(path_type=Path), help="config.json of the model."),
    click.option("--api-key-env", default="", metavar="VARIABLE", help="Environment variable with the API key."),
    click.option("--timeout", "timeout_s", default=TIMEOUT_S, show_default=True, help="Seconds for traces to come."),
    click.option("--reference/--no-reference", default=True, help="Send the load without the profiler first."),
    click.option("--force", is_flag=True, help="Write into a directory that is not empty."),
)


def server_options(function: F) -> F:
    """The function with the options of a collection from servers."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def need(modules: Sequence[str]) -> None:
    """Nothing where all modules are installed.

    Raises:
        ShardscopeError: one is not; with the command that installs it.
    """
    if missing := [name for name in modules if find_spec(name) is None]:
        raise ShardscopeError(f"{missing[0]} is not installed: pip install 'shardscope[collect]'")


def layout(text: str) -> dict[str, int]:
    """Degrees by axis from `tp=2,pp=1`.

    Raises:
        UsageError: another form.
    """
    degrees: dict[str, int] = {}
    for assignment in filter(None, text.split(",")):
        axis, _, degree = assignment.partition("=")
        if axis not in {"tp", "pp", "dp", "ep", "cp", "dcp"} or not degree.isdigit():
            raise UsageError(f"--layout {text}: expected for example tp=2,dp=4 with axes tp, pp, dp, ep, cp, dcp")
        degrees[axis] = int(degree)
    return degrees


def json_object(path: Path | None) -> dict[str, Any]:
    """The JSON object in a file; empty where no file was given.

    Raises:
        UsageError: no such file, or no such content.
    """
    if path is None:
        return {}
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give the config.json of the model") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds no JSON object; give the config.json of the model")
    return document


def api_key(variable: str) -> str:
    """The key in an environment variable; "" where none was named.

    Raises:
        UsageError: the variable is not set.
    """
    if variable and variable not in os.environ:
        raise UsageError(f"--api-key-env {variable}: no such environment variable")
    return os.environ.get(variable, "") if variable else ""


def command_line() -> str:
    """The command as given, without the run directory."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word in HIDDEN_FROM_COMMAND:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in HIDDEN_FROM_COMMAND)):
            kept.append(word)
    return shlex.join(["shardscope", *kept])


@contextmanager
def told() -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what happens now; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 -- not for --help

    with Console(stderr=True).status("Asking the server") as status:
        yield status.update
