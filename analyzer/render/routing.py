"""What routing makes of a request log, as text, as markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer import units
from analyzer.render.compare.markdown import table
from analyzer.render.console import printed
from analyzer.render.formats.markdown import document
from analyzer.render.formats.markdown import text as escaped
from analyzer.render.safe import quoted, safe
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
_REUSE = ("policy", "reused", "of ceiling", "recomputed", "in", "basis")
_PRICE = ("policy", "TTFT p50", "TTFT p99", "peak/mean load", "busiest")
_LITTLE_SHARE = 0.01  # of all blocks; a smaller gain in reuse is no reason to change the router
_EVEN_SHARE = 1.05  # of a worker's fair share of the requests; a smaller excess is called even
_UNKNOWN = "unknown"
_NONE = "–"
_KILO = 1_000


def to_text(result: Routing, width: int = 80, *, color: bool = False) -> str:
    """The verdict first, then reuse and price of each policy and what the figures rest on.

    Args:
        result: what to show.
        width: columns; 80 fit.
        color: ANSI colours.
    """
    return printed(_parts(safe(result)), width, color=color)


def to_markdown(result: Routing) -> str:
    """For a pull request: the verdict first, then the same two tables."""
    result = safe(result)
    tables = (table(titles, (tuple(map(escaped, row)) for row in rows)) for titles, rows in _tables(result))
    return document(
        [f"**{escaped(verdict(result))}**", *tables, "\n".join(f"- {escaped(line)}" for line in _rest(result))]
    )


def to_json(result: Routing) -> str:
    """Schema 1: all figures, shares from 0 to 1 and integer nanoseconds."""
    service = result.setup.service
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "log": result.path,
        "requests": result.requests,
        "blocks": result.blocks,
        "distinct_blocks": result.distinct_blocks,
        "block_tokens": result.block_tokens,
        "workers": result.setup.workers,
        "capacity_blocks": result.setup.capacity_blocks or None,
        "sessions": {"count": result.sessions, "basis": result.sessions_basis.value},
        "service": {**asdict(service), "basis": Basis.MODEL.value},
        "policies": {each.policy: _figures(each) for each in result.outcomes},
        "achieved": None if result.achieved is None else _figures(result.achieved),
        "ceiling": result.ceiling,
        "ceiling_basis": Basis.DERIVED.value,
        "notes": [{"text": note.text, "count": note.count} for note in result.notes],
    }
    return quoted(msgspec.json.format(msgspec.json.encode(content), indent=2).decode()) + "\n"


def verdict(result: Routing) -> str:
    """One sentence: what KV-aware routing, or else the policy that finds most, reuses against round robin."""
    ceiling = units.share(result.ceiling)
    if result.distinct_blocks == result.blocks:
        return "No request asks for a prefix that an earlier one asked for: no routing can reuse anything."
    by_name = {each.policy: each for each in result.outcomes}
    most = max(result.outcomes, key=lambda each: each.hit_rate)
    head = by_name.get("kv_aware", most)
    base = by_name.get("round_robin") or min(result.outcomes, key=lambda each: each.hit_rate)
    clauses = [f"{_named(head)} would reuse {units.share(head.hit_rate)} of blocks"]
    if base is not head:
        clauses[0] += f" against {units.share(base.hit_rate)} under {_NAMES[base.policy]}"
        if head.hit_rate - base.hit_rate < _LITTLE_SHARE:
            clauses[0] = f"Routing makes little difference: {clauses[0]}"
    clauses.append(f"ceiling {ceiling}")
    if most.hit_rate - head.hit_rate >= _LITTLE_SHARE:
        clauses.append(f"{_NAMES[most.policy]} would reuse {units.share(most.hit_rate)}")
    if result.achieved is not None:
        of_what = " of tokens" if _is_of_tokens(result.achieved) else ""
        clauses.append(f"the log achieved {units.share(result.achieved.hit_rate)}{of_what}")
    return "; ".join((*clauses, _price(head, result.setup.workers)))


def _price(head: PolicyOutcome, workers: int) -> str:
    busiest = head.busiest_share or 0.0
    if busiest * workers < _EVEN_SHARE:
        return "price: none, the requests stay evenly spread"
    even = units.share(1 / workers)
    return f"price: the busiest worker serves {units.share(busiest)} of the requests, {even} would be even"


def _named(each: PolicyOutcome) -> str:
    name = _NAMES[each.policy]
    return name[0].upper() + name[1:]


def _is_of_tokens(each: PolicyOutcome) -> bool:
    """Whether its share is of prompt tokens, as the log counts them; all replays and the ceiling count blocks."""
    return each.basis is Basis.MEASURED


def _parts(result: Routing) -> Iterator[RenderableType]:
    yield Text(verdict(result), style="bold")
    for titles, rows in _tables(result):
        yield Text()
        yield _grid(titles, rows)
    yield Text()
    yield from map(Text, _rest(result))


def _grid(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for at, title in enumerate(titles):
        grid.add_column(title, justify="left" if at == 0 or title == "basis" else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _tables(result: Routing) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """What each policy reuses, and what that costs; the log's own line is the first."""
    each_of = (*(() if result.achieved is None else (result.achieved,)), *result.outcomes)
    ceiling = ("ceiling", units.share(result.ceiling), *[""] * (len(_REUSE) - 3), Basis.DERIVED.value)
    yield _REUSE, [*(_reuse(each, result.ceiling) for each in each_of), ceiling]
    yield _PRICE, [_times(each) for each in each_of]


def _reuse(each: PolicyOutcome, ceiling: float) -> tuple[str, ...]:
    return (
        _NAMES[each.policy],
        units.share(each.hit_rate),
        units.share(each.hit_rate / ceiling) if ceiling and not _is_of_tokens(each) else _NONE,
        units.count(each.recomputed_tokens, "token"),
        units.duration(each.recompute_time_ns),
        each.basis.value,
    )


def _times(each: PolicyOutcome) -> tuple[str, ...]:
    return (
        _NAMES[each.policy],
        _UNKNOWN if each.ttft_p50_ns is None else units.duration(each.ttft_p50_ns),
        _UNKNOWN if each.ttft_p99_ns is None else units.duration(each.ttft_p99_ns),
        _UNKNOWN if each.balance is None else units.share(each.balance),
        _UNKNOWN if each.busiest_share is None else units.share(each.busiest_share),
    )


def _rest(result: Routing) -> Iterator[str]:
    if result.achieved is not None and _is_of_tokens(result.achieved):
        yield "The log counts its cached tokens; the policies and the ceiling count blocks."
    yield _case(result)
    yield _model(result.setup.service)
    yield from (f"Note: {note.text}" for note in result.notes)


def _case(result: Routing) -> str:
    capacity = result.setup.capacity_blocks
    cache = f"caches of {units.count(capacity, 'block')} each" if capacity else "caches without limit"
    told = "from the log" if result.sessions_basis is Basis.MEASURED else "told apart by their prefixes"
    return (
        f"{units.count(result.requests, 'request')} for {units.count(result.blocks, 'block')} of "
        f"{units.count(result.block_tokens, 'token')}, {units.count(result.distinct_blocks, 'distinct block')}; "
        f"{units.count(result.sessions, 'session')}, {told}; {units.count(result.setup.workers, 'worker')}, {cache}."
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
