"""`collect vllm --offline MODEL`: the load in an LLM of this process, without and with its profiler."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from analyzer import units
from collectors import _manifest, _trace_files
from collectors._hf_config import config_of, dimensions
from collectors._prompts import load_of
from collectors._server_options import command_line, layout, told
from collectors._trace_files import WORKLOAD

VARIABLE = "VLLM_TORCH_PROFILER_DIR"  # how vLLM before 0.13 is told

_ARGUMENTS = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "data_parallel_size": "dp"}


def collect_offline(model: str, engine_args: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Profile an LLM of this process and write its run directory.

    Args:
        model: folder or name.
        engine_args: arguments of `vllm.LLM`.
        options: values of `server_options` by name; those of HTTP do not matter.

    Raises:
        ShardscopeError: no trace came, or the run directory is not empty.
    """
    out: Path = options["out"]
    config = dimensions(config_of(model))
    load = load_of(options)
    load = replace(load, tokens=config.get("vocab_size", load.tokens))
    _trace_files.prepare(out, force=options["force"])
    os.environ[VARIABLE] = str(out.absolute())
    import vllm  # noqa: PLC0415 -- reads the variable when it is imported

    with told() as tell:
        tell("Starting vLLM")
        llm = vllm.LLM(model=model, **{"max_num_seqs": load.concurrency, **_profiled(out), **engine_args})
        sampling = vllm.SamplingParams(temperature=0, max_tokens=load.output_tokens, ignore_eos=True)

        def generate(turn: str) -> int:
            tell(f"Generating, {turn}")
            prompts = [{"prompt_token_ids": prompt} for prompt in load.prompts(turn)]
            start_ns = time.perf_counter_ns()
            llm.generate(prompts, sampling, use_tqdm=False)
            return time.perf_counter_ns() - start_ns

        generate("warm-up")
        reference_ns = generate("reference") if options["reference"] else 0
        _start(llm.start_profile, options)
        try:
            profiled_ns = generate("profiled")
        finally:
            tell("Stopping the profiler: vLLM writes its traces")
            llm.stop_profile()
        expected = int(engine_args.get("tensor_parallel_size", 1)) * int(engine_args.get("pipeline_parallel_size", 1))
        files = _trace_files.settled(out, {}, expected=expected, timeout_s=options["timeout_s"])
    entries = {
        "schema": _manifest.SCHEMA,
        "complete": True,
        "engine": "vllm",
        "workload": WORKLOAD,
        "layout": {axis: int(engine_args.get(name, 1)) for name, axis in _ARGUMENTS.items()}
        | layout(options["layout"]),
        "model": config,
        "versions": _manifest.versions(("shardscope", "torch")) | {"vllm": vllm.__version__},
        "settings": {
            "model": model,
            "requests": load.requests,
            "concurrency": load.concurrency,
            "input_tokens": load.input_tokens,
            "output_tokens": load.output_tokens,
            "shared_prefix": load.shared_prefix,
            "seed": load.seed,
        },
        "command": command_line(),
        "profile": {"steps": options["steps"], "skip_steps": options["skip_steps"]},
        "reference": {"load_ns": reference_ns, "profiled_load_ns": profiled_ns} if reference_ns else {},
    }
    _manifest.write(out, entries)
    click.echo(f"{units.count(len(files), 'file')}, {units.size(sum(file.stat().st_size for file in files))}", err=True)
    click.echo(f"Wrote {out}", err=True)


def _profiled(out: Path) -> dict[str, Any]:
    """The arguments that switch the profiler on, from vLLM 0.13 on; earlier ones read the variable."""
    from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 -- needs vLLM

    if "profiler_config" not in getattr(EngineArgs, "__dataclass_fields__", {}):
        return {}
    return {
        "profiler_config": {
            "profiler": "torch",
            "torch_profiler_dir": str(out.absolute()),
            "torch_profiler_record_shapes": True,
            "torch_profiler_with_stack": False,
        }
    }


def _start(start: Callable[..., None], options: Mapping[str, Any]) -> None:
    """Start the profiler, bounded where this version takes bounds."""
    bounds = {"max_iterations": options["steps"], "delay_iterations": options["skip_steps"]}
    taken = inspect.signature(start).parameters
    start(**{name: steps for name, steps in bounds.items() if steps and name in taken})
