import sys

import pytest

from analyzer.diagnose.diagnose import diagnose
from analyzer.errors import UsageError
from analyzer.schema.frames import frames
from analyzer.sketch import sketch


def one_rank():
    return diagnose(sketch.read("rank 0 stream 20  AAAA"), ())


def test_a_time_that_is_not_known_is_missing_and_not_zero():
    collectives = frames(one_rank())["collectives"]
    assert collectives["wait_ns"].isna().tolist() == [True]
    assert collectives["median_ns"].tolist() == [40_000]


def test_without_pandas_the_way_to_get_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"pip install 'shardscope\[notebook\]'"):
        frames(one_rank())
