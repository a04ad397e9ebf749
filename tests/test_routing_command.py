import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from routing_logs import SAMPLE, asked, log_of, sample_text

from analyzer.cli.commands.routing import command
from analyzer.errors import UsageError
from analyzer.render.routing import to_text, verdict
from analyzer.routing.policies import POLICIES, ReplaySetup
from analyzer.routing.request_log import BLOCK_TOKENS
from analyzer.routing.routing import routing


def test_the_command_gives_the_rates_as_json():
    done = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3", "--capacity", "0", "--format", "json"])
    report = json.loads(done.output)
    assert report["schema"] == 1
    assert list(report["policies"]) == ["round_robin", "least_loaded", "session_sticky", "kv_aware"]
    assert {name: round(each["hit_rate"], 3) for name, each in report["policies"].items()} == {
        "round_robin": 0.814,
        "least_loaded": 0.814,
        "session_sticky": 0.890,
        "kv_aware": 0.880,
    }
    assert round(report["ceiling"], 3) == 0.892
    assert report["capacity_blocks"] is None


SERVED = [
    {"timestamp": 10 * at, "input_length": 600, "hash_ids": [1, at + 2], "cached_tokens": 512} for at in range(50)
]
"""The log counts 512 of 600 prompt tokens as cached; in blocks, 49 of 100 were seen before."""


@pytest.fixture
def served(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, SERVED)), encoding="utf-8")
    return log


def shown(log, workers, *options):
    return CliRunner().invoke(command, [str(log), "--workers", str(workers), *options]).output


def test_the_text_opens_with_the_verdict():
    assert shown(SAMPLE, 3).splitlines()[:4] == [
        "KV-aware routing would reuse 88.0 % of blocks against 81.4 % under round robin;",
        "ceiling 89.2 %; sticky sessions would reuse 89.0 %; the log achieved 81.4 %;",
        "price: the busiest worker serves 50.0 % of the requests, 33.3 % would be even",
        "",
    ]


def test_reuse_and_price_have_a_table_each():
    assert shown(SAMPLE, 3).splitlines()[4:18] == [
        "policy           reused of ceiling     recomputed      in basis",
        "achieved (log)   81.4 %     91.3 % 100,352 tokens  2.93 s derived",
        "round robin      81.4 %     91.3 % 100,352 tokens  2.93 s derived",
        "least loaded     81.4 %     91.3 % 100,352 tokens  2.93 s model",
        "sticky sessions  89.0 %     99.8 %   2,048 tokens 54.9 ms derived",
        "KV-aware routing 88.0 %     98.7 %  15,360 tokens  474 ms model",
        "ceiling          89.2 %                                   derived",
        "",
        "policy           TTFT p50 TTFT p99 peak/mean load busiest",
        "achieved (log)    42.3 ms   492 ms        112.1 %  33.3 %",
        "round robin       42.3 ms   492 ms        112.1 %  33.3 %",
        "least loaded      42.3 ms   492 ms        112.1 %  33.3 %",
        "sticky sessions    1.09 s   5.60 s        249.8 %  66.7 %",
        "KV-aware routing  42.3 ms   460 ms        113.3 %  50.0 %",
    ]


def test_the_text_fits_80_columns(served):
    for log, workers in ((SAMPLE, 3), (served, 2)):
        assert max(map(len, shown(log, workers).splitlines())) <= 80


def test_figures_of_a_long_log_fit_as_well():
    """Twelve digits of tokens, as of a month of a large service."""
    found = routing(log_of(asked((1,), (1, 2))), ReplaySetup(2))
    many = tuple(replace(each, recomputed_tokens=123_456_789_012, hit_rate=1.0) for each in found.outcomes)
    text = to_text(replace(found, outcomes=many))
    assert text.count(" 123,456,789,012 tokens ") == 4
    assert max(map(len, text.splitlines())) <= 80


def test_a_share_of_tokens_is_not_held_against_a_ceiling_in_blocks(served):
    text = shown(served, 2)
    assert "the log achieved 85.3 % of tokens" in text
    assert "achieved (log)   85.3 %          –   0 tokens    0 ns measured" in text.splitlines()
    assert "The log counts its cached tokens; the policies and the ceiling count blocks." in text.splitlines()


def test_no_policy_reaches_more_than_the_ceiling(served):
    for log, workers in ((SAMPLE, 3), (served, 2)):
        rows = shown(log, workers, "--format", "markdown").split("\n\n")[1].splitlines()[2:-1]
        shares = [row.split("|")[3].strip() for row in rows]
        assert all(share == "–" or float(share.removesuffix(" %")) <= 100 for share in shares)
        assert len(shares) == 5


def test_markdown_for_a_pull_request(served):
    lines = shown(served, 2, "--format", "markdown").splitlines()
    assert lines[0] == (
        "**KV-aware routing would reuse 49.0 % of blocks against 48.0 % under round robin; ceiling 49.0 %; the log "
        "achieved 85.3 % of tokens; price: the busiest worker serves 100.0 % of the requests, 50.0 % would be even**"
    )
    assert lines[2:5] == [
        "| policy | reused | of ceiling | recomputed | in | basis |",
        "|---|---:|---:|---:|---:|---:|",
        "| achieved (log) | 85.3 % | – | 0 tokens | 0 ns | measured |",
    ]
    assert lines[8:10] == [
        "| KV-aware routing | 49.0 % | 100.0 % | 0 tokens | 0 ns | model |",
        "| ceiling | 49.0 % |  |  |  | derived |",
    ]
    assert lines[11] == "| policy | TTFT p50 | TTFT p99 | peak/mean load | busiest |"
    assert "- The log counts its cached tokens; the policies and the ceiling count blocks." in lines


def test_a_policy_can_be_asked_for_alone():
    done = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3", "--policy", "kv_aware", "--format", "json"])
    assert list(json.loads(done.output)["policies"]) == ["kv_aware"]


def test_a_file_is_not_overwritten_unasked(tmp_path):
    output = tmp_path / "report.txt"
    output.write_text("mine")
    done = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3", "-o", str(output)])
    assert isinstance(done.exception, UsageError)
    assert output.read_text() == "mine"


def test_a_report_is_written_where_it_is_asked_for(tmp_path):
    output = tmp_path / "report.json"
    done = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3", "--format", "json", "-o", str(output)])
    assert done.output == f"Wrote {output}\n"
    assert json.loads(output.read_text())["requests"] == 120


def test_the_commands_choices_are_the_measures_own():
    options = {option.name: option for option in command.params}
    assert list(options["policies"].type.choices) == list(POLICIES)
    assert options["block_tokens"].default == BLOCK_TOKENS


def test_help_does_not_wait_for_numpy():
    code = "import sys, analyzer.cli.commands.routing; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_log_without_any_reuse_is_told_so():
    found = routing(log_of(asked((1,), (2,))), ReplaySetup(2))
    assert (
        verdict(found) == "No request asks for a prefix that an earlier one asked for: no routing can reuse anything."
    )


def test_a_gain_under_one_percent_is_called_little():
    found = routing(log_of(asked((1,), (1,), (1,))), ReplaySetup(1))
    assert verdict(found).startswith("Routing makes little difference: KV-aware routing would reuse 66.7 % of blocks")


def test_the_sample_log_is_as_drawn():
    assert SAMPLE.read_text(encoding="utf-8") == sample_text()
