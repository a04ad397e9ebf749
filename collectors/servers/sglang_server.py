"""SGLang's HTTP endpoints: server arguments, profiler, /generate, prefill and decode servers.

Sources: sglang/srt/entrypoints/http_server.py, sglang/profiler.py, srt/managers/io_struct.py (ProfileReqInput) and
srt/managers/scheduler_components/profiler_manager.py at v0.5.23 and the tags named below.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from analyzer.errors import ShardscopeError, UsageError
from collectors.servers.engine import Endpoint, Identity, Plan
from collectors.servers.http import NOT_FOUND, Http, check
from collectors.servers.load import Chunk, Send, Target, TimedAnswer, stream

BOOTSTRAP_PORT = 8998  # --disaggregation-bootstrap-port where it is not given

# New name first, then the one before 0.5.
_SERVER_INFO = ("/server_info", "/get_server_info")
_MODEL_INFO = ("/model_info", "/get_model_info")

_DEGREES = {
    "tp": "tp_size",
    "pp": "pp_size",
    "dp": "dp_size",
    "ep": "ep_size",
    "cp": "attn_cp_size",
    "dcp": "dcp_size",
}
_SETTINGS = (
    "attention_backend",
    "chunked_prefill_size",
    "deepep_mode",
    "disable_radix_cache",
    "disaggregation_mode",
    "disaggregation_transfer_backend",
    "enable_dp_attention",
    "enable_eplb",
    "moe_a2a_backend",
    "page_size",
    "quantization",
)


class SglangServer:
    """SGLang's own HTTP server."""

    name = "sglang"
    asks_for_folder = True

    def identify(self, http: Http, endpoint: Endpoint) -> Identity:
        """Version, model, and the arguments the server was started with.

        Raises:
            ShardscopeError: it is no SGLang server.
        """
        server_info = _first(http, endpoint, _SERVER_INFO)
        if server_info is None:
            raise ShardscopeError(
                f"{endpoint.url} has no /server_info as SGLang has; is this the server itself, not a router?"
            )
        model = _first(http, endpoint, _MODEL_INFO) or {}
        identity = Identity(versions={"sglang": str(server_info.get("version", "unknown"))}, info=server_info)
        identity.info_file = "server_args.json"
        identity.model_path = str(model.get("model_path") or server_info.get("model_path") or "")
        identity.model_name = str(server_info.get("served_model_name") or identity.model_path)
        identity.settings = {name: server_info[name] for name in _SETTINGS if server_info.get(name) is not None}
        identity.settings["model"] = identity.model_path
        longest = server_info.get("context_length")
        identity.max_tokens = longest if isinstance(longest, int) else None
        identity.layout, identity.ranks = _layout(server_info)
        identity.is_one_host = server_info.get("nnodes", 1) == 1
        return identity

    def start(self, http: Http, endpoint: Endpoint, identity: Identity, plan: Plan) -> None:
        """Start the profiler for so many forward passes; it ends by itself.

        Raises:
            UsageError: steps are to be skipped, which SGLang counts from its own start and not from the request.
        """
        if plan.skip_steps:
            raise UsageError("--skip-steps is for vLLM: SGLang counts start_step from the start of the server")
        body: dict[str, Any] = {
            "output_dir": plan.trace_dir,
            "activities": ["CPU", "GPU"],
            "record_shapes": True,
            "with_stack": plan.with_stack,
            "profile_by_stage": plan.by_stage,
        }
        if plan.steps:
            body["num_steps"] = plan.steps
        answer = http.post(f"{endpoint.url}/start_profile", body)
        if answer.status_code == NOT_FOUND:
            raise ShardscopeError(f"{endpoint.url} answers 404 at /start_profile: is this the server's own address?")
        check(answer)
        identity.profiler |= {name: value for name, value in body.items() if name != "output_dir"}
        identity.profiler |= {"steps": plan.steps, "bounded_by": "steps" if plan.steps else "load"}

    def stop(self, http: Http, endpoint: Endpoint, identity: Identity) -> None:
        """Stop the profiler, or find that it has stopped: SGLang then answers with an error of its own."""
        answer = http.post(f"{endpoint.url}/stop_profile")
        has_ended = answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR and identity.profiler["steps"]
        if not has_ended:
            check(answer)

    def sender(self, servers: Mapping[Endpoint, Identity], router: str, output_tokens: int) -> Send:
        """Token ids to /generate: of the router, of each server in turn, or of a prefill and a decode server."""
        prefill = [
            (endpoint, _bootstrap(endpoint, servers[endpoint])) for endpoint in servers if endpoint.role == "prefill"
        ]
        others = [endpoint for endpoint in servers if endpoint.role != "prefill"]
        targets = itertools.cycle([Target(other.name, f"{other.url}/generate", read_event) for other in others])
        if router:
            targets = itertools.cycle([Target("router", f"{router}/generate", read_event)])
        firsts = itertools.cycle(prefill) if prefill and not router else None
        rooms = random.Random()  # noqa: S311 -- a room number, distinct between collections

        async def send(client: httpx.AsyncClient, index: int, prompt: list[int]) -> TimedAnswer:
            body = _body(prompt, output_tokens)
            if firsts is None:
                return await stream(client, index, next(targets), body)
            endpoint, bootstrap = next(firsts)
            body |= bootstrap | {"bootstrap_room": rooms.getrandbits(62)}
            first = Target(endpoint.name, f"{endpoint.url}/generate", read_event)
            # Both at once: the decode server reserves room and tells the prefill server where to put the KV.
            ask = asyncio.ensure_future(stream(client, index, first, body))
            answer = await stream(client, index, next(targets), body)
            asked = await ask
            return answer if answer.fault or not asked.fault else asked

        return send


def read_event(event: dict[str, Any]) -> Chunk:
    """What one event of /generate says: text and counts so far."""
    meta = event.get("meta_info") or {}
    return Chunk(
        is_output="text" in event or "output_ids" in event,
        prompt_tokens=meta.get("prompt_tokens"),
        cached_tokens=meta.get("cached_tokens"),
        output_tokens=meta.get("completion_tokens"),
    )


def _body(prompt: list[int], output_tokens: int) -> dict[str, Any]:
    return {
        "input_ids": prompt,
        "sampling_params": {"max_new_tokens": output_tokens, "temperature": 0, "ignore_eos": True},
        "stream": True,
    }


def _bootstrap(endpoint: Endpoint, identity: Identity) -> dict[str, Any]:
    port = identity.info.get("disaggregation_bootstrap_port") or BOOTSTRAP_PORT
    return {"bootstrap_host": urlsplit(endpoint.url).hostname, "bootstrap_port": port}


def _first(http: Http, endpoint: Endpoint, paths: tuple[str, ...]) -> dict[str, Any] | None:
    """The first of several pages that the server has."""
    for path in paths:
        if (document := http.document(f"{endpoint.url}{path}")) is not None:
            return document
    return None


def _layout(server_info: Mapping[str, Any]) -> tuple[dict[str, int], int | None]:
    """Degrees, and the number of scheduler processes, each of which writes a trace.

    With attention DP the replicas of attention share the ranks of the TP group; otherwise each replica has its own.
    """
    degrees = {axis: server_info[name] for axis, name in _DEGREES.items() if isinstance(server_info.get(name), int)}
    attention = server_info.get("attn_dp_size")
    shares_ranks = bool(server_info.get("enable_dp_attention")) or (isinstance(attention, int) and attention > 1)
    if isinstance(attention, int) and attention > 1:
        degrees["dp"] = attention
    if "tp" not in degrees:
        return degrees, None
    replicas = 1 if shares_ranks else degrees.get("dp", 1)
    return degrees, degrees["tp"] * degrees.get("pp", 1) * replicas
