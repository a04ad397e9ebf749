"""`collect vllm --offline MODEL`: the load in an LLM of this process, without and with its profiler."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from analyzer import units
from collectors.servers import trace_files
from collectors.servers.hf_config import config_of, dimensions
from collectors.servers.options import command_line, layout, told
from collectors.servers.prompts import RequestLoad, load_of
from collectors.servers.trace_files import WORKLOAD
from collectors.workloads import manifest

VARIABLE = "VLLM_TORCH_PROFILER_DIR"  # how vLLM before 0.13 is told

_ARGUMENTS = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "data_parallel_size": "dp"}


@dataclass(frozen=True, slots=True)
class _Offline:
    """What is run: a model, arguments of `vllm.LLM`, a load, options of the command."""

    model: str
    dimensions: Mapping[str, Any]
    engine_args: Mapping[str, Any]
    load: RequestLoad
    options: Mapping[str, Any]

    @property
    def out(self) -> Path:
        """The run directory."""
        path: Path = self.options["out"]
        return path.absolute()

    @property
    def degrees(self) -> dict[str, int]:
        """Degrees by axis."""
        return {axis: int(self.engine_args.get(name, 1)) for name, axis in _ARGUMENTS.items()}


def collect_offline(model: str, engine_args: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Profile an LLM of this process and write its run directory.

    Args:
        model: folder or name.
        engine_args: arguments of `vllm.LLM`.
        options: values of `server_options` by name; those of HTTP do not matter.

    Raises:
        ShardscopeError: no trace came, or the run directory is not empty.
    """
    config = dimensions(config_of(model))
    load = load_of(options)
    run = _Offline(model, config, engine_args, replace(load, tokens=config.get("vocab_size", load.tokens)), options)
    trace_files.prepare(run.out, force=options["force"])
    with told() as tell:
        version, times_ns = _generate(run, tell)
        tell("Waiting for traces")
        expected = run.degrees["tp"] * run.degrees["pp"]
        files = trace_files.settled(run.out, {}, expected=expected, timeout_s=options["timeout_s"])
    manifest.write(run.out, _entries(run, version, times_ns))
    click.echo(f"{units.count(len(files), 'file')}, {units.size(sum(file.stat().st_size for file in files))}", err=True)
    click.echo(f"Wrote {options['out']}", err=True)


def _generate(run: _Offline, tell: Callable[[str], None]) -> tuple[str, dict[str, int]]:
    """VLLM's version, and how long the load took in each turn."""
    os.environ[VARIABLE] = str(run.out)
    import vllm  # noqa: PLC0415 -- reads the variable when it is imported

    tell("Starting vLLM")
    llm = vllm.LLM(
        **{"model": run.model, "max_num_seqs": run.load.concurrency, **_profiled(run.out), **run.engine_args}
    )
    sampling = vllm.SamplingParams(temperature=0, max_tokens=run.load.output_tokens, ignore_eos=True)
    times_ns: dict[str, int] = {}

    def generate(turn: str) -> None:
        tell(f"Generating, {turn}")
        prompts = [{"prompt_token_ids": prompt} for prompt in run.load.prompts(turn)]
        start_ns = time.perf_counter_ns()
        llm.generate(prompts, sampling, use_tqdm=False)
        times_ns[turn] = time.perf_counter_ns() - start_ns

    generate("warm-up")
    if run.options["reference"]:
        generate("reference")
    _start(llm.start_profile, run.options)
    try:
        generate("profiled")
    finally:
        tell("Stopping the profiler: vLLM writes its traces")
        llm.stop_profile()
    return str(vllm.__version__), times_ns


def _profiled(out: Path) -> dict[str, Any]:
    """The arguments that switch the profiler on, from vLLM 0.13 on; earlier ones read the variable."""
    from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 -- needs vLLM

    if "profiler_config" not in getattr(EngineArgs, "__dataclass_fields__", {}):
        return {}
    return {
        "profiler_config": {
            "profiler": "torch",
            "torch_profiler_dir": str(out),
            "torch_profiler_record_shapes": True,
            "torch_profiler_with_stack": False,
        }
    }


def _start(start: Callable[..., None], options: Mapping[str, Any]) -> None:
    """Start the profiler, bounded where this version takes bounds."""
    bounds = {"max_iterations": options["steps"], "delay_iterations": options["skip_steps"]}
    taken = inspect.signature(start).parameters
    start(**{name: steps for name, steps in bounds.items() if steps and name in taken})


def _entries(run: _Offline, version: str, times_ns: Mapping[str, int]) -> dict[str, object]:
    load = run.load
    plain_ns, profiled_ns = times_ns.get("reference", 0), times_ns["profiled"]
    return {
        "schema": manifest.SCHEMA,
        "complete": True,
        "engine": "vllm",
        "workload": manifest.sort(WORKLOAD, "serving", "vllm"),
        "layout": run.degrees | layout(run.options["layout"]),
        "model": run.dimensions,
        "versions": manifest.versions(("shardscope", "torch")) | {"vllm": version},
        "settings": {
            "model": run.model,
            "requests": load.requests,
            "concurrency": load.concurrency,
            "input_tokens": load.input_tokens,
            "output_tokens": load.output_tokens,
            "shared_prefix": load.shared_prefix,
            "seed": load.seed,
        },
        "command": command_line(),
        "profile": {"steps": run.options["steps"], "skip_steps": run.options["skip_steps"]},
        "reference": {"load_ns": plain_ns, "profiled_load_ns": profiled_ns} if plain_ns else {},
    }
