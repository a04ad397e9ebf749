"""Where a router sent the requests of a run, by the counters that it keeps."""

from __future__ import annotations

import re

from analyzer.model.run import Run

_DECISIONS = "vllm_router_policy_decisions_total"
"""Of vllm-router: one for each request, with the policy that chose and the worker that was chosen."""

_LABEL = re.compile(r'(\w+)="([^"]*)"')


def routed(run: Run) -> dict[str, dict[str, int]]:
    """Requests by policy and worker; empty where no router's counters are known."""
    found: dict[str, dict[str, int]] = {}
    for series, value in run.workload.counters.items():
        name, _, rest = series.partition("{")
        labels = dict(_LABEL.findall(rest))
        if name == _DECISIONS and "policy" in labels and "worker" in labels:
            workers = found.setdefault(labels["policy"], {})
            workers[labels["worker"]] = workers.get(labels["worker"], 0) + round(value)
    return found
