"""What routing makes of a request log, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from io import StringIO
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from analyzer import units
from analyzer.routing.outcome import PolicyOutcome
from analyzer.routing.routing import Routing
from analyzer.routing.service import Service
from analyzer.schema.finding import Basis

SCHEMA = 1
_NAMES = {
    "round_robin": "round robin",
    "least_loaded": "least loaded",
    "session_sticky": "sticky sessions",
    "kv_aware": "KV-aware routing",
    "achieved": "achieved (log)",
}
_COLUMNS = (
    "policy",
    "reused",
    "of ceiling",
    "recomputed",
    "in",
    "TTFT p50",
    "p99",
    "peak/mean load",
    "busiest",
    "basis",
)
_LITTLE_SHARE = 0.01  # of all blocks; a smaller gain in reuse is no reason to change the router
_EVEN_SHARE = 1.05  # of a worker's fair share of the requests; a smaller excess is called even
_UNKNOWN = "unknown"
_WIDTH = 160
_KILO = 1_000


def text(found: Routing) -> str:
    """The verdict in one line, a table of the policies, then what the figures rest on."""
    out = StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(verdict(found), soft_wrap=True)
    console.print()
    console.print(_table(found))
    console.print()
    for line in (_case(found), _model(found.setup.service), *(f"Note: {note.text}" for note in found.notes)):
        console.print(line, soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def json(found: Routing) -> str:
    """Schema 1: all figures, shares from 0 to 1 and integer nanoseconds."""
    service = found.setup.service
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "log": found.path,
        "requests": found.requests,
        "blocks": found.blocks,
        "distinct_blocks": found.distinct_blocks,
        "block_tokens": found.block_tokens,
        "workers": found.setup.workers,
        "capacity_blocks": found.setup.capacity_blocks or None,
        "sessions": {"count": found.sessions, "basis": found.sessions_basis.value},
        "service": {**asdict(service), "basis": Basis.MODEL.value},
        "policies": {each.policy: _figures(each) for each in found.outcomes},
        "achieved": None if found.achieved is None else _figures(found.achieved),
        "ceiling": found.ceiling,
        "ceiling_basis": Basis.DERIVED.value,
        "notes": [{"text": note.text, "count": note.count} for note in found.notes],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def verdict(found: Routing) -> str:
    """One sentence: what KV-aware routing, or else the policy that finds most, reuses against round robin."""
    ceiling = units.share(found.ceiling)
    if found.distinct_blocks == found.blocks:
        return "No request asks for a prefix that an earlier one asked for: no routing can reuse anything."
    by_name = {each.policy: each for each in found.outcomes}
    most = max(found.outcomes, key=lambda each: each.hit_rate)
    head = by_name.get("kv_aware", most)
    base = by_name.get("round_robin") or min(found.outcomes, key=lambda each: each.hit_rate)
    clauses = [f"{_named(head)} would reuse {units.share(head.hit_rate)} of blocks"]
    if base is not head:
        clauses[0] += f" against {units.share(base.hit_rate)} under {_NAMES[base.policy]}"
        if head.hit_rate - base.hit_rate < _LITTLE_SHARE:
            clauses[0] = f"Routing makes little difference: {clauses[0]}"
    clauses.append(f"ceiling {ceiling}")
    if most.hit_rate - head.hit_rate >= _LITTLE_SHARE:
        clauses.append(f"{_NAMES[most.policy]} would reuse {units.share(most.hit_rate)}")
    if found.achieved is not None:
        clauses.append(f"the log achieved {units.share(found.achieved.hit_rate)}")
    return "; ".join((*clauses, _price(head, found.setup.workers)))


def _price(head: PolicyOutcome, workers: int) -> str:
    busiest = head.busiest_share or 0.0
    if busiest * workers < _EVEN_SHARE:
        return "price: none, the requests stay evenly spread"
    even = units.share(1 / workers)
    return f"price: the busiest worker serves {units.share(busiest)} of the requests, {even} would be even"


def _named(each: PolicyOutcome) -> str:
    name = _NAMES[each.policy]
    return name[0].upper() + name[1:]


def _table(found: Routing) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for at, column in enumerate(_COLUMNS):
        table.add_column(column, justify="left" if at in {0, len(_COLUMNS) - 1} else "right", no_wrap=True)
    achieved = () if found.achieved is None else (found.achieved,)
    for each in (*achieved, *found.outcomes):
        table.add_row(*_row(each, found.ceiling))
    table.add_row("ceiling", units.share(found.ceiling), *[""] * (len(_COLUMNS) - 3), Basis.DERIVED.value)
    return table


def _row(each: PolicyOutcome, ceiling: float) -> tuple[str, ...]:
    return (
        _NAMES[each.policy],
        units.share(each.hit_rate),
        units.share(each.hit_rate / ceiling) if ceiling else "",
        units.count(each.recomputed_tokens, "token"),
        units.duration(each.recompute_time_ns),
        _UNKNOWN if each.ttft_p50_ns is None else units.duration(each.ttft_p50_ns),
        _UNKNOWN if each.ttft_p99_ns is None else units.duration(each.ttft_p99_ns),
        _UNKNOWN if each.balance is None else units.share(each.balance),
        _UNKNOWN if each.busiest_share is None else units.share(each.busiest_share),
        each.basis.value,
    )


def _case(found: Routing) -> str:
    capacity = found.setup.capacity_blocks
    cache = f"caches of {units.count(capacity, 'block')} each" if capacity else "caches without limit"
    told = "from the log" if found.sessions_basis is Basis.MEASURED else "told apart by their prefixes"
    return (
        f"{units.count(found.requests, 'request')} for {units.count(found.blocks, 'block')} of "
        f"{units.count(found.block_tokens, 'token')}, {units.count(found.distinct_blocks, 'distinct block')}; "
        f"{units.count(found.sessions, 'session')}, {told}; {units.count(found.setup.workers, 'worker')}, {cache}."
    )


def _model(service: Service) -> str:
    standard = " (defaults: gpt-oss-120b on one H200)" if service == Service() else ""
    return (
        f"Times are modelled{standard}: prefill {units.duration(service.prefill_ns_per_token)} a token and "
        f"{units.duration(service.prefill_ns_per_token2 * _KILO**2)} a square of {units.count(_KILO, 'token')}, decode "
        f"{units.duration(service.decode_ns_per_token)} a token; a worker serves one request after the other."
    )


def _figures(each: PolicyOutcome) -> dict[str, Any]:
    return {
        "hit_rate": each.hit_rate,
        "basis": each.basis.value,
        "recomputed_tokens": each.recomputed_tokens,
        "recompute_time_ns": each.recompute_time_ns,
        "balance": each.balance,
        "busiest_share": each.busiest_share,
        "requests_per_worker": each.requests,
        "busy_ns_per_worker": each.busy_ns,
        "ttft_p50_ns": each.ttft_p50_ns,
        "ttft_p99_ns": each.ttft_p99_ns,
    }
