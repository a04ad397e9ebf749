"""`collect sglang`, against a stand-in written from the documented endpoints; no real SGLang runs here."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from stand_in_server import MODEL, running

from analyzer.errors import RunNotFoundError, ShardscopeError, UsageError
from collectors.servers import trace_files
from collectors.sglang import command

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "traces"
REAL = tuple(sorted((CORPUS / "sglang_ep8_decode_run1").glob("rank*.json.gz"), key=lambda path: path.name))
SMALL = ("--requests", "6", "--concurrency", "3", "--input-len", "32", "--output-len", "5", "--steps", "4")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files are whole at once, so nothing needs to be waited for."""
    monkeypatch.setattr(trace_files, "QUIET_S", 0.02)
    monkeypatch.setattr(trace_files, "POLL_S", 0.01)


@pytest.fixture
def server(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps(MODEL))
    with running(engine="sglang", version="0.5.23", model_root=str(tmp_path / "model")) as server:
        yield server


def collect(url, out, *arguments):
    return CliRunner().invoke(command, ["--url", url, "--out", str(out), *SMALL, *arguments], catch_exceptions=False)


def manifest(folder):
    return json.loads((folder / "run.json").read_text())


def test_the_server_is_asked_to_write_into_the_run_directory(server, tmp_path):
    collect(server.url, tmp_path / "run")
    assert server.bodies("/start_profile") == [
        {
            "output_dir": str(tmp_path / "run"),
            "activities": ["CPU", "GPU"],
            "record_shapes": True,
            "with_stack": False,
            "profile_by_stage": False,
            "num_steps": 4,
        }
    ]
    assert len(list((tmp_path / "run").glob("*-TP-*.trace.json.gz"))) == 2


def test_a_profile_that_ended_by_itself_is_no_fault(server, tmp_path):
    assert collect(server.url, tmp_path / "run").exit_code == 0
    assert server.bodies("/stop_profile") == [{}]


def test_without_a_bound_the_profile_ends_with_the_load(server, tmp_path):
    collect(server.url, tmp_path / "run", "--steps", "0")
    assert "num_steps" not in server.bodies("/start_profile")[0]
    assert len(list((tmp_path / "run").glob("*-TP-*.trace.json.gz"))) == 2


def test_layout_model_and_versions_are_recorded(server, tmp_path):
    collect(server.url, tmp_path / "run")
    run = manifest(tmp_path / "run")
    assert (run["engine"], run["layout"], run["versions"]["sglang"]) == (
        "sglang",
        {"tp": 2, "pp": 1, "dp": 1},
        "0.5.23",
    )
    assert run["model"] == MODEL
    assert run["prefix_cache"] == {"queried_tokens": 192, "cached_tokens": 48}


def test_server_arguments_are_kept_without_their_keys(server, tmp_path):
    collect(server.url, tmp_path / "run")
    arguments = json.loads((tmp_path / "run/server_args.json").read_text())
    assert (arguments["tp_size"], arguments["api_key"]) == (2, "withheld")
    assert arguments["launch_command"] == "sglang serve --api-key withheld --tp 2"


def test_prompts_are_token_ids_and_the_log_has_the_cached_ones(server, tmp_path):
    collect(server.url, tmp_path / "run")
    assert {len(prompt) for prompt in server.prompts()} == {32}
    first = json.loads((tmp_path / "run/requests.jsonl").read_text().splitlines()[0])
    assert (first["prompt_tokens"], first["cached_tokens"], first["output_tokens"]) == (32, 3, 5)


def test_stages_are_recorded_into_runs_of_their_own(server, tmp_path):
    result = collect(server.url, tmp_path / "run", "--by-stage")
    assert server.bodies("/start_profile")[0]["profile_by_stage"] is True
    for stage in ("prefill", "decode"):
        assert manifest(tmp_path / "run" / stage)["stage"] == stage
        assert len(list((tmp_path / "run" / stage).glob("*.trace.json.gz"))) == 2
    assert f"Wrote {tmp_path / 'run/decode'}" in result.stderr


@pytest.mark.parametrize(
    ("told", "layout", "ranks"),
    [
        ({"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}, {"tp": 8, "pp": 1, "dp": 8}, 8),
        ({"tp_size": 8, "attn_dp_size": 8, "ep_size": 8}, {"tp": 8, "pp": 1, "dp": 8, "ep": 8}, 8),
        ({"tp_size": 2, "dp_size": 3}, {"tp": 2, "pp": 1, "dp": 3}, 6),
        ({"tp_size": 2, "pp_size": 2, "dcp_size": 2}, {"tp": 2, "pp": 2, "dp": 1, "dcp": 2}, 4),
    ],
)
def test_attention_replicas_share_ranks_and_others_do_not(tmp_path, told, layout, ranks):
    with running(engine="sglang", ranks=ranks, server_info=told) as server:
        collect(server.url, tmp_path / "run", "--no-reference")
    assert manifest(tmp_path / "run")["layout"] == layout
    assert len(manifest(tmp_path / "run")["topology"]["nodes"]) == ranks


def test_servers_before_0_5_are_asked_under_the_old_names(tmp_path):
    with running(engine="sglang", version="0.4.10", old_paths=True) as server:
        collect(server.url, tmp_path / "run")
    assert manifest(tmp_path / "run")["versions"]["sglang"] == "0.4.10"


def test_a_server_without_metrics_is_profiled_and_the_lack_is_recorded(tmp_path):
    with running(engine="sglang", metrics=False) as server:
        result = collect(server.url, tmp_path / "run")
    assert "SGLang serves metrics with --enable-metrics" in result.stderr
    assert "metrics" in manifest(tmp_path / "run")["absent"]


def test_prefill_and_decode_servers_meet_in_one_room(tmp_path):
    told = {"disaggregation_bootstrap_port": 8999, "disaggregation_mode": "prefill"}
    with running(engine="sglang", server_info=told) as one, running(engine="sglang") as two:
        urls = ["--url", f"prefill={one.url}", "--url", f"decode={two.url}"]
        CliRunner().invoke(command, [*urls, "--out", str(tmp_path / "run"), *SMALL], catch_exceptions=False)
    rooms = [sorted(body["bootstrap_room"] for body in server.bodies("/generate")) for server in (one, two)]
    assert rooms[0] == rooms[1]
    assert len(set(rooms[0])) == len(rooms[0]) == 4 + 6 + 6
    assert {(b["bootstrap_host"], b["bootstrap_port"]) for b in two.bodies("/generate")} == {("127.0.0.1", 8999)}
    assert [manifest(tmp_path / "run" / role)["role"] for role in ("prefill", "decode")] == ["prefill", "decode"]


def test_a_server_on_another_machine_is_asked_for_a_path_of_its_own(server, tmp_path):
    result = collect(server.url, tmp_path / "run", "--trace-dir", f"gpu-7:{tmp_path / 'far'}")
    assert server.bodies("/start_profile")[0]["output_dir"] == str(tmp_path / "far")
    assert f"copy them from gpu-7:{tmp_path / 'far'} to {tmp_path / 'run'}" in result.stderr


def test_a_server_that_writes_nothing_is_given_up_after_the_timeout(tmp_path):
    with running(engine="sglang", flush="never") as server, pytest.raises(RunNotFoundError, match="no trace came to"):
        collect(server.url, tmp_path / "run", "--timeout", "0.2")
    assert manifest(tmp_path / "run")["complete"] is False


def test_a_server_that_dies_ends_the_collection(tmp_path):
    with running(engine="sglang", die_at=4) as server, pytest.raises(ShardscopeError, match="cannot connect"):
        collect(server.url, tmp_path / "run", "--no-reference", "--timeout", "0.5")


def test_another_server_is_not_taken_for_sglang(tmp_path):
    with running(dev_mode=False) as server, pytest.raises(ShardscopeError, match="has no /server_info as SGLang has"):
        collect(server.url, tmp_path / "run")


def test_steps_cannot_be_skipped(server, tmp_path):
    with pytest.raises(UsageError, match="--skip-steps is for vLLM"):
        collect(server.url, tmp_path / "run", "--skip-steps", "2")


def test_a_url_is_needed(tmp_path):
    with pytest.raises(UsageError, match="give --url URL of a running server"):
        CliRunner().invoke(command, ["--out", str(tmp_path / "run")], catch_exceptions=False)


@pytest.mark.corpus
@pytest.mark.skipif(not REAL, reason="the trace corpus is not at hand")
def test_real_traces_of_eight_ranks_are_gathered_whole(tmp_path):
    with running(engine="sglang", ranks=8, traces=REAL) as server:
        result = collect(server.url, tmp_path / "run")
    gathered = sorted(path.read_bytes() for path in (tmp_path / "run").glob("*-TP-*.trace.json.gz"))
    assert gathered == sorted(path.read_bytes() for path in REAL)
    assert "8 traces" in result.stderr
