"""vLLM's HTTP endpoints: versions, configuration, profiler, completions, prefill and decode servers.

Sources: vllm/entrypoints/serve/profile/api_router.py, .../dev/server_info/api_router.py, vllm/config/profiler.py and
vllm/config/parallel.py at v0.33.0 and the tags named below.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from analyzer.errors import MissingEvidenceError, ShardscopeError
from collectors.servers.engine import Endpoint, Identity, Plan
from collectors.servers.http import NOT_FOUND, Http, check, fault, said
from collectors.servers.load import Chunk, Send, Target, TimedAnswer, stream

FLAGS_SINCE = (0, 13)  # --profiler-config; environment variables before
SHAPES_BY_VARIABLE_SINCE = (0, 11)
BOUNDS_SINCE = (0, 32)  # max_iterations in the body of /start_profile; other versions ignore the body

_CONFLICT = 409
_FLAGS = (
    "--profiler-config.profiler torch --profiler-config.torch_profiler_dir DIR "
    "--profiler-config.torch_profiler_record_shapes true --profiler-config.torch_profiler_with_stack false"
)
_VARIABLES = "VLLM_TORCH_PROFILER_DIR=DIR"
_SHAPE_VARIABLES = " VLLM_TORCH_PROFILER_RECORD_SHAPES=1 VLLM_TORCH_PROFILER_WITH_STACK=0"

_DEGREES = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "cp": "prefill_context_parallel_size",
    "dcp": "decode_context_parallel_size",
}
_PARALLEL_SETTINGS = ("all2all_backend", "enable_eplb", "enable_dbo", "distributed_executor_backend")
_PROFILER_SETTINGS = {
    "torch_profiler_with_stack": "with_stack",
    "torch_profiler_record_shapes": "record_shapes",
    "torch_profiler_activities": "activities",
}


class VllmServer:
    """vLLM's OpenAI-compatible server."""

    name = "vllm"
    asks_for_folder = False

    def identify(self, http: Http, endpoint: Endpoint) -> Identity:
        """Version, model, and the whole configuration where the server runs in its development mode.

        Raises:
            ShardscopeError: it is no vLLM server.
            MissingEvidenceError: its profiler is off.
        """
        version_page = http.document(f"{endpoint.url}/version")
        if version_page is None or "version" not in version_page:
            raise ShardscopeError(f"{endpoint.url} has no /version as vLLM has; is this the server's own address?")
        version = str(version_page["version"])
        # The page is there for POST only, and only with the profiler on: GET answers 405 or 404 and starts nothing.
        if http.get(f"{endpoint.url}/start_profile").status_code == NOT_FOUND:
            raise _profiler_is_off(endpoint, version)
        models = http.document(f"{endpoint.url}/v1/models") or {}
        model: dict[str, Any] = next(iter(models.get("data", [])), {})
        identity = Identity(versions={"vllm": version}, info={"version": version_page, "models": models})
        identity.info_file = "server_info.json"
        identity.model_name = model.get("id", "")
        identity.max_tokens = model.get("max_model_len")
        identity.model_path = model.get("root") or identity.model_name
        identity.settings["model"] = identity.model_path
        if info := http.document(f"{endpoint.url}/server_info?config_format=json"):
            identity.info["server_info"] = info
            config = info.get("vllm_config")
            _configure(identity, config if isinstance(config, dict) else _from_text(str(config)))
        return identity

    def start(self, http: Http, endpoint: Endpoint, identity: Identity, plan: Plan) -> None:
        """Start the profiler, bounded where the version can be told so."""
        bounds = {"max_iterations": plan.steps, "delay_iterations": plan.skip_steps}
        asked = {name: steps for name, steps in bounds.items() if steps}
        answer = http.post(f"{endpoint.url}/start_profile", asked)
        if answer.status_code == NOT_FOUND:
            raise _profiler_is_off(endpoint, identity.versions["vllm"])
        if answer.status_code == _CONFLICT:
            raise ShardscopeError(
                f"{endpoint.url} is being profiled already: wait for that, or end it by POST /stop_profile"
            )
        check(answer)
        version = _number(identity.versions["vllm"])
        is_bounded = bool(plan.steps) and (version is None or version >= BOUNDS_SINCE)
        identity.profiler |= {"steps": plan.steps if is_bounded else 0, "skip_steps": plan.skip_steps}
        identity.profiler["bounded_by"] = "steps" if is_bounded else "load"

    def stop(self, http: Http, endpoint: Endpoint, identity: Identity) -> None:  # noqa: ARG002 -- Engine's signature
        """Stop the profiler; the server answers once the traces are written."""
        check(http.post(f"{endpoint.url}/stop_profile"))

    def sender(self, servers: Mapping[Endpoint, Identity], router: str, output_tokens: int) -> Send:
        """Token ids to /v1/completions: of the router, of each server in turn, or of a prefill and a decode server."""
        model = next(iter(servers.values())).model_name
        prefill = [endpoint for endpoint in servers if endpoint.role == "prefill"]
        others = [endpoint for endpoint in servers if endpoint.role != "prefill"]
        targets = itertools.cycle([_target(endpoint) for endpoint in others])
        if router:
            targets = itertools.cycle([Target("router", f"{router}/v1/completions", read_event)])
        firsts = itertools.cycle(prefill) if prefill and not router else None

        async def send(client: httpx.AsyncClient, index: int, prompt: list[int]) -> TimedAnswer:
            body = _body(model, prompt, output_tokens)
            first = next(firsts) if firsts else None
            if first is None:
                return await stream(client, index, next(targets), body)
            return await _send_split(client, index, first, next(targets), body)

        return send


def _target(endpoint: Endpoint) -> Target:
    return Target(endpoint.name, f"{endpoint.url}/v1/completions", read_event)


def _body(model: str, prompt: list[int], output_tokens: int) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def _send_split(
    client: httpx.AsyncClient, index: int, first: Endpoint, target: Target, body: dict[str, Any]
) -> TimedAnswer:
    """One token from the prefill server, the rest from the decode server, which fetches the KV from the first.

    The parameters that the prefill server hands over are those of NIXL; a connector through shared storage has none.
    """
    remote = dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port"))
    ask = {
        **body,
        "max_tokens": 1,
        "stream": False,
        "kv_transfer_params": {"do_remote_decode": True, "do_remote_prefill": False, **remote},
    }
    del ask["stream_options"]
    url = f"{first.url}/v1/completions"
    sent_ns, start_ns = time.time_ns(), time.perf_counter_ns()
    try:
        answer = await client.post(url, json=ask)
    except httpx.HTTPError as error:
        raise fault(error, url) from error
    prefill_ns = time.perf_counter_ns() - start_ns
    if answer.is_error:
        trouble = f"{url} answers {answer.status_code}: {said(answer)}"
        return TimedAnswer(index, first.name, sent_ns, None, (), prefill_ns, fault=trouble)
    handed_over = answer.json().get("kv_transfer_params")
    rest = await stream(client, index, target, {**body, "kv_transfer_params": handed_over} if handed_over else body)
    return replace(
        rest,
        sent_ns=sent_ns,
        first_token_ns=None if rest.first_token_ns is None else prefill_ns + rest.first_token_ns,
        total_ns=prefill_ns + rest.total_ns,
    )


def read_event(event: dict[str, Any]) -> Chunk:
    """What one event of /v1/completions says: text, and in the last one the counts."""
    usage = event.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return Chunk(
        is_output=bool(event.get("choices")),
        prompt_tokens=usage.get("prompt_tokens"),
        cached_tokens=details.get("cached_tokens"),
        output_tokens=usage.get("completion_tokens"),
    )


def _configure(identity: Identity, config: Mapping[str, Any]) -> None:
    """Add what the server's whole configuration tells."""
    parallel = config.get("parallel_config") or {}
    identity.layout = {axis: parallel[name] for axis, name in _DEGREES.items() if isinstance(parallel.get(name), int)}
    if identity.layout and parallel.get("enable_expert_parallel"):
        identity.layout["ep"] = math.prod(identity.layout.get(axis, 1) for axis in ("tp", "dp", "cp"))
    identity.settings |= {name: parallel[name] for name in _PARALLEL_SETTINGS if parallel.get(name) is not None}
    replicas = identity.layout.get("dp", 1)
    identity.is_one_host = parallel.get("nnodes") == 1 and parallel.get("data_parallel_size_local") == replicas
    if identity.is_one_host and "world_size" in parallel:
        identity.ranks = parallel["world_size"] * replicas
    profiler = config.get("profiler_config") or {}
    identity.trace_dir = profiler.get("torch_profiler_dir") or ""
    identity.profiler |= {
        ours: profiler[name] for name, ours in _PROFILER_SETTINGS.items() if profiler.get(name) is not None
    }
    transfer = config.get("kv_transfer_config") or {}
    if connector := transfer.get("kv_connector"):
        identity.settings["kv_connector"] = connector


def _from_text(config: str) -> dict[str, Any]:
    """The degrees in the one-line form, which is all that versions before 0.11 serve."""
    matches = {name: re.search(rf"\b{name}=(\d+)", config) for name in _DEGREES.values()}
    return {"parallel_config": {name: int(match[1]) for name, match in matches.items() if match}}


def _number(version: str) -> tuple[int, int] | None:
    """Major and minor; None for a build that does not say ("dev", "0.1.dev1+g…" of an untagged tree)."""
    match = re.match(r"(\d+)\.(\d+)", version)
    number = (int(match[1]), int(match[2])) if match else (0, 1)
    return None if number == (0, 1) else number


def _profiler_is_off(endpoint: Endpoint, version: str) -> MissingEvidenceError:
    number = _number(version)
    if number is None:
        cure = f"start it with {_FLAGS} (before 0.13: {_VARIABLES} in its environment)"
    elif number >= FLAGS_SINCE:
        cure = f"start it with {_FLAGS}"
    else:
        shapes = _SHAPE_VARIABLES if number >= SHAPES_BY_VARIABLE_SINCE else ""
        cure = f"start it with {_VARIABLES}{shapes} in its environment"
    return MissingEvidenceError(f"profiling is off in vLLM {version} at {endpoint.url}", cure)
