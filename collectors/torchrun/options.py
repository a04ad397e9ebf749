"""The commands of the built-in workloads: their options, what must divide what, one launch a degree."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from analyzer.errors import UsageError
from analyzer.units import count
from collectors.torchrun import torchrun
from collectors.torchrun.torchrun import Rendezvous
from collectors.workloads import manifest
from collectors.workloads.settings import Job, JobSettings, ModelSize

POSITIVE = click.IntRange(min=1)
SIZES = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "top_k")
TIMES = ("batch", "context", "steps", "rounds", "warmup", "dtype", "device", "seed")
UNRECORDED = ("out", "force")  # of the command line in run.json: they say nothing of the run


def degrees_from(text: str, roles: int) -> tuple[str, ...]:
    """The degrees of a list like `1,2,4`, or `1+1,2+1` where ranks have two roles, each as it was written.

    Raises:
        click.BadParameter: one is not of that form.
    """
    degrees = tuple(item.strip() for item in text.split(","))
    for degree in degrees:
        ranks = degree.split("+")
        if len(ranks) != roles or not all(number.isdigit() and int(number) > 0 for number in ranks):
            raise click.BadParameter(f"{degree!r} is not of the form {'+'.join(['N'] * roles)}")
    return degrees


def command(
    name: str, doc: str, *extra: click.Option, divides: Mapping[str, int], roles: int = 1, **defaults: int | str
) -> click.Command:
    """`shardscope collect NAME`.

    Args:
        name: of the workload; `collectors.workloads.NAME` is what its ranks run.
        doc: help text.
        extra: options that only this workload has.
        divides: options whose value must be a multiple of the degree, or of that many times the degree.
        roles: parts of a degree: 2 for prefill + decode ranks.
        defaults: of options whose default is another for this workload.
    """
    options = [*_where(roles), *_size(moe="experts" in defaults), *_times()]
    for option in options:
        if option.name in defaults:
            option.default = defaults[option.name]

    def collect(**given: Any) -> None:  # noqa: ANN401 (click hands options over by name, each of its own type)
        context = click.get_current_context()
        for degree in _degrees(context, degrees_from(given["degrees"], roles)):
            _collect(_settings(name, degree, given, extra), given, _command_line(context), divides)

    return click.Command(name, callback=collect, params=[*options, *extra], help=doc, short_help=doc.partition("\n")[0])


def _where(roles: int) -> list[click.Option]:
    degrees = "1+1" if roles > 1 else "1,2"
    return [
        click.Option(["--degrees"], default=degrees, show_default=True, help="One run each."),
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path),
            default="runs",
            show_default=True,
            help="Parent of the run directories.",
        ),
        click.Option(["--force"], is_flag=True, help="Replace runs that are there."),
        click.Option(["--nnodes"], type=POSITIVE, default=1, show_default=True, help="Nodes; run the same on each."),
        click.Option(["--node-rank"], type=click.IntRange(min=0), default=0, show_default=True),
        click.Option(
            ["--rdzv-endpoint"], default="", help="HOST:PORT of node 0. Default: a free port of the loopback."
        ),
    ]


def _size(*, moe: bool) -> list[click.Option]:
    dense = {"layers": 4, "hidden": 256, "heads": 8, "kv_heads": 4, "ffn": 512, "vocab": 1024}
    sizes = dense | ({"experts": 8, "top_k": 2} if moe else {})
    return [
        click.Option([f"--{size.replace('_', '-')}"], type=POSITIVE, default=usual, show_default=True)
        for size, usual in sizes.items()
    ]


def _times() -> list[click.Option]:
    dtypes = click.Choice(["auto", "float32", "bfloat16", "float16"])
    none_too = click.IntRange(min=0)
    return [
        click.Option(["--batch"], type=POSITIVE, default=4, show_default=True, help="Sequences of the whole job."),
        click.Option(["--context"], type=POSITIVE, default=128, show_default=True, help="Prompt tokens a sequence."),
        click.Option(
            ["--steps"], type=POSITIVE, default=10, show_default=True, help="Decode steps after each prefill."
        ),
        click.Option(
            ["--rounds"], type=POSITIVE, default=2, show_default=True, help="Prefill-and-decode rounds profiled."
        ),
        click.Option(["--warmup"], type=none_too, default=1, show_default=True, help="Rounds before that."),
        click.Option(
            ["--dtype"], type=dtypes, default="auto", show_default=True, help="auto: float32 on CPU, bfloat16 on GPU."
        ),
        click.Option(["--device"], type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True),
        click.Option(["--seed"], type=none_too, default=0, show_default=True, help="Of weights and prompts."),
    ]


def _settings(name: str, degree: str, given: Mapping[str, Any], extra: Sequence[click.Option]) -> JobSettings:
    size = ModelSize(**{field: given[field] for field in SIZES if field in given})
    own_options = {str(option.name): given[str(option.name)] for option in extra}
    return JobSettings(name, degree, size, **{field: given[field] for field in TIMES}, extra=own_options)


def _check(settings: JobSettings, divides: Mapping[str, int]) -> None:
    """Refuse what cannot be split, or cannot be a model, before anything starts.

    Raises:
        UsageError: with the option to change.
    """
    size = settings.size
    if size.hidden % size.heads or size.head_dim % 2:
        raise UsageError(f"--hidden {size.hidden} over --heads {size.heads} is not an even number of elements a head")
    if size.heads % size.kv_heads:
        raise UsageError(f"--heads {size.heads} is not a multiple of --kv-heads {size.kv_heads}")
    if size.experts and size.top_k > size.experts:
        raise UsageError(f"--top-k {size.top_k} asks for more than the {count(size.experts, 'expert')} there are")
    for name, times in divides.items():
        value = getattr(size, name, None) or getattr(settings, name)
        for ranks in settings.split:
            if value % (times * ranks):
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{settings.name}: {option} {value} is not a multiple of {times * ranks}")


def _collect(settings: JobSettings, given: Mapping[str, Any], line: str, divides: Mapping[str, int]) -> None:
    """One run directory."""
    if find_spec("torch") is None:
        raise UsageError("collect needs torch: pip install 'shardscope[collect]'")
    _check(settings, divides)
    folder = Path(given["out"]).resolve() / settings.name
    job = Job(settings, str(folder), f"{line} --degrees {settings.degree}")
    inside = torchrun.inside()
    if (torchrun.rank() if inside else given["node_rank"]) == 0:
        _clear(folder, force=given["force"])
    if inside:
        _within(job)
    torchrun.launch(job, Rendezvous(given["nnodes"], given["node_rank"], given["rdzv_endpoint"]))
    click.echo(f"Wrote {folder}")


def _within(job: Job) -> None:
    """Be the rank that somebody's torchrun made of this process, to its end."""
    worker = import_module("collectors.torchrun.worker")  # it imports torch, which --help must not
    worker.run(job)


def _clear(folder: Path, *, force: bool) -> None:
    """Make room for a run.

    Raises:
        UsageError: there is one, and --force was not given.
    """
    if not folder.exists():
        return
    old = sorted(path for pattern in (torchrun.TRACES, manifest.NAME, torchrun.LOG) for path in folder.glob(pattern))
    if old and not force:
        raise UsageError(
            f"{folder} holds a run ({count(len(old), 'file')}): give another --out, or --force to replace it"
        )
    for path in old:
        path.unlink()


def _degrees(context: click.Context, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The degrees asked for; inside torchrun the one that it made.

    Raises:
        UsageError: another one was asked for.
    """
    if not torchrun.inside():
        return asked
    ranks = torchrun.world_size()
    if context.get_parameter_source("degrees") is ParameterSource.DEFAULT and "+" not in asked[0]:
        return (str(ranks),)
    if len(asked) != 1 or sum(int(number) for number in asked[0].split("+")) != ranks:
        raise UsageError(
            f"inside torchrun with {count(ranks, 'rank')}: --degrees must be one degree of that many ranks"
        )
    return asked


def _command_line(context: click.Context) -> str:
    """The command as given, without what says nothing of the run."""
    words = ["shardscope", "collect", str(context.info_name)]
    for option in context.command.params:
        name = str(option.name)
        stated = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if stated and name not in (*UNRECORDED, "degrees"):
            is_switch = isinstance(option, click.Option) and option.is_flag
            words += [option.opts[0]] if is_switch else [option.opts[0], str(context.params[name])]
    return shlex.join(words)
