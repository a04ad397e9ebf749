"""Events of the Chrome trace format as text, and the tracks that spans need so that none overlaps another.

Source: "Trace Event Format" (Google), which Perfetto, chrome://tracing and others read. Times are microseconds; three
decimals keep the nanosecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from analyzer.stats.arrays import Integers


def microseconds(time_ns: int) -> str:
    """A time as the format writes it: 1_234_567 → '1234.567'."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def name_process(process: int, name: str) -> Iterator[str]:
    """Name and place of a process; processes stand in order of their number."""
    text = json.dumps(name)
    yield f'{{"ph":"M","pid":{process},"tid":0,"name":"process_name","args":{{"name":{text}}}}}'
    yield f'{{"ph":"M","pid":{process},"tid":0,"name":"process_sort_index","args":{{"sort_index":{process}}}}}'


def name_track(process: int, track: int, name: str) -> Iterator[str]:
    """Name and place of a track of a process; tracks stand in order of their number."""
    text, ids = json.dumps(name), f'"pid":{process},"tid":{track}'
    yield f'{{"ph":"M",{ids},"name":"thread_name","args":{{"name":{text}}}}}'
    yield f'{{"ph":"M",{ids},"name":"thread_sort_index","args":{{"sort_index":{track}}}}}'


def slices(
    process: int, tracks: Sequence[int], start_ns: Integers, end_ns: Integers, texts: Sequence[str]
) -> Iterator[str]:
    """Spans.

    Args:
        process: number of the process.
        tracks: n numbers.
        start_ns: int64[n], not below 0.
        end_ns: int64[n].
        texts: n times the rest of the event, from `"name":` on, as JSON without braces.
    """
    head = f'{{"ph":"X","pid":{process},"tid":'
    times = (column.tolist() for time_ns in (start_ns, end_ns - start_ns) for column in np.divmod(time_ns, 1000))
    # as `microseconds`, on columns: a call each would double the time of a large file
    for track, start, start_rest, length, length_rest, text in zip(tracks, *times, texts, strict=True):
        yield f'{head}{track},"ts":{start}.{start_rest:03d},"dur":{length}.{length_rest:03d},{text}}}'


def arrow(number: int, begin: tuple[int, int, int], end: tuple[int, int, int]) -> Iterator[str]:
    """An arrow between two spans, each end as (process, track, time inside the span)."""
    for ph, (process, track, time_ns), rest in (("s", begin, ""), ("f", end, ',"bp":"e"')):
        fields = f'"id":{number},"pid":{process},"tid":{track},"ts":{microseconds(time_ns)}'
        yield f'{{"ph":"{ph}","cat":"collective","name":"waits for",{fields}{rest}}}'


def marker(process: int, track: int, time_ns: int, text: str) -> str:
    """A mark at one instant; `text` as in `slices`."""
    return f'{{"ph":"i","s":"t","pid":{process},"tid":{track},"ts":{microseconds(time_ns)},{text}}}'


def packed(start_ns: Integers, end_ns: Integers) -> Integers:
    """int64[n]: for each span the first track that is free when it starts, 0 where none overlaps.

    Args:
        start_ns: int64[n], ascending.
        end_ns: int64[n].
    """
    if start_ns.size < 2 or np.all(start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]):  # noqa: PLR2004 (one alone)
        return np.zeros(start_ns.size, np.int64)
    held: list[tuple[int, int]] = []  # end and track of spans that may still last
    free: list[int] = []
    tracks = []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while held and held[0][0] <= start:
            heappush(free, heappop(held)[1])
        track = heappop(free) if free else len(held)
        heappush(held, (end, track))
        tracks.append(track)
    return np.array(tracks, np.int64)
