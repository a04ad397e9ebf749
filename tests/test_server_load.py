"""The parts of a collection from servers: prompts, times, metrics, files, names, secrets."""

import errno
import gzip
import os
from types import SimpleNamespace

import pytest

from analyzer.errors import ShardscopeError, UsageError
from collectors.servers import load as _load
from collectors.servers import metrics, run_record, trace_files
from collectors.servers.engine import Plan, address, by_name, endpoints, without_secrets
from collectors.servers.load import TimedAnswer
from collectors.servers.prompts import RequestLoad
from collectors.servers.session import Turns


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files are whole at once, so nothing needs to be waited for."""
    monkeypatch.setattr(trace_files, "QUIET_S", 0.02)
    monkeypatch.setattr(trace_files, "POLL_S", 0.01)


def test_no_turn_finds_the_prompts_of_another_in_the_cache():
    load = RequestLoad(requests=4, concurrency=1, input_tokens=64, output_tokens=1, shared_prefix=0.5)
    first, second = load.prompts("reference"), load.prompts("profiled")
    assert not {tuple(prompt[:16]) for prompt in first} & {tuple(prompt[:16]) for prompt in second}


def test_the_shared_prefix_is_the_stated_share_of_each_prompt():
    prompts = RequestLoad(requests=3, concurrency=1, input_tokens=64, output_tokens=1, shared_prefix=0.25).prompts("a")
    assert len({tuple(prompt[:16]) for prompt in prompts}) == 1
    assert len({tuple(prompt[:17]) for prompt in prompts}) == 3


def test_a_full_disk_names_the_file_and_where_it_still_is(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(trace_files.shutil, "copy2", full)
    (tmp_path / "out").mkdir()
    (tmp_path / "rank0.json").write_text("{}")
    with pytest.raises(ShardscopeError, match=r"no room for rank0\.json \(2 B\) in .*out; it is still in"):
        trace_files.gather([tmp_path / "rank0.json"], tmp_path / "out")


def test_a_file_that_still_grows_is_waited_for(tmp_path):
    path = tmp_path / "rank0.1.pt.trace.json.gz"
    whole = gzip.compress(b'{"traceEvents": []}')
    polls = iter(range(1, 1000))

    def grow(_):
        written = whole[: 5 * next(polls)]
        if not path.exists() or len(path.read_bytes()) < len(whole):
            path.write_bytes(written)

    files = trace_files.settled(tmp_path, {}, expected=1, timeout_s=5, on_poll=grow)
    assert files == [path]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "is_whole"), [(b'{"a": 1}\n', True), (b'{"a": 1', False), (b"[{}]", True), (b"", False)]
)
def test_json_is_whole_once_it_closes(tmp_path, content, is_whole):
    (tmp_path / "a.json").write_bytes(content)
    assert trace_files.is_whole(tmp_path / "a.json") is is_whole


def answer(**changes):
    fields = {"index": 0, "worker": "", "sent_ns": 0, "first_token_ns": 100, "gaps_ns": (10, 20, 30), "total_ns": 200}
    return TimedAnswer(**(fields | {"output_tokens": 4} | changes))


def test_quantiles_are_interpolated():
    assert _load.quantiles([0, 100]) == {"median": 50, "p90": 90, "p99": 99}
    assert _load.quantiles([]) == {}


def test_a_summary_leaves_failed_requests_out_of_the_times():
    summary = _load.summary(
        [
            answer(),
            answer(index=1, sent_ns=1_000, first_token_ns=300, total_ns=1_000),
            answer(index=2, fault="refused", first_token_ns=None, gaps_ns=(), total_ns=5),
        ]
    )
    assert (summary["requests"], summary["failed"], summary["duration_ns"]) == (2, 1, 2_000)
    assert summary["ttft_ns"]["median"] == 200
    assert summary["itl_ns"]["median"] == 20
    assert summary["tpot_ns"]["median"] == 20
    assert summary["output_tokens"] == 8


def reference(plain, profiled):
    load = RequestLoad(requests=len(plain), concurrency=len(plain), input_tokens=8, output_tokens=16)
    request = SimpleNamespace(plan=Plan(steps=28, skip_steps=1))
    return run_record._reference(request, Turns(load, reference=plain, profiled=profiled))["reference"]


def test_the_pace_of_a_request_leaves_its_queue_out_and_takes_the_first_requests():
    answers = [
        answer(gaps_ns=(10, 20, 90)),
        answer(index=1, first_token_ns=500_000, gaps_ns=(12, 22, 90)),
        answer(index=2, gaps_ns=(70, 70, 70)),
    ]
    assert _load.paces_ns(answers, concurrency=2, tokens=2) == [15, 17]


def test_a_queue_before_the_first_token_is_no_slow_down_of_the_profiler():
    """vLLM TP 1 on a CPU: 72.0 ms between tokens profiled, 68.8 without; the time to the 16th token said 1.69x."""
    plain = [
        answer(index=row, first_token_ns=100_000_000, gaps_ns=(68_800_000 + row * 100_000,) * 15) for row in range(4)
    ]
    profiled = [
        answer(index=row, first_token_ns=900_000_000, gaps_ns=(72_000_000 + row * 100_000,) * 15) for row in range(4)
    ]
    told = reference(plain, profiled)
    assert told["inflation"] == pytest.approx(1.046, abs=0.001)
    assert told["inflation_low"] < told["inflation"] < told["inflation_high"]


def test_two_requests_tell_no_slow_down():
    few = [answer(index=row, gaps_ns=(10, 10)) for row in range(2)]
    assert "inflation" not in reference(few, few)


PAGE = """# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {0}
# TYPE vllm:prefix_cache_hits_created gauge
vllm:prefix_cache_hits_created{{engine="0",model_name="m"}} 1.7e+09
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.5
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {0}
"""


def test_growth_is_by_series_and_only_of_the_engine():
    before, after = metrics.scrape(PAGE.format(10.0)), metrics.scrape(PAGE.format(14.0))
    assert metrics.change(before, after) == {'vllm:prefix_cache_hits_total{engine="0"}': 4.0}
    assert after.gauges == {'vllm:kv_cache_usage_perc{engine="0"}': 0.5}


def test_preemptions_are_counted_and_none_is_not_unknown():
    def page(number):
        return metrics.scrape(f"# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total {number}\n")

    assert metrics.memory(page(2.0), page(5.0)) == {"preemptions": 3}
    assert metrics.memory(page(2.0), page(2.0)) == {"preemptions": 0}
    assert metrics.memory(metrics.scrape(""), metrics.scrape("")) == {}


def test_a_counter_that_fell_was_reset():
    before, after = metrics.scrape(PAGE.format(10.0)), metrics.scrape(PAGE.format(3.0))
    assert metrics.change(before, after) == {'vllm:prefix_cache_hits_total{engine="0"}': 3.0}


def test_sglangs_transfer_sizes_are_mebibytes_and_its_times_milliseconds():
    changes = {
        "sglang:kv_transfer_total_mb_count": 2.0,
        "sglang:kv_transfer_total_mb_sum": 3.0,
        "sglang:kv_transfer_latency_ms_sum": 4.5,
    }
    assert metrics.transfers(changes) == {"transfers": 2, "bytes": 3_145_728, "time_ns": 4_500_000}


def test_servers_are_named_by_the_user_or_by_number():
    named = endpoints(("prefill=http://a:1/v1", "decode1=http://b:2"))
    assert [(e.name, e.role, e.url) for e in named] == [
        ("prefill", "prefill", "http://a:1"),
        ("decode1", "decode", "http://b:2"),
    ]
    assert [e.name for e in endpoints(("http://a:1", "http://b:2"))] == ["server0", "server1"]
    assert [e.name for e in endpoints(("http://a:1/?x=1",))] == [""]


def test_a_password_in_a_wrong_url_is_not_shown():
    with pytest.raises(UsageError) as error:
        address("ftp://me:pw@host/")
    assert "pw" not in str(error.value)


def test_values_by_name_may_be_given_once():
    assert by_name(("a=/x", "/y"), "--trace-dir") == {"a": "/x", "": "/y"}
    with pytest.raises(UsageError, match="given twice for a"):
        by_name(("a=/x", "a=/y"), "--trace-dir")


def test_secrets_in_configurations_are_replaced_and_token_counts_are_kept():
    told = {
        "api_key": "sk-1",
        "hf_token": "hf_1",
        "max_total_tokens": 4096,
        "tokenizer": "path",
        "nested": [{"s3_secret_access_key": "x"}, []],
        "launch_command": "serve --api-key sk-1 --tp 2",
        "argv": ["serve", "--api-key", "sk-1", "--tp", "2"],
    }
    assert without_secrets(told) == {
        "api_key": "withheld",
        "hf_token": "withheld",
        "max_total_tokens": 4096,
        "tokenizer": "path",
        "nested": [{"s3_secret_access_key": "withheld"}, []],
        "launch_command": "serve --api-key withheld --tp 2",
        "argv": ["serve", "--api-key", "withheld", "--tp", "2"],
    }
