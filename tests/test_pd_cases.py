"""Published transfers and prefixes get the verdict that was measured; engines' logs tell who moved how much."""

import csv
from pathlib import Path

import pytest

from analyzer.errors import ShardscopeError
from analyzer.ingest.transfer_log import read_transfer_log
from analyzer.model.handover import Counted
from analyzer.pd.verdict import cheaper, growing_pool, transfer_bound

CASES = Path(__file__).resolve().parents[2] / "shared" / "data" / "pd_kv_ep_cases.csv"


def _cases(*names):
    if not CASES.exists():
        pytest.skip("the table of published cases is not here")
    with CASES.open() as file:
        return [row for row in csv.DictReader(file) if row["case_id"] in names]


def _extra(row):
    return {key: float(value) for key, value in (part.split("=") for part in row["extra"].split(";"))}


def test_published_nixl_transfers_are_bound_by_what_their_authors_found():
    found = {}
    for row in _cases("nixl-small-blocks", "nixl-3p1d"):
        extra, time_ns = _extra(row), round(float(row["treatment"]) * 1e6)
        told = (1, round(float(row["x"]) * 1e6), time_ns)
        by_count = transfer_bound(Counted(*told, None, round(extra["descriptors"])), 50e9)
        measured = transfer_bound(Counted(*told, round(extra["post_ms"] * 1e6)), 50e9)
        assert by_count.by == measured.by
        found[row["case_id"]] = measured.by
    assert found == {"nixl-small-blocks": "descriptors", "nixl-3p1d": "neither"}


def test_published_rdma_transfers_reach_the_link_from_146_mb_up():
    for row in _cases("mooncake-vllm-1p1d"):
        told = Counted(1, round(_extra(row)["kv_bytes"]), round(float(row["treatment"]) * 1e6))
        assert transfer_bound(told, 200e9).by == ("bandwidth" if told.size_bytes >= 146_000_000 else "neither")


def test_moving_a_prefix_pays_where_it_was_measured_to_pay():
    rows = _cases("p2p-pull-gptoss", "p2p-pull-glm", "pd-multiturn")
    for row in rows:
        ratio = float(row["ratio"])
        expected = "tie" if ratio == 1.0 else "pays" if ratio < 1 else "does not pay"
        assert cheaper(float(row["treatment"]), float(row["baseline"])) == expected
    assert len(rows) == 6


def test_the_pool_that_bound_is_the_one_whose_growth_paid():
    rows = {row["case_id"]: row for row in _cases("glm-2p1d", "glm-decode-width")}
    assert growing_pool(2.0, float(rows["glm-decode-width"]["ratio"])) == "it"
    assert growing_pool(2.0, float(rows["glm-2p1d"]["ratio"])) == "both"
    assert growing_pool(1.5, 1.03) == "both"
    assert growing_pool(2.0, 1.0) == "other"


LOGS = {
    "NIXL": (
        (
            "INFO 14:05:56 KV Transfer metrics: Num successful transfers=2, Avg xfer time (ms)=173.794, P90 xfer time "
            "(ms)=180.0, Avg post time (ms)=129.127, P90 post time (ms)=130.0, Avg MB per transfer=313.0, Throughput "
            "(MB/s)=1800.983, Avg number of descriptors=40064.0, Num failed transfers=0"
        ),
        Counted(2, 2 * 313 << 20, 347_588_000, 258_254_000, 80_128),
    ),
    "Mooncake": (
        (
            "14:55:48 KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=113.745, P90 xfer time "
            "(ms)=253.654, Avg MB per transfer=0.5, Throughput (MB/s)=5.861, Avg number of descriptors=5.3, Num failed "
            "recvs=0"
        ),
        Counted(3, 3 << 19, 341_235_000, None, 16),
    ),
    "LMCache": (
        (
            "LMCache INFO: [req_id=1] Retrieved 1792 out of 1792 required tokens (from 1792 total tokens). size: 0.2500 gb, "
            "cost 14.3229 ms, throughput: 17.1818 GB/s;"
        ),
        Counted(1, 1 << 28, 14_322_900),
    ),
    "SGLang": (
        "start=1.5, transfer_speed=2.00GB/s, transfer_total=512.00MB, #retries=0",
        Counted(1, 1 << 29, 250_000_000),
    ),
}


@pytest.mark.parametrize("carrier", LOGS)
def test_an_engine_s_log_tells_who_moved_how_much(carrier, tmp_path):
    line, expected = LOGS[carrier]
    log = tmp_path / "engine.log"
    log.write_text(f"something else\n{line}\nKV Transfer metrics: Num successful transfers=0, Avg xfer time (ms)=0\n")
    found = read_transfer_log(log)
    assert (found.carriers, found.counted) == ((carrier,), expected)


def test_a_log_without_transfers_is_told(tmp_path):
    (tmp_path / "other.log").write_text("nothing here\n")
    with pytest.raises(ShardscopeError, match="no line tells of transfers"):
        read_transfer_log(tmp_path / "other.log")
