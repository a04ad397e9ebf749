import json
import subprocess
import sys

from click.testing import CliRunner
from routing_logs import SAMPLE, asked, log_of, sample_text

from analyzer.cli.commands.routing import command
from analyzer.errors import UsageError
from analyzer.render.routing import verdict
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


def test_the_text_opens_with_the_verdict():
    done = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3"])
    assert done.output.splitlines()[0] == (
        "KV-aware routing would reuse 88.0 % of blocks against 81.4 % under round robin; ceiling 89.2 %; sticky "
        "sessions would reuse 89.0 %; the log achieved 81.4 %; price: the busiest worker serves 50.0 % of the requests, "
        "33.3 % would be even"
    )


def test_the_columns_of_the_table_are_aligned():
    table = CliRunner().invoke(command, [str(SAMPLE), "--workers", "3"]).output.splitlines()[2:9]
    assert len({line.index(" %") for line in table[1:]}) == 1


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
