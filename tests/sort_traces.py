"""Ranks made of names alone, for tests of what sort of run they are."""

from dataclasses import replace

import numpy as np
from rank_traces import trace

from analyzer.measures.workload import workload
from analyzer.model.events import ABSENT, Events, Labels
from analyzer.model.layout import Layout
from analyzer.model.run import Run
from analyzer.model.trace import Origin
from analyzer.model.workload import Workload

GEMM = "nvjet_tst_128x64_64x8_2x1_v_bz_TNT"
FLASH = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)"
NORM = "some_rms_norm_kernel"


def events(names):
    rows = np.arange(len(names), dtype=np.int64) * 10
    column = np.zeros(len(names), np.int64)
    return Events(Labels.of(names), rows, rows + 5, column, column, column + ABSENT)


def run(*ranks, layout=None, **workload_facts):
    """A run of ranks given as keyword arguments of `rank`."""
    traces = tuple(rank(number, **each) for number, each in enumerate(ranks))
    return Run("drawn", traces, layout or Layout(), workload=Workload(**workload_facts))


def rank(number, kernels=(), *, host=(), calls=(), groups=(), records=None, device="cuda", **origin):
    """A rank with kernels one after another, and names on its host."""
    made = trace(
        number,
        [(name, 10.0 * i, 5.0) for i, name in enumerate(kernels)],
        records=records,
        origin=Origin(f"rank{number}.json", device, recorded_rank=number, groups=groups, **origin),
    )
    return replace(made, annotations=events(list(host)), calls=events(list(calls)))


def facts(kernels=(), **names):
    return workload(run({"kernels": kernels, **names}))


MODEL = (GEMM, FLASH, NORM) * 4
