"""Room for KV cache told apart from speed: what of a gain or a loss between two degrees memory explains."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.sweep.point import Memory, Point
from analyzer.units import share

SUPER_LINEAR = 1.1
"""Share of linear beyond which ranks alone do not explain a gain; shard efficiencies of GEMMs reach 1.01."""
PRESSED = 0.9
"""Share of the KV memory in use from which it counts as short: our choice, preemptions follow soon after."""
MORE_HITS = 0.05
"""Difference of two hit rates that is worth a word: our choice."""
SAME_GAIN = 0.05
"""Share of linear by which a gain must fall behind the one before, for a knee: as little as run noise of 3 % shows."""

_CURE = "preemptions and KV use at both degrees would tell (columns preemptions, kv_use)"


def memory_notes(points: tuple[Point, ...], efficiencies: tuple[float, ...]) -> tuple[str, ...]:
    """One sentence a degree whose gain or loss is, or may be, memory's; and one for the knee where memory suffices.

    Args:
        points: ascending, at least one.
        efficiencies: of each but the first: speed-up over the point before, divided by the growth in GPUs.
    """
    notes, was_eased = [], False
    for before, after, efficiency in zip(points, points[1:], efficiencies, strict=False):
        reason = capacity(before, after, efficiency)
        if reason:
            notes.append(f"degree {after.degree} {reason}")
        is_eased = bool(eased(before.memory, after.memory))
        if was_eased and not is_eased and efficiency < 1 - SAME_GAIN:
            notes.append(
                f"degree {before.degree} is a knee of memory: up to it each step also added room, beyond it "
                f"{share(efficiency)} of linear is what the ranks alone give"
            )
        was_eased = is_eased
    return tuple(notes)


def capacity(before: Point, after: Point, efficiency: float) -> str:
    """Why a change is room and not speed, "" where nothing speaks for that.

    More ranks hold more KV memory: a larger batch, fewer evictions, more cache hits. Such a gain ends where memory
    suffices, and fewer ranks with more memory each have it too.
    """
    seen = " and ".join(eased(before.memory, after.memory))
    if efficiency > SUPER_LINEAR:
        gain = f"is faster than the ranks alone explain ({share(efficiency)} of linear)"
        return f"{gain}: capacity or another load a step, not speed; {seen or _CURE}"
    if seen:
        return f"gains room too: {seen}; its {share(efficiency)} of linear is not parallel efficiency alone"
    lost = " and ".join(eased(after.memory, before.memory, back=True))
    if lost and efficiency * after.size / before.size < 1:
        return f"has less room: {lost}; that part of its loss is capacity, not communication"
    return ""


def eased(tight: Memory, roomy: Memory, *, back: bool = False) -> tuple[str, ...]:
    """What shows that the second has more room, in words; empty where nothing does.

    Args:
        tight: the one that would have less.
        roomy: the one that would have more.
        back: told from the roomy to the tight.
    """
    return tuple(_eased(tight, roomy, back=back))


def _eased(tight: Memory, roomy: Memory, *, back: bool) -> Iterator[str]:
    fell, rose = ("rose", "fell") if back else ("fell", "rose")

    def change(a: str, b: str) -> str:
        return f"from {b} to {a}" if back else f"from {a} to {b}"

    if tight.preemptions is not None and roomy.preemptions is not None and tight.preemptions > roomy.preemptions:
        yield f"preemptions {fell} {change(f'{tight.preemptions:,.0f}', f'{roomy.preemptions:,.0f}')}"
    if tight.kv_use is not None and roomy.kv_use is not None and tight.kv_use >= PRESSED > roomy.kv_use:
        yield f"KV memory in use {fell} {change(share(tight.kv_use), share(roomy.kv_use))}"
    if tight.hit_rate is not None and roomy.hit_rate is not None and roomy.hit_rate - tight.hit_rate >= MORE_HITS:
        yield f"cache hits {rose} {change(share(tight.hit_rate), share(roomy.hit_rate))}"
