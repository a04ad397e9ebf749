"""A serving engine that computes nothing: the endpoints of vLLM and SGLang as documented, on loopback, for tests.

Sources: vllm/entrypoints/serve/profile/api_router.py and .../dev/server_info/api_router.py;
sglang/srt/entrypoints/http_server.py and srt/managers/scheduler_components/profiler_manager.py.
"""

from __future__ import annotations

import gzip
import json
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

MODEL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 512,
}


@dataclass
class Behaviour:
    """How the server answers.

    `flush`: "whole" writes traces when the profile stops, "never" writes none, "cut" writes half of one.
    `traces`: real trace files to copy instead of drawn ones, one a rank.
    """

    engine: str = "vllm"
    version: str = "0.32.0"
    trace_dir: Path | None = None
    ranks: int = 2
    profiling: bool = True
    dev_mode: bool = True
    busy: bool = False
    flush: str = "whole"
    traces: tuple[Path, ...] = ()
    api_key: str = ""
    metrics: bool = True
    engines: int = 1
    old_paths: bool = False
    model_root: str = "tiny"
    max_model_len: int = 1024
    server_info: dict = field(default_factory=dict)
    fail_every: int = 0
    refuse: str = ""
    die_at: int = 0
    on_request: object = None
    kv_connector: str = ""


class StandIn:
    """A running server and what it was asked."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.calls: list[tuple[str, dict]] = []
        self.headers: list[dict] = []
        self.under_way = self.most_under_way = self.requests = 0
        self.profiling: dict | None = None
        self.lock = threading.Lock()
        self.counters = dict.fromkeys(
            ("queries", "hits", "prompt", "generated", "transfers", "kv_bytes", "kv_seconds"), 0
        )
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def bodies(self, path: str) -> list[dict]:
        """What was posted to a path."""
        return [body for called, body in self.calls if called == path]

    def prompts(self) -> list[list[int]]:
        """Token ids of all requests, in order."""
        return [
            body.get("prompt") or body["input_ids"] for _, body in self.calls if {"prompt", "input_ids"} & body.keys()
        ]

    def metrics(self) -> str:
        """One page of metrics; every engine has the same figures."""
        lines = ["# TYPE python_info gauge", 'python_info{version="3"} 1.0']
        if self.behaviour.engine == "vllm":
            for name, key, kind in (
                ("vllm:prefix_cache_queries", "queries", "counter"),
                ("vllm:prefix_cache_hits", "hits", "counter"),
                ("vllm:generation_tokens", "generated", "counter"),
                ("vllm:nixl_bytes_transferred", "kv_bytes", "histogram"),
                ("vllm:nixl_xfer_time_seconds", "kv_seconds", "histogram"),
            ):
                lines += self._family(name, key, kind)
            lines += [
                "# TYPE vllm:num_requests_running gauge",
                'vllm:num_requests_running{engine="0",model_name="m"} 0.0',
            ]
        else:
            lines += self._family("sglang:prompt_tokens", "prompt", "counter")
            lines += self._family("sglang:cached_tokens", "hits", "counter")
        return "\n".join(lines) + "\n"

    def _family(self, name: str, key: str, kind: str) -> list[str]:
        lines = [f"# TYPE {name}{'_total' if kind == 'counter' else ''} {kind}"]
        for engine in range(self.behaviour.engines):
            labels = f'{{engine="{engine}",model_name="m"}}'
            if kind == "counter":
                lines.append(f"{name}_total{labels} {float(self.counters[key])}")
            else:
                count = self.counters["transfers"]
                lines.append(f'{name}_bucket{{engine="{engine}",le="+Inf",model_name="m"}} {float(count)}')
                lines.append(f"{name}_count{labels} {float(count)}")
                lines.append(f"{name}_sum{labels} {float(self.counters[key])}")
        return lines

    def write_traces(self, folder: Path, stages: tuple[str, ...] = ("",)) -> None:
        """Write what the profiler of this engine would."""
        if self.behaviour.flush == "never":
            return
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.time_ns()
        for rank in range(self.behaviour.ranks):
            for stage in stages:
                if self.behaviour.engine == "vllm":
                    path = folder / f"rank{rank}.{stamp}.pt.trace.json.gz"
                else:
                    path = folder / f"{stamp / 1e9}-TP-{rank}{stage and '-' + stage}.trace.json.gz"
                if self.behaviour.traces:
                    shutil.copy(self.behaviour.traces[rank], path)
                    continue
                data = gzip.compress(json.dumps(trace(rank, self.behaviour.ranks)).encode())
                path.write_bytes(data[: len(data) // 2] if self.behaviour.flush == "cut" else data)
        if self.behaviour.engine == "vllm":
            (folder / "rank0.profiler_out.txt").write_text("table\n")


def trace(rank: int, world_size: int) -> dict:
    """A trace of one step."""
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": world_size, "pg_config": []},
        "traceEvents": [
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": "execute_context_1(96)_generation_0(0)",
                "pid": 1,
                "tid": 1,
                "ts": 1.0,
                "dur": 900.0,
            },
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 500.0},
        ],
    }


@contextmanager
def running(**behaviour):
    """A stand-in that serves until the end of the block."""
    server = StandIn(Behaviour(**behaviour))
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


def _handler(server: StandIn) -> type[BaseHTTPRequestHandler]:
    how = server.behaviour

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.answer({})

        def do_POST(self):
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            self.answer(json.loads(text) if text else {})

        def answer(self, body):
            path = urlsplit(self.path).path
            with server.lock:
                server.calls.append((path, body))
                server.headers.append(dict(self.headers))
            if how.api_key and self.headers.get("Authorization") != f"Bearer {how.api_key}":
                self.text(401, "unauthorized")
            elif path == "/metrics":
                self.text(200 if how.metrics else 404, server.metrics())
            else:
                (self.vllm if how.engine == "vllm" else self.sglang)(path, body)

        # vLLM ---------------------------------------------------------------------------------------------------

        def vllm(self, path, body):
            if path == "/version":
                self.json({"version": how.version})
            elif path == "/v1/models":
                self.json({"data": [{"id": "m", "root": how.model_root, "max_model_len": how.max_model_len}]})
            elif path == "/server_info" and how.dev_mode:
                self.json({"vllm_config": _vllm_config(how), "vllm_env": {"VLLM_API_KEY": "sk-env"}} | how.server_info)
            elif path == "/start_profile" and how.profiling:
                self.start_vllm(body)
            elif path == "/stop_profile" and how.profiling:
                server.profiling = None
                server.write_traces(how.trace_dir)
                self.text(200, "")
            elif path == "/v1/completions":
                self.complete(body)
            else:
                self.text(404, '{"detail":"Not Found"}')

        def start_vllm(self, body):
            if self.command == "GET":
                self.text(405, '{"detail":"Method Not Allowed"}')
            elif how.busy:
                self.text(409, "a session is active")
            else:
                server.profiling = body
                self.text(200, "")

        def complete(self, body):
            if not self.admit():
                return
            try:
                is_remote = (body.get("kv_transfer_params") or {}).get("remote_engine_id") == "p"
                if is_remote:
                    server.counters["transfers"] += 1
                    server.counters["kv_bytes"] += 1000 * len(body["prompt"])
                    server.counters["kv_seconds"] += 0.002
                self.count(body["prompt"], body["max_tokens"])
                if body["stream"]:
                    self.events(
                        body["max_tokens"], lambda _: {"choices": [{"text": "a"}], "usage": None}, self.usage(body)
                    )
                else:
                    self.json(
                        {
                            "choices": [{"text": "a"}],
                            "kv_transfer_params": {"do_remote_prefill": True, "remote_engine_id": "p"},
                        }
                    )
            finally:
                self.leave()

        def usage(self, body):
            return {
                "choices": [],
                "usage": {"prompt_tokens": len(body["prompt"]), "completion_tokens": body["max_tokens"]},
            }

        # SGLang -------------------------------------------------------------------------------------------------

        def sglang(self, path, body):
            prefix = "/get" if how.old_paths else ""
            if path == (f"{prefix}_server_info" if prefix else "/server_info"):
                self.json(
                    {
                        "tp_size": how.ranks,
                        "pp_size": 1,
                        "dp_size": 1,
                        "nnodes": 1,
                        "version": how.version,
                        "api_key": "sk-args",
                        "served_model_name": "m",
                        "context_length": how.max_model_len,
                        "launch_command": "sglang serve --api-key sk-args --tp 2",
                    }
                    | how.server_info
                )
            elif path == (f"{prefix}_model_info" if prefix else "/model_info"):
                self.json({"model_path": how.model_root})
            elif path == "/start_profile":
                server.profiling = body
                if body.get("num_steps"):
                    stages = ("EXTEND", "DECODE") if body.get("profile_by_stage") else ("",)
                    server.write_traces(Path(body["output_dir"]), stages)
                self.text(200, "Start profiling.\n")
            elif path == "/stop_profile":
                self.stop_sglang()
            elif path == "/generate":
                self.generate(body)
            else:
                self.text(404, '{"detail":"Not Found"}')

        def stop_sglang(self):
            body, server.profiling = server.profiling, None
            if body is None or body.get("num_steps"):
                self.text(500, "Internal Server Error")
            else:
                server.write_traces(Path(body["output_dir"]))
                self.text(200, "Stop profiling. This will take some time.\n")

        def generate(self, body):
            if not self.admit():
                return
            n = body["sampling_params"]["max_new_tokens"]
            try:
                self.count(body["input_ids"], n)
                prompt = len(body["input_ids"])
                self.events(
                    n,
                    lambda at: {
                        "text": "a",
                        "meta_info": {"prompt_tokens": prompt, "completion_tokens": at + 1, "cached_tokens": 3},
                    },
                    None,
                )
            finally:
                self.leave()

        # both ---------------------------------------------------------------------------------------------------

        def admit(self):
            with server.lock:
                server.requests += 1
                number = server.requests
                server.under_way += 1
                server.most_under_way = max(server.most_under_way, server.under_way)
            if callable(how.on_request):
                how.on_request(number)
            if how.die_at and number >= how.die_at:
                server.http.socket.close()  # new connections are refused, this one ends without an answer
                self.leave()
                self.close_connection = True
                return False
            if how.refuse or (how.fail_every and number % how.fail_every == 0):
                self.leave()
                self.text(400, how.refuse or "bad luck")
                return False
            return True

        def leave(self):
            with server.lock:
                server.under_way -= 1

        def count(self, prompt, output_tokens):
            server.counters["queries"] += len(prompt)
            server.counters["hits"] += len(prompt) // 4
            server.counters["prompt"] += len(prompt)
            server.counters["generated"] += output_tokens

        def events(self, n, event, last):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for part in [event(at) for at in range(n)] + [last] * (last is not None):
                self.wfile.write(f"data: {json.dumps(part)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")

        def json(self, document):
            self.text(200, json.dumps(document), "application/json")

        def text(self, status, text, kind="text/plain"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    return Handler


def _vllm_config(how: Behaviour) -> dict:
    return {
        "parallel_config": {
            "tensor_parallel_size": how.ranks,
            "pipeline_parallel_size": 1,
            "data_parallel_size": 1,
            "data_parallel_size_local": 1,
            "decode_context_parallel_size": 1,
            "world_size": how.ranks,
            "nnodes": 1,
            "enable_expert_parallel": False,
        },
        "profiler_config": {
            "profiler": "torch",
            "torch_profiler_dir": str(how.trace_dir or ""),
            "torch_profiler_record_shapes": True,
            "torch_profiler_with_stack": False,
        },
        "kv_transfer_config": {"kv_connector": how.kv_connector} if how.kv_connector else None,
    }
