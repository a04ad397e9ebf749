"""A hand-over ledger and its verdict, as text and as markdown; JSON is the typed result itself."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.pd.pd import HandOverRow, Pd
from analyzer.render.compare.markdown import fold, table
from analyzer.render.console import printed
from analyzer.render.formats.markdown import document
from analyzer.render.formats.markdown import text as escaped
from analyzer.render.safe import quoted, safe
from analyzer.units import count, duration, ranks, rate, share, size

_NAMES = {
    "prefill": "prefill",
    "transfer": "KV transfer, exposed",
    "recompute": "prompt computed again",
    "queue": "queue at the decode rank",
    "handshake": "handshake",
    "unexplained": "unexplained",
    "first_decode": "first decode step",
}
_TITLES = ("term", "mean", "share", "least", "most")
_VERDICT = ("term", "side", "per hand-over", "basis")


def to_json(result: Pd) -> str:
    """Indented; keys in a stable order."""
    return quoted(msgspec.json.format(msgspec.json.encode(result), indent=2).decode()) + "\n"


def to_text(result: Pd, width: int = 80, *, color: bool = False) -> str:
    """For a terminal, in `width` columns."""
    return printed(_parts(safe(result)), width, color=color)


def to_markdown(result: Pd) -> str:
    """For a pull request: the verdict first, each hand-over folded."""
    result = safe(result)
    lines = [f"**{escaped(_headline(result))}**", *(f"- {escaped(line)}" for line in _facts(result))]
    if result.ledger:
        lines.append(table(_TITLES, _ledger(result.ledger)))
        cells = (
            (escaped(row.name), duration(row.total_ns), *(duration(value) for value in row.terms.values()))
            for row in result.ledger
        )
        titles = ("hand-over", "total", *_NAMES.values())
        lines.append(fold("Each hand-over", table(titles, cells)))
    if result.terms:
        lines.append(table(_VERDICT, (tuple(map(escaped, cells)) for cells in _terms(result))))
    lines += [f"- {escaped(line)}" for line in _open(result)]
    return document(lines)


def _parts(result: Pd) -> Iterator[RenderableType]:
    yield Text(_headline(result), style="bold")
    yield Text()
    yield from (Text(line) for line in _facts(result))
    if result.ledger:
        yield Text()
        yield Text(f"{count(len(result.ledger), 'hand-over')}; the terms add up to the total", style="bold")
        yield _grid(_TITLES, _ledger(result.ledger))
    if result.terms:
        yield Text()
        yield Text("gain of separate phases against transfer and lost locality", style="bold")
        yield _grid(_VERDICT, _terms(result))
    if any(_open(result)):
        yield Text()
    yield from (Text(line, style="yellow") for line in _open(result))


def _headline(result: Pd) -> str:
    return f"Disaggregation: {result.answer}"


def _facts(result: Pd) -> Iterator[str]:
    names = f"prefill: {result.prefill}; decode: {result.decode}"
    yield names + (f"; co-located: {result.colocated}" if result.colocated else "")
    moved = result.transfer
    via = f" by {', '.join(moved.carriers)}" if moved.carriers else ""
    if moved.state == "found":
        speed = "" if moved.bytes_per_s is None else f" at {rate(moved.bytes_per_s)}"
        many = count(moved.transfers or 0, "transfer")
        yield f"transfer: {many} of {size(moved.size_bytes or 0)}{via}{speed} (measured)"
        yield f"bound by: {moved.bound_by} ({moved.why}; {moved.basis})"
    else:
        word = "NO TRANSFER in a PD run" if moved.state == "none" else "unknown"
        yield f"transfer: {word}{via} ({moved.why})"
    again = result.double_prefill
    tokens = "" if again.decode_tokens is None else f": the decode side computed {again.decode_tokens:,} prompt tokens"
    yield {"found": "DOUBLE PREFILL", "none": "no double prefill", "unknown": "double prefill: unknown"}[
        again.state
    ] + f"{tokens} ({again.basis})"
    busy = ", ".join(
        f"{part.role} {ranks(part.ranks)} {'unknown' if part.busy_share is None else share(part.busy_share)} busy"
        for part in result.pools
    )
    yield f"pool that binds: {result.binding}{f' ({busy}; measured)' if busy else ''}"


def _ledger(rows: tuple[HandOverRow, ...]) -> Iterator[tuple[str, ...]]:
    whole = sum(row.total_ns for row in rows)
    for name, title in _NAMES.items():
        values = [row.terms[name] for row in rows]
        yield _line(title, values, share(sum(values) / whole))
    yield _line("total", [row.total_ns for row in rows], share(1.0))
    yield _line("(transfer, hidden)", [row.hidden_transfer_ns for row in rows], "beside")


def _line(title: str, values: list[int], part: str) -> tuple[str, ...]:
    return title, duration(sum(values) // len(values)), part, duration(min(values)), duration(max(values))


def _terms(result: Pd) -> Iterator[tuple[str, ...]]:
    for term in result.terms:
        value = "unknown" if term.value_ns is None else duration(term.value_ns)
        yield term.name, term.side, value, term.basis


def _open(result: Pd) -> Iterator[str]:
    yield from (f"missing: {line}" for line in result.missing)
    yield from (f"note: {line}" for line in result.notes)


def _grid(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> RenderableType:
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for at, title in enumerate(titles):
        grid.add_column(title, justify="right" if at else "left", overflow="fold")
    for cells in rows:
        grid.add_row(*cells)
    return grid
