"""Numbers as people read them. Nothing else in the package formats a duration, a size or a rate."""

_SHOWS_AS_NOTHING = 0.05
_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def duration(ns: float) -> str:
    """Three significant digits and a unit: 1_234_567 → '1.23 ms'."""
    size = abs(ns)
    for scale, unit in _TIMES:
        if size >= scale:
            return f"{_three(ns / scale)} {unit}"
    return "0 ns"


def size(n_bytes: float) -> str:
    """Binary units: 1536 → '1.50 KiB'."""
    for scale, unit in _SIZES:
        if abs(n_bytes) >= scale:
            return f"{n_bytes:.0f} B" if scale == 1 else f"{_three(n_bytes / scale)} {unit}"
    return "0 B"


def rate(bytes_per_s: float) -> str:
    """Decimal gigabytes a second, as hardware sheets and nccl-tests print them: '45.0 GB/s'."""
    return f"{_three(bytes_per_s / 1e9)} GB/s"


def share(fraction: float) -> str:
    """A fraction of one as percent: 0.125 → '12.5 %'; what is not nothing never reads as nothing."""
    percent = 100 * fraction
    if 0 < abs(percent) < _SHOWS_AS_NOTHING:
        return "<0.1 %"
    return f"{percent:.1f} %"


def count(n: int, noun: str, plural: str = "") -> str:
    """'1 rank', '2 ranks', '3 copies' (plural given where an s does not do)."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def ranks(numbers: "tuple[int, ...] | list[int]") -> str:
    """Runs of ranks shortened: (0, 1, 2, 5) → '0-2, 5'."""
    ordered = sorted(set(numbers))
    parts: list[str] = []
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(str(ordered[start]) if end == start else f"{ordered[start]}-{ordered[end]}")
        start = end + 1
    return ", ".join(parts)


def _three(value: float) -> str:
    rounded = float(f"{abs(value):.3g}")
    whole_digits = len(str(int(rounded)))
    return f"{value:,.{max(0, 3 - whole_digits)}f}"
