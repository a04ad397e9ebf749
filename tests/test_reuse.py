"""What the engine's counters say of reuse, from run.json or from two saved pages of metrics."""

import json
from pathlib import Path

import pytest
from kineto_files import write

from analyzer.diagnose.answers import plain_answer
from analyzer.errors import TraceFormatError
from analyzer.ingest.load import load
from analyzer.ingest.scrapes import growth
from analyzer.rule import Question
from analyzer.sketch import sketch

ROUTER = Path(__file__).resolve().parents[2] / "shared/traces/cpu-collected/vllm-router"
PAGE = """# HELP vllm:prefix_cache_hits_total Hits.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{engine="0",model_name="a b"}} {hits}
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{{engine="0"}} {queries}
vllm:prefix_cache_queries_created{{engine="0"}} 1.7e+09
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0.5
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {queries}
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {queries}
vllm:time_to_first_token_seconds_sum 2.5
"""
DRAWN = "rank 0 stream 7   GGTTGG"


def _pages(folder, before, after):
    paths = folder / "metrics_before.prom", folder / "metrics_after.prom"
    for path, (hits, queries) in zip(paths, (before, after), strict=True):
        path.write_text(PAGE.format(hits=hits, queries=queries))
    return paths


def test_growth_is_of_counters_that_moved(tmp_path):
    assert growth(*_pages(tmp_path, (10.0, 100.0), (14.0, 116.0))) == {
        'vllm:prefix_cache_hits_total{engine="0",model_name="a b"}': 4.0,
        'vllm:prefix_cache_queries_total{engine="0"}': 16.0,
    }


def test_a_counter_that_fell_began_again_at_zero(tmp_path):
    grown = growth(*_pages(tmp_path, (10.0, 100.0), (3.0, 116.0)))
    assert grown['vllm:prefix_cache_hits_total{engine="0",model_name="a b"}'] == 3.0


def test_a_page_that_is_no_page_of_metrics_is_named_with_its_line(tmp_path):
    before, after = _pages(tmp_path, (0, 0), (1, 1))
    after.write_text("# fine\n<html>404</html>\n")
    with pytest.raises(TraceFormatError, match=r"metrics_after\.prom: line 2 is no sample"):
        growth(before, after)


def test_saved_pages_beside_the_traces_answer_question_five(tmp_path):
    folder = write(sketch.read(DRAWN), tmp_path / "run")
    _pages(folder, (10.0, 100.0), (14.0, 116.0))
    answer = plain_answer(Question.REUSE, load(folder))
    assert answer.text == "the prefix cache holds 4 of 16 prompt tokens (25.0 %), 12 are not in it"


def test_what_a_collector_wrote_comes_before_saved_pages(tmp_path):
    folder = write(sketch.read(DRAWN), tmp_path / "run")
    _pages(folder, (10.0, 100.0), (14.0, 116.0))
    change = {"sglang:prompt_tokens_total": 100.0, 'sglang:cached_tokens_total{cache_source="device"}': 40.0}
    (folder / "run.json").write_text(json.dumps({"metrics": {"change": change}}))
    answer = plain_answer(Question.REUSE, load(folder))
    assert answer.text == "the prefix cache holds 40 of 100 prompt tokens (40.0 %), 60 are not in it"


def test_counters_of_all_engines_are_summed():
    drawing = (
        'metrics vllm:prefix_cache_queries_total{engine="0"}=60 vllm:prefix_cache_queries_total{engine="1"}=40 '
        'vllm:prefix_cache_hits_total{engine="1"}=10 vllm:external_prefix_cache_queries_total=90 '
        "vllm:num_preemptions_total=2 sglang:evicted_tokens_total=5000 sglang:load_back_tokens_total=70\n" + DRAWN
    )
    answer = plain_answer(Question.REUSE, sketch.read(drawing))
    assert answer.text == (
        "the prefix cache holds 10 of 100 prompt tokens (10.0 %), 90 are not in it; the cache behind it 0 of 90; "
        "70 tokens come back from host memory; 5,000 tokens are evicted; 2 preemptions"
    )


def test_without_counters_or_annotations_the_answer_is_unknown():
    answer = plain_answer(Question.REUSE, sketch.read(DRAWN))
    assert not answer.known
    assert "metrics_before.prom" in answer.missing[0]


@pytest.mark.skipif(not ROUTER.is_dir(), reason=f"no recorded router metrics at {ROUTER}")
def test_a_real_routers_page_says_where_it_sent_its_requests(tmp_path):
    folder = write(sketch.read(DRAWN), tmp_path / "run")
    (folder / "metrics_before.prom").write_text("")
    pages = (ROUTER / name for name in ("router-round_robin.prom", "w0.prom", "w1.prom"))
    (folder / "metrics_after.prom").write_text("".join(page.read_text() for page in pages))
    answer = plain_answer(Question.REUSE, load(folder))
    # Both servers count over three policies; their pages stand one after the other and are summed.
    assert answer.text == (
        "the prefix cache holds 8,800 of 14,528 prompt tokens (60.6 %), 5,728 are not in it; "
        "20 requests routed by round_robin over 2 workers"
    )
