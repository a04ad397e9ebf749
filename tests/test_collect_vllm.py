"""`collect vllm`: what is sent, what is gathered, and one clear line for whatever goes wrong."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from stand_in_server import MODEL, running

from analyzer.errors import MissingEvidenceError, RunNotFoundError, ShardscopeError, UsageError
from collectors.servers import options as server_options
from collectors.servers import trace_files
from collectors.vllm import command

SMALL = ("--requests", "6", "--concurrency", "3", "--input-len", "32", "--output-len", "5", "--steps", "4")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files are whole at once, so nothing needs to be waited for."""
    monkeypatch.setattr(trace_files, "QUIET_S", 0.02)
    monkeypatch.setattr(trace_files, "POLL_S", 0.01)


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MODEL))
    return folder


@pytest.fixture
def server(tmp_path, model):
    with running(trace_dir=tmp_path / "traces", model_root=str(model)) as server:
        yield server


def collect(url, out, *arguments):
    return CliRunner().invoke(command, ["--url", url, "--out", str(out), *SMALL, *arguments], catch_exceptions=False)


def manifest(folder):
    return json.loads((folder / "run.json").read_text())


def test_traces_of_every_rank_are_gathered(server, tmp_path):
    result = collect(server.url, tmp_path / "run")
    names = sorted(path.name.split(".")[0] for path in (tmp_path / "run").glob("*.pt.trace.json.gz"))
    assert names == ["rank0", "rank1"]
    assert "2 traces" in result.stderr


def test_layout_model_and_versions_are_recorded(server, tmp_path):
    collect(server.url, tmp_path / "run")
    run = manifest(tmp_path / "run")
    assert (run["complete"], run["engine"], run["layout"]) == (True, "vllm", {"tp": 2, "pp": 1, "dp": 1, "dcp": 1})
    assert run["model"] == MODEL
    assert run["versions"]["vllm"] == "0.32.0"


def test_ranks_on_one_host_are_placed(server, tmp_path):
    collect(server.url, tmp_path / "run")
    assert sorted(manifest(tmp_path / "run")["topology"]["nodes"]) == ["0", "1"]


def test_metrics_are_kept_as_text_and_as_growth(server, tmp_path):
    collect(server.url, tmp_path / "run")
    run = manifest(tmp_path / "run")
    assert run["prefix_cache"] == {"queried_tokens": 192, "cached_tokens": 48}
    assert run["metrics"]["change"]['vllm:generation_tokens_total{engine="0"}'] == 30
    assert (tmp_path / "run/metrics_before.prom").read_text() != (tmp_path / "run/metrics_after.prom").read_text()


def test_the_same_load_is_timed_without_the_profiler_first(server, tmp_path):
    collect(server.url, tmp_path / "run")
    order = [path for path, body in server.calls if path in {"/start_profile", "/v1/completions", "/stop_profile"}]
    assert order == [
        "/start_profile",  # GET: is the page there?
        *["/v1/completions"] * (2 + 6),
        "/start_profile",
        *["/v1/completions"] * 6,
        "/stop_profile",
    ]
    assert manifest(tmp_path / "run")["reference"]["requests"] == 6
    assert manifest(tmp_path / "run")["reference"]["inflation"] > 0


def test_no_reference_is_sent_where_none_is_wanted(server, tmp_path):
    collect(server.url, tmp_path / "run", "--no-reference")
    assert len(server.prompts()) == 2 + 6
    assert "reference" not in manifest(tmp_path / "run")


def test_the_profile_is_bounded_by_steps_in_the_request(server, tmp_path):
    collect(server.url, tmp_path / "run", "--skip-steps", "2")
    assert server.bodies("/start_profile")[1] == {"max_iterations": 4, "delay_iterations": 2}
    assert manifest(tmp_path / "run")["profile"]["bounded_by"] == "steps"


def test_a_version_that_takes_no_bounds_is_profiled_for_the_whole_load(tmp_path, model):
    with running(version="0.11.0", trace_dir=tmp_path / "traces", model_root=str(model)) as server:
        collect(server.url, tmp_path / "run")
    assert manifest(tmp_path / "run")["profile"]["bounded_by"] == "load"


def test_prompts_are_token_ids_and_the_same_for_the_same_seed(tmp_path, model):
    sent = []
    for out in ("first", "second"):
        with running(trace_dir=tmp_path / out, model_root=str(model)) as server:
            collect(server.url, tmp_path / f"run-{out}", "--seed", "7", "--concurrency", "1")
            sent.append(server.prompts())
    assert sent[0] == sent[1]
    assert all(10 <= token < MODEL["vocab_size"] for prompt in sent[0] for token in prompt)


def test_no_more_requests_are_under_way_than_stated(server, tmp_path):
    collect(server.url, tmp_path / "run", "--requests", "12")
    assert 1 <= server.most_under_way <= 3


def test_the_request_log_holds_prompts_and_counts(server, tmp_path):
    collect(server.url, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/requests.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert (len(lines[0]["prompt_token_ids"]), lines[0]["prompt_tokens"], lines[0]["output_tokens"]) == (32, 32, 5)


def test_replicas_are_counted_from_the_metrics(tmp_path, model):
    arguments = {"trace_dir": tmp_path / "traces", "model_root": str(model), "engines": 2, "dev_mode": False}
    with running(**arguments) as server:
        collect(server.url, tmp_path / "run", "--trace-dir", str(tmp_path / "traces"))
    assert manifest(tmp_path / "run")["layout"] == {"dp": 2}


def test_degrees_the_user_states_are_recorded(tmp_path, model):
    with running(trace_dir=tmp_path / "traces", model_root=str(model), dev_mode=False) as server:
        collect(server.url, tmp_path / "run", "--trace-dir", str(tmp_path / "traces"), "--layout", "tp=2,ep=2")
    assert manifest(tmp_path / "run")["layout"] == {"tp": 2, "ep": 2}


def test_prefill_and_decode_servers_get_a_run_each_with_the_transfers(tmp_path, model):
    prefill = {"trace_dir": tmp_path / "p", "model_root": str(model), "ranks": 1, "kv_connector": "NixlConnector"}
    with running(**prefill) as one, running(**{**prefill, "trace_dir": tmp_path / "d"}) as two:
        urls = ("--url", f"prefill={one.url}", "--url", f"decode={two.url}")
        arguments = [*urls, "--out", str(tmp_path / "run"), *SMALL, "--concurrency", "1"]
        CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert [manifest(tmp_path / "run" / role)["role"] for role in ("prefill", "decode")] == ["prefill", "decode"]
    decode = manifest(tmp_path / "run/decode")
    assert decode["kv_transfers"] == {"transfers": 6, "bytes": 192_000, "time_ns": 12_000_000}
    assert [(t["transfers"], t["bytes"], t["time_ns"]) for t in decode["transfers"]] == [(1, 32_000, 2_000_000)] * 6
    assert decode["settings"]["kv_connector"] == "NixlConnector"


def test_the_decode_server_gets_what_the_prefill_server_hands_over(tmp_path, model):
    first, second = ({"trace_dir": tmp_path / name, "model_root": str(model)} for name in ("p", "d"))
    with running(**first) as one, running(**second) as two:
        urls = ["--url", f"prefill={one.url}", "--url", f"decode={two.url}"]
        CliRunner().invoke(command, [*urls, "--out", str(tmp_path / "run"), *SMALL], catch_exceptions=False)
    assert {body["max_tokens"] for body in one.bodies("/v1/completions")} == {1}
    handed_over = [body["kv_transfer_params"]["remote_engine_id"] for body in two.bodies("/v1/completions")]
    assert handed_over == ["p"] * len(handed_over)


def test_replicas_behind_a_router_are_all_profiled_and_the_router_takes_the_load(tmp_path, model):
    root = str(model)
    with (
        running(trace_dir=tmp_path / "a", model_root=root) as one,
        running(trace_dir=tmp_path / "b", model_root=root) as two,
        running(model_root=root) as router,
    ):
        urls = ["--url", f"w0={one.url}", "--url", f"w1={two.url}", "--router", router.url]
        CliRunner().invoke(command, [*urls, "--out", str(tmp_path / "run"), *SMALL], catch_exceptions=False)
    assert (len(one.prompts()), len(two.prompts()), len(router.prompts())) == (0, 0, 4 + 6 + 6)
    assert (tmp_path / "run/w0/run.json").exists()
    assert (tmp_path / "run/w1/run.json").exists()


def test_keys_and_passwords_are_written_nowhere(tmp_path, model, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-mine")
    monkeypatch.setattr(sys, "argv", ["shardscope", "collect", "vllm", "--url", "http://me:pw@host:1"])
    with running(trace_dir=tmp_path / "traces", model_root=str(model), api_key="sk-mine") as server:
        collect(server.url, tmp_path / "run", "--api-key-env", "MY_KEY")
    text = "".join(path.read_text() for path in (tmp_path / "run").glob("*.json*") if path.suffix != ".gz")
    assert not [secret for secret in ("sk-mine", "sk-env", "me:pw") if secret in text]


def test_a_server_without_profiling_is_told_how_to_be_started(tmp_path):
    with running(profiling=False) as server, pytest.raises(MissingEvidenceError) as error:
        collect(server.url, tmp_path / "run")
    assert str(error.value) == (
        f"profiling is off in vLLM 0.32.0 at {server.url}; start it with --profiler-config.profiler torch "
        "--profiler-config.torch_profiler_dir DIR --profiler-config.torch_profiler_record_shapes true "
        "--profiler-config.torch_profiler_with_stack false"
    )


@pytest.mark.parametrize(
    ("version", "cure"),
    [
        ("0.13.0", r"--profiler-config\.profiler torch"),
        ("0.11.2", r"VLLM_TORCH_PROFILER_DIR=DIR VLLM_TORCH_PROFILER_RECORD_SHAPES=1 .* in its environment$"),
        ("0.8.5.post1", r"VLLM_TORCH_PROFILER_DIR=DIR in its environment$"),
        ("0.1.dev1+gabc", r"before 0\.13: VLLM_TORCH_PROFILER_DIR"),
    ],
)
def test_the_flag_fits_the_version(tmp_path, version, cure):
    with running(profiling=False, version=version) as server, pytest.raises(MissingEvidenceError, match=cure):
        collect(server.url, tmp_path / "run")


def test_a_server_that_never_writes_is_given_up_after_the_timeout(tmp_path, model):
    with running(trace_dir=tmp_path / "traces", model_root=str(model), flush="never") as server:
        (tmp_path / "traces").mkdir()
        with pytest.raises(RunNotFoundError, match=r"no trace came to .*traces within 0\.2 s"):
            collect(server.url, tmp_path / "run", "--timeout", "0.2")
    assert manifest(tmp_path / "run")["complete"] is False


def test_a_directory_of_another_machine_is_suspected_where_it_does_not_exist(tmp_path, model):
    with (
        running(trace_dir=tmp_path / "far", model_root=str(model), flush="never") as server,
        pytest.raises(RunNotFoundError, match=r"pass --trace-dir HOST:.*far"),
    ):
        collect(server.url, tmp_path / "run", "--timeout", "0.2")


def test_a_trace_that_is_cut_is_no_trace(tmp_path, model):
    with (
        running(trace_dir=tmp_path / "traces", model_root=str(model), flush="cut") as server,
        pytest.raises(RunNotFoundError, match=r"is not whole after 0\.2 s"),
    ):
        collect(server.url, tmp_path / "run", "--timeout", "0.2")


def test_ctrl_c_while_traces_are_waited_for_keeps_the_whole_ones(tmp_path, model, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(trace_files, "settled", interrupt)
    with running(trace_dir=tmp_path / "traces", model_root=str(model)) as server:
        result = collect(server.url, tmp_path / "run")
    assert result.exit_code == 1
    assert len(list((tmp_path / "run").glob("rank*.gz"))) == 2
    assert manifest(tmp_path / "run")["absent"] == {"traces": "interrupted"}


def test_degrees_are_read_from_the_one_line_form_of_old_versions(tmp_path, model):
    text = "model='m', tensor_parallel_size=4, pipeline_parallel_size=2, data_parallel_size=1, quantization=None"
    arguments = {"trace_dir": tmp_path / "traces", "model_root": str(model), "server_info": {"vllm_config": text}}
    with running(**arguments) as server:
        collect(server.url, tmp_path / "run", "--trace-dir", str(tmp_path / "traces"))
    assert manifest(tmp_path / "run")["layout"] == {"tp": 4, "pp": 2, "dp": 1}


def test_a_prefill_server_that_refuses_fails_the_request_and_not_the_collection(tmp_path, model):
    first, second = ({"trace_dir": tmp_path / name, "model_root": str(model)} for name in ("p", "d"))
    with running(**first, fail_every=9) as one, running(**second) as two:
        urls = ["--url", f"prefill={one.url}", "--url", f"decode={two.url}"]
        CliRunner().invoke(command, [*urls, "--out", str(tmp_path / "run"), *SMALL], catch_exceptions=False)
    turns = manifest(tmp_path / "run/decode")["load"]
    assert turns["reference"]["failed"] + turns["profiled"]["failed"] == 1


def test_files_on_another_machine_are_named_for_copying(tmp_path, model):
    with running(trace_dir=tmp_path / "traces", model_root=str(model)) as server:
        result = collect(server.url, tmp_path / "run", "--trace-dir", "gpu-7:/var/traces")
    assert f"copy them from gpu-7:/var/traces to {tmp_path / 'run'}" in result.stderr
    assert manifest(tmp_path / "run")["complete"] is True


def test_a_server_that_does_not_say_where_it_writes_needs_the_option(tmp_path):
    with running(dev_mode=False) as server, pytest.raises(UsageError, match="pass that directory as --trace-dir DIR"):
        collect(server.url, tmp_path / "run")


def test_a_server_that_dies_ends_the_collection_and_what_is_there_is_kept(tmp_path, model):
    with (
        running(trace_dir=tmp_path / "traces", model_root=str(model), die_at=4) as server,
        pytest.raises(ShardscopeError, match="cannot connect"),
    ):
        collect(server.url, tmp_path / "run", "--no-reference", "--timeout", "1")
    run = manifest(tmp_path / "run")
    assert run["complete"] is False
    assert "cannot connect" in run["absent"]["metrics after the load"]


def test_an_address_where_nobody_listens_is_one_line(tmp_path):
    with running() as server:
        url = server.url
    with pytest.raises(ShardscopeError, match=r"cannot connect .*; is the server up, and is this its address\?"):
        collect(url, tmp_path / "run")


def test_another_server_is_not_taken_for_vllm(tmp_path):
    with running(engine="sglang") as server, pytest.raises(ShardscopeError, match="has no /version as vLLM has"):
        collect(server.url, tmp_path / "run")


def test_a_profile_that_is_under_way_is_left_alone(tmp_path, model):
    with (
        running(trace_dir=tmp_path / "traces", model_root=str(model), busy=True) as server,
        pytest.raises(ShardscopeError, match="is being profiled already"),
    ):
        collect(server.url, tmp_path / "run")
    assert server.bodies("/stop_profile") == []


def test_a_server_that_wants_a_key_says_so(tmp_path):
    with running(api_key="sk-1") as server, pytest.raises(ShardscopeError, match="pass --api-key-env VARIABLE"):
        collect(server.url, tmp_path / "run")


def test_requests_that_all_fail_end_with_the_servers_own_words(tmp_path, model):
    words = r"all 2 requests failed; the first: .* answers 400: prompt is too long"
    arguments = {"trace_dir": tmp_path / "traces", "model_root": str(model), "refuse": "prompt is too long"}
    with running(**arguments) as server, pytest.raises(ShardscopeError, match=words):
        collect(server.url, tmp_path / "run")


def test_some_requests_that_fail_are_counted(tmp_path, model):
    with running(trace_dir=tmp_path / "traces", model_root=str(model), fail_every=5) as server:
        result = collect(server.url, tmp_path / "run")
    assert manifest(tmp_path / "run")["load"]["profiled"]["failed"] == 1
    assert "1 of 6 requests failed" in result.stderr


def test_ctrl_c_stops_the_profiler_and_keeps_what_is_there(tmp_path, model):
    def interrupt(number):
        if number == 5:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    arguments = {"trace_dir": tmp_path / "traces", "model_root": str(model), "on_request": interrupt}
    with running(**arguments) as server:
        result = collect(server.url, tmp_path / "run", "--no-reference", "--requests", "200")
    assert result.exit_code == 1
    assert server.bodies("/stop_profile") == [{}]
    assert len(list((tmp_path / "run").glob("rank*.gz"))) == 2
    assert manifest(tmp_path / "run")["complete"] is False


def test_a_directory_that_holds_something_is_left_alone(server, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("keep")
    with pytest.raises(UsageError, match=r"run is not empty; give a new directory, or pass --force"):
        collect(server.url, tmp_path / "run")
    assert collect(server.url, tmp_path / "run", "--force").exit_code == 0
    assert (tmp_path / "run/mine.txt").read_text() == "keep"


def test_force_replaces_the_traces_of_an_earlier_collection(server, tmp_path):
    for _ in range(2):
        collect(server.url, tmp_path / "run", "--force")
    assert len(list((tmp_path / "run").glob("rank*.gz"))) == 2
    assert len(list((tmp_path / "traces").glob("rank*.gz"))) == 4


def test_servers_that_share_a_directory_cannot_be_told_apart(server, tmp_path):
    arguments = ["--url", f"w0={server.url}", "--url", f"w1={server.url}", "--out", str(tmp_path / "run"), *SMALL]
    with pytest.raises(UsageError, match=r"two servers write to .*traces"):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_a_load_longer_than_the_model_takes_is_refused_before_it_is_sent(server, tmp_path):
    with pytest.raises(UsageError, match=r"are 2005 tokens together; .* takes 1024"):
        collect(server.url, tmp_path / "run", "--input-len", "2000")
    assert server.prompts() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "run"], "give either --url or --offline"),
        (["--url", "http://a", "--offline", "m", "--out", "run"], "give either --url or --offline"),
        (["--url", "localhost:8000", "--out", "run"], "not a URL of a server"),
        (["--url", "prefill=http://a", "--out", "run"], "prefill and decode servers are profiled together"),
        (["--url", "http://a", "--out", "run", "--layout", "tensor=2"], "expected for example tp=2"),
        (["--url", "http://a", "--out", "run", "--model-config", "none.json"], "none.json: No such file"),
        (["--url", "http://a", "--out", "run", "--api-key-env", "NOT_SET_HERE"], "no such environment variable"),
        (["--url", "http://a", "--out", "run", "--trace-dir", "w9=/tmp"], "--trace-dir for w9"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_a_missing_client_library_names_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(server_options, "find_spec", lambda name: None if name == "httpx" else name)
    with pytest.raises(ShardscopeError, match=r"httpx is not installed: pip install 'shardscope\[collect\]'"):
        collect("http://127.0.0.1:1", tmp_path / "run")


def test_help_imports_no_client_library():
    code = (
        "import sys; from collectors import vllm, sglang, topology\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(vllm.command, ['--help']).exit_code == 0\n"
        "assert not {'httpx', 'prometheus_client', 'numpy', 'rich', 'torch', 'vllm'} & sys.modules.keys()\n"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.stderr == ""
