"""Request logs for routing: which blocks of KV each request asked for, when, and where it was served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer import units
from analyzer.errors import TraceFormatError
from analyzer.model.events import ABSENT
from analyzer.model.trace import Note
from analyzer.routing.block_ids import chained
from analyzer.routing.request_rows import HASH_FIELDS, TOKEN_FIELDS, Rows, read_rows
from analyzer.stats.arrays import Integers, Mask

BLOCK_TOKENS = 512  # tokens of a block in Mooncake's public traces
UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

# The earliest `timestamp` of a log tells seconds, ms, µs or ns since 1970 apart from time since the log began, which
# Mooncake writes in milliseconds: 1e9 s after 1970 is 2001, 1e9 ms after the beginning is eleven days.
_SINCE_1970 = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e9, "s"))
_MISFIT_SHARE = 0.5  # of requests whose length does not fit their number of blocks, to be told


@dataclass(frozen=True, slots=True, eq=False)
class RequestLog:
    """n requests in order of arrival; equal arrivals in order of content, so that their order in the file is no matter.

    Attributes:
        path: file as the user gave it.
        arrival_ns: int64[n], since the first request; all 0 where the log has no times.
        input_tokens: int64[n], of the prompt; ABSENT where not recorded.
        output_tokens: int64[n], generated; ABSENT where not recorded.
        first_block: int64[n + 1]: the blocks of request i are block[first_block[i]:first_block[i + 1]].
        block: int64[m], 0 to distinct_blocks - 1; one number for one block behind one prefix.
        distinct_blocks: number of different blocks, each behind its prefix.
        distinct_ids: number of different ids as logged; less than distinct_blocks where ids do not name prefixes.
        block_tokens: tokens of a block.
        session: int64[n], conversation or user; ABSENT where not recorded.
        worker: int64[n], index into `workers`: who really served it; ABSENT where not recorded.
        workers: names of the workers of the log.
        cached_tokens: int64[n], prompt tokens that were really found in the cache; ABSENT where not recorded.
        notes: how the log was read.
    """

    path: str
    arrival_ns: Integers
    input_tokens: Integers
    output_tokens: Integers
    first_block: Integers
    block: Integers
    distinct_blocks: int
    distinct_ids: int
    block_tokens: int
    session: Integers
    worker: Integers
    workers: tuple[str, ...]
    cached_tokens: Integers
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return int(self.arrival_ns.size)

    @property
    def block_count(self) -> Integers:
        """int64[n]: blocks that each request asks for."""
        return np.diff(self.first_block)


def load(
    path: Path,
    *,
    block_tokens: int = BLOCK_TOKENS,
    time_unit: str | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> RequestLog:
    """The requests of a log, JSON lines, plain or gzip.

    A line holds `hash_ids` (Mooncake), `block_hashes` or `prefix_hashes`, or else `prompt_token_ids` or `token_ids`,
    whose full blocks are hashed with all tokens before them. `timestamp` is in milliseconds since the log began unless
    it reads as time since 1970; `arrival_time` is in seconds.

    Args:
        path: file to read.
        block_tokens: tokens of a block.
        time_unit: unit of the times, one of UNIT_NS; None to tell by their size.
        tick: told the bytes of file read so far.

    Raises:
        TraceFormatError: not one line is a request, or no request has a block.

    Source: Mooncake FAST25-release/README.md.
    """
    rows, ending = read_rows(path, block_tokens, tick)
    times, unit = _times(rows, time_unit)
    kept = _sound(rows, times)
    line, fault = rows.first_bad
    if not kept.any():
        raise TraceFormatError(
            f"{path}: no request among {units.count(rows.lines, 'line')}"
            + (f"; line {line}: {fault}" if rows.bad else "")
            + f". Expected JSON lines, each with one of {', '.join(HASH_FIELDS + TOKEN_FIELDS)}."
        )
    log = _assembled(str(path), rows, kept, block_tokens, (times, unit))
    notes = [Note(f"{ending}; what was read before is used")] if ending else []
    if rows.bad:
        left_out = f"{units.count(rows.bad, 'line')} left out, {units.count(len(log), 'request')} read"
        notes.append(Note(f"{left_out}; the first left out is line {line}: {fault}", rows.bad))
    return replace(log, notes=(*notes, *_time_notes(times, unit), *_block_notes(log, rows)))


def _times(rows: Rows, time_unit: str | None) -> tuple[npt.NDArray[Any], str]:
    """Times as logged, NaN where a request has none, and their unit; "" where no request has one."""
    times = rows.column("timestamp")
    seconds = rows.column("arrival_time")
    if not np.isfinite(times).any():
        return seconds, (time_unit or "s") if np.isfinite(seconds).any() else ""
    earliest = float(np.nanmin(times))
    guessed_unit = next((unit for floor, unit in _SINCE_1970 if earliest >= floor), "ms")
    return times, time_unit or guessed_unit


def _sound(rows: Rows, times: npt.NDArray[Any]) -> Mask:
    """bool[n]: requests that can be used; the others are counted as bad lines."""
    lines, cached, prompt = rows.column("line"), rows.column("cached"), rows.column("input")
    sound = np.ones(lines.size, np.bool_)
    timed = np.isfinite(times)
    faults = {
        "it has no time, where other lines have one": ~timed & timed.any(),
        "more tokens were cached than the prompt has": (cached > prompt) & (prompt != ABSENT),
    }
    for fault, is_faulty in faults.items():
        fresh = np.flatnonzero(is_faulty & sound)
        if fresh.size:
            rows.reject(int(lines[fresh[0]]), fault, int(fresh.size))
            sound &= ~is_faulty
    return sound


def _assembled(path: str, rows: Rows, kept: Mask, block_tokens: int, clock: tuple[npt.NDArray[Any], str]) -> RequestLog:
    """Columns of the kept requests, in order, without notes."""
    times, unit = clock
    counts = rows.column("block_count")
    ids = rows.column("blocks")[np.repeat(kept, counts)]
    if ids.size == 0:
        raise TraceFormatError(
            f"{path}: {rows.form_name} of {units.count(int(kept.sum()), 'request')} holds not one block of "
            f"{block_tokens} tokens; pass --block-tokens with the block size of the engine."
        )
    first = _offsets(counts[kept])
    chain = chained(ids, first)
    session, _ = _ranked(rows.words["session"], kept)
    worker, workers = _ranked(rows.words["worker"], kept)
    arrival_ns = _arrivals(times[kept], unit)
    prompt, output, cached = (rows.column(name)[kept] for name in ("input", "output", "cached"))
    order = np.arange(arrival_ns.size)
    if unit:
        last_block = np.where(np.diff(first) > 0, chain.block[np.maximum(first[1:] - 1, 0)], ABSENT)
        order = np.lexsort((cached, worker, session, output, prompt, last_block, arrival_ns))
    lengths = np.diff(first)[order]
    sorted_first = _offsets(lengths)
    block_index = np.repeat(first[:-1][order] - sorted_first[:-1], lengths) + np.arange(ids.size)
    return RequestLog(
        path=path,
        arrival_ns=arrival_ns[order],
        input_tokens=prompt[order],
        output_tokens=output[order],
        first_block=sorted_first,
        block=chain.block[block_index],
        distinct_blocks=chain.distinct,
        distinct_ids=chain.distinct_ids,
        block_tokens=block_tokens,
        session=session[order],
        worker=worker[order],
        workers=workers,
        cached_tokens=cached[order],
    )


def _offsets(counts: Integers) -> Integers:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _arrivals(times: npt.NDArray[Any], unit: str) -> Integers:
    """int64[n] since the earliest; 0 where the log has no times."""
    if not unit:
        return np.zeros(times.size, np.int64)
    # The difference first: nanoseconds since 1970 do not fit a float, those since the log began do.
    since_begin: Integers = np.rint((times - times.min()) * UNIT_NS[unit]).astype(np.int64)
    return since_begin


def _ranked(words: list[str], kept: Mask) -> tuple[Integers, tuple[str, ...]]:
    """int64[n]: place of each word among the sorted distinct ones, ABSENT for ""; and those."""
    names = tuple(sorted({word for word in words if word}))
    position = {name: index for index, name in enumerate(names)}
    if not names:
        return np.full(int(kept.sum()), ABSENT, np.int64), ()
    return np.array([position.get(word, ABSENT) for word in words], np.int64)[kept], names


def _time_notes(times: npt.NDArray[Any], unit: str) -> list[Note]:
    if not unit:
        return [Note("no request has a time: they are taken in the order of the file, all at once")]
    since_1970 = float(np.nanmin(times)) * UNIT_NS[unit] >= _SINCE_1970[-1][0] * UNIT_NS["s"]
    return [Note(f"times read as {unit} since {'1970' if since_1970 else 'the log began'}")]


def _block_notes(log: RequestLog, rows: Rows) -> list[Note]:
    notes = []
    if log.distinct_blocks > log.distinct_ids:
        text = (
            "block ids do not name prefixes: some follow different blocks in different requests, where their KV cannot "
            "be reused; the ceiling counts them all the same"
        )
        notes.append(Note(text, log.distinct_blocks - log.distinct_ids))
    known = (log.input_tokens != ABSENT) & (log.block_count > 0)
    tokens, blocks = log.input_tokens[known], log.block_count[known]
    fits = (tokens > (blocks - 1) * log.block_tokens) & (tokens < (blocks + 1) * log.block_tokens)
    if fits.size and float(np.mean(~fits)) > _MISFIT_SHARE and rows.form_name in HASH_FIELDS:
        text = (
            f"prompts do not fit blocks of {log.block_tokens} tokens; their lengths suggest about "
            f"{units.count(int(np.median(tokens / blocks)), 'token')} a block: pass --block-tokens"
        )
        notes.append(Note(text, int(np.sum(~fits))))
    return notes
