"""Which host call launched each activity."""

from __future__ import annotations

import re

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.model.trace import Trace
from analyzer.stats.arrays import Integers, Mask

GRAPH_LAUNCH = re.compile(r"^(cuda|hip|cu)GraphLaunch")


def launch_rows(trace: Trace) -> Integers:
    """int64[m], row in the trace's calls of each activity's launch; ABSENT where none is recorded.

    A runtime call and the driver call inside it share a correlation: the outer one, which starts first, is the launch.
    """
    calls, wanted = trace.calls.correlation, trace.activities.correlation
    rows = np.flatnonzero(calls != ABSENT)
    if rows.size == 0:
        return np.full(wanted.shape, ABSENT, np.int64)
    keys, first = np.unique(calls[rows], return_index=True)
    index = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[index] == wanted, rows[first[index]], ABSENT).astype(np.int64)


def graph_launches(trace: Trace) -> Mask:
    """bool[c]: calls that launch a graph."""
    return trace.calls.name.where(lambda name: GRAPH_LAUNCH.match(name) is not None)
