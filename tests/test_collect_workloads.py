"""Every built-in workload computes what one rank alone would, and leaves traces that show how it was split."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install 'shardscope[collect]'"),
]

HERE = Path(__file__).resolve().parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
FLOAT32_ROUNDING = 1e-4  # logits are near 1; sums over 64 to 96 elements in another order differ by about 2e-6

# Logits that a case must have compared on some rank: prefill and three decode steps.
CASES_2 = [
    "cache 1",
    "tp 2",
    "pp 2",
    "dp 2",
    "ep 2 skew=0",
    "ep 2 skew=1.5",
    "cp 2 attention=ring",
    "cp 2 attention=all_gather",
    "dcp 2",
    "pd 1+1 transfer=layer",
    "pd 1+1 transfer=end",
]
CASES_3 = ["pd 2+1 transfer=layer", "pd 1+2 transfer=end"]
CASES_4 = [
    "tp 4",
    "pp 4",
    "dp 4",
    "ep 4 skew=1.5",
    "cp 4 attention=ring",
    "cp 4 attention=all_gather",
    "dcp 4",
    "pd 2+2 transfer=layer",
]


@cache
def differences(ranks, cases, folder):
    """One launch for all cases: what each rank found."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    ended = subprocess.run(
        [*launch, str(HERE / "collect_ranks.py"), folder, *cases],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return [json.loads(Path(folder, f"rank{rank}.json").read_text()) for rank in range(ranks)]


def assert_equal_to_one_rank(found, case):
    compared = [difference for difference, _ in (rank[case] for rank in found) if difference is not None]
    assert max(compared) < FLOAT32_ROUNDING
    steps = sum(pairs for _, pairs in (rank[case] for rank in found))
    assert steps >= 4


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("equality")


@pytest.mark.parametrize("case", CASES_2)
def test_two_ranks_compute_what_one_does(case, scratch):
    assert_equal_to_one_rank(differences(2, tuple(CASES_2), str(scratch)), case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES_3)
def test_three_ranks_of_two_roles_compute_what_one_does(case, scratch):
    assert_equal_to_one_rank(differences(3, tuple(CASES_3), str(scratch)), case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES_4)
def test_four_ranks_compute_what_one_does(case, scratch):
    assert_equal_to_one_rank(differences(4, tuple(CASES_4), str(scratch)), case)


def collected(out, name, degrees, *options):
    """The run directories of `shardscope collect NAME`, small: 2 layers, 1 round of 3 decode steps."""
    small = ["--layers", "2", "--hidden", "64", "--ffn", "96", "--vocab", "128", "--context", "32"]
    short = ["--rounds", "1", "--steps", "3", "--warmup", "0"]
    if name == "pp":
        small[1] = "4"
    command = [sys.executable, "-m", "analyzer", "collect", name, "--degrees", degrees, "--out", str(out)]
    ended = subprocess.run(
        [*command, *small, *short, *options],
        env=ENVIRONMENT,
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return [out / f"{name}{degree}" for degree in degrees.split(",")]


def manifest(folder):
    return json.loads((folder / "run.json").read_text())


def names(folder, rank):
    """How often each name is in a rank's trace."""
    (path,) = folder.glob(f"rank{rank}.*.pt.trace.json.gz")
    with gzip.open(path) as trace:
        events = json.load(trace)["traceEvents"]
    return Counter(event["name"] for event in events if event.get("ph") == "X")


def traced_ranks(folder):
    return sorted(int(re.match(r"rank(\d+)\.\d+\.pt\.trace\.json\.gz$", path.name)[1]) for path in folder.glob("rank*"))


@pytest.fixture(scope="session")
def tp2(tmp_path_factory):
    return collected(tmp_path_factory.mktemp("tp"), "tp", "2")[0]


def test_each_rank_leaves_one_trace(tp2):
    assert traced_ranks(tp2) == [0, 1]


def test_steps_are_named_as_vllm_names_them(tp2):
    seen = names(tp2, 1)
    steps = {name: times for name, times in seen.items() if name.startswith("execute_")}
    assert steps == {"execute_context_4(128)_generation_0(0)": 1, "execute_context_0(0)_generation_4(4)": 3}


def test_a_tensor_parallel_step_has_two_all_reduces_a_layer_and_one_for_the_embedding(tp2):
    assert names(tp2, 0)["gloo:all_reduce"] == 4 * (2 * 2 + 1)


def test_the_manifest_says_what_ran(tp2):
    said = manifest(tp2)
    assert said["complete"] is True
    assert (said["engine"], said["workload"]["name"], said["workload"]["work"]) == ("torch", "tp", "inference")
    assert said["workload"]["cores"] >= 1
    assert said["layout"] == {"world_size": 2, "tp": 2, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "dcp": 1}
    assert said["groups"] == {"tp": [[0, 1]]}
    assert said["model"]["num_key_value_heads"] == 4
    assert said["settings"]["backend"] == "gloo"
    assert list(said["topology"]["nodes"]) == ["0", "1"]
    assert said["command"].startswith("shardscope collect tp ")
    assert str(tp2.parent) not in said["command"]


def test_the_same_steps_are_timed_without_the_profiler(tp2):
    reference = manifest(tp2)["reference"]
    assert reference["steps"] == 4
    assert reference["decode_median_ns"] > 0
    assert reference["profiled_decode_median_ns"] > 0


def test_the_size_of_the_trace_is_foretold(tp2):
    profile = manifest(tp2)["profile"]
    assert profile["predicted_bytes"] == pytest.approx(profile["trace_bytes"], rel=0.1)


def test_a_prefill_decode_run_has_the_bytes_and_time_of_each_transfer(tmp_path):
    (folder,) = collected(tmp_path, "pd", "1+1", "--transfer", "end")
    said = manifest(folder)
    assert said["roles"] == {"0": "prefill", "1": "decode"}
    sizes = [(part["layer"], part["from"], part["to"], part["bytes"]) for part in said["transfers"]]
    # Keys and values of 4 sequences, 4 heads, 32 tokens, 8 elements of 4 bytes.
    assert sizes == [(0, 0, 1, 32768), (1, 0, 1, 32768)]
    assert all(part["time_ns"] > 0 for part in said["transfers"])
    assert names(folder, 0)["gloo:send"] == 3
    assert names(folder, 1)["gloo:recv"] == 3


def test_skew_sends_more_tokens_to_the_first_experts(tmp_path):
    (folder,) = collected(tmp_path, "ep", "2", "--skew", "1.5")
    tokens = manifest(folder)["expert_tokens"]
    # 4 sequences of 32 prompt tokens and 3 decoded ones, 2 experts each, in 2 layers.
    assert sum(tokens) == 560
    assert tokens[0] > 2 * tokens[3]
    # Counts, dispatch, combine: three exchanges a layer in each of 4 steps.
    assert names(folder, 0)["gloo:all_to_all"] == 24


# Collectives of a run of one prefill and three decode steps, by workload and rank.
EXPECTED = {
    "tp2": (0, {"gloo:all_reduce": 20, "gloo:all_gather": 4}),
    "tp4": (3, {"gloo:all_reduce": 20, "gloo:all_gather": 4}),
    "dp2": (0, {"gloo:all_reduce": 4}),
    "dp4": (3, {"gloo:all_reduce": 4, "execute_dummy_batch": 1}),
    "ep4": (2, {"gloo:all_to_all": 24}),
    "cp2": (0, {"gloo:send": 2, "gloo:recv": 2, "gloo:broadcast": 1, "gloo:all_gather": 6, "gloo:all_reduce": 6}),
    "cp4": (3, {"gloo:send": 6, "gloo:recv": 6, "gloo:broadcast": 1, "gloo:all_gather": 6, "gloo:all_reduce": 6}),
    "dcp4": (1, {"gloo:all_gather": 6, "gloo:all_reduce": 6}),
    # Activations of 2 microbatches in each of 4 steps go on; the sampled tokens of the last 3 come back.
    "pp2": (1, {"gloo:recv": 8, "gloo:send": 6}),
    "pp4": (1, {"gloo:recv": 16, "gloo:send": 16}),
    "pd2+1": (2, {"gloo:recv": 6}),
}
MATRIX = {
    "tp": ("1,2,4",),
    "pp": ("1,2,4",),
    "dp": ("1,2,4", "--idle-steps", "1"),
    "ep": ("1,2,4",),
    "cp": ("1,2,4",),
    "dcp": ("1,2,4",),
    "pd": ("1+1,2+1",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRIX)
def test_every_degree_shows_its_collectives(name, tmp_path):
    degrees, *options = MATRIX[name]
    for folder in collected(tmp_path, name, degrees, *options):
        rank, expected = EXPECTED.get(folder.name, (0, {}))
        seen = names(folder, rank)
        assert {event: seen[event] for event in expected} == expected
        assert manifest(folder)["complete"] is True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tp", "pp", "cp", "dcp", "ep", "dp"])
def test_one_rank_talks_to_nobody(name, tmp_path):
    (folder,) = collected(tmp_path, name, "1")
    assert not [event for event in names(folder, 0) if event.startswith("gloo:")]
