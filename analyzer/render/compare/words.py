"""Words and figures that the text and the markdown of a comparison share."""

from __future__ import annotations

from fractions import Fraction

from analyzer.compare.balance import Overlap, Waterfall
from analyzer.compare.comparison import more, signed
from analyzer.compare.exact import Value
from analyzer.compare.timed import TimedRow
from analyzer.units import duration, size

UNDECIDED = "~"
"""In place of a change that the runs cannot show."""
SMALL = "small"
"""In place of one that they show, and that is too small to matter."""

_DECIDES = {
    "kernels": "the kernels themselves decide",
    "overlap": "overlap decides, not the kernels",
    "idle": "the time in which nothing runs decides",
}
_SMALLEST_P = 0.001
SHOWN_PARTS = 7


def amounts(name: str, values: tuple[Value, ...]) -> str:
    """Distinct values of an exact quantity: one, or the range."""
    if not values:
        return "–"
    shown = [_amount(name, value) for value in values]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _amount(name: str, value: Value) -> str:
    if not isinstance(value, Fraction):
        return value
    if name.startswith(("bytes.", "moved.")):
        return size(float(value))
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.2f}"


def cells(row: TimedRow) -> tuple[str, ...]:
    """A row of times but for its name: base, head, change, interval, p."""
    base, head = ("–" if value is None else duration(value) for value in (row.base_median_ns, row.head_median_ns))
    if row.ratio is None or row.interval is None or row.p is None:
        return base, head, "" if row.difference_ns is None else more(row.difference_ns), "", ""
    low, high = (signed(bound - 1) for bound in row.interval)
    change = signed(row.ratio - 1) if row.differs else SMALL if row.small else UNDECIDED
    return base, head, change, f"{low} to {high}", probability(row.p)


def summed(balance: Waterfall) -> str:
    """A difference and its parts, which sum to it, in one sentence."""
    parts = sorted(balance.parts, key=lambda part: -abs(part.difference_ns))
    kept = [f"{part.name} {more(part.difference_ns)}" for part in parts[:SHOWN_PARTS]]
    rest = parts[SHOWN_PARTS:]
    if rest:
        kept.append(f"{len(rest)} more {more(sum(part.difference_ns for part in rest))}")
    return f"{balance.title} {more(balance.whole.difference_ns)} = {', '.join(kept)}"


def probability(p: float) -> str:
    """Two significant digits; never 0."""
    return f"<{_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"


def lying(overlap: Overlap) -> str:
    """Span, union and sum of both sides in one sentence, with what decides."""
    sides = [
        f"{word} {duration(span)} window, {duration(union)} busy, {duration(all_ns)} summed"
        for word, (span, union, all_ns) in (("base", overlap.base_ns), ("head", overlap.head_ns))
    ]
    hidden = "less" if overlap.overlap_ns >= 0 else "more"
    parts = (
        f"{more(overlap.span_ns)} = kernels {more(overlap.kernels_ns)}, "
        f"{hidden} of them hidden {more(overlap.overlap_ns)}, idle {more(overlap.idle_ns)}"
    )
    verdict = f"; {_DECIDES[overlap.decides]}" if overlap.span_ns else ""
    return f"device work ({'; '.join(sides)}): {parts}{verdict}"
