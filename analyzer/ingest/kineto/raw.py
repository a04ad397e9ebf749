"""A trace file as columns, before anybody has said what is device work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analyzer.model.events import ABSENT, Labels
from analyzer.model.trace import Note
from analyzer.stats.arrays import Integers, Mask

WORDS_FROM = -(2**62)
"""Numbers from here down stand for words. -1 and other small negative numbers are real process and thread ids."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseIntegers:
    """An integer that k of the events have.

    Attributes:
        rows: int64[k], ascending.
        values: int64[k].
    """

    rows: Integers
    values: Integers

    def dense(self, n: int) -> Integers:
        """int64[n], ABSENT where an event has none."""
        column = np.full(n, ABSENT, np.int64)
        column[self.rows] = self.values
        return column

    def take(self, chosen: Mask) -> SparseIntegers:
        """Those of the chosen events, rows counted among these."""
        keep = chosen[self.rows]
        return SparseIntegers((np.cumsum(chosen) - 1)[self.rows[keep]].astype(np.int64), self.values[keep])


@dataclass(frozen=True, slots=True, eq=False)
class SparseLabels:
    """A text that k of the events have.

    Attributes:
        rows: int64[k], ascending.
        values: k texts.
    """

    rows: Integers
    values: Labels

    def dense(self, n: int) -> Labels:
        """N texts, "" where an event has none."""
        codes = np.zeros(n, np.int32)
        codes[self.rows] = self.values.codes + 1
        return Labels(("", *self.values.values), codes)

    def take(self, chosen: Mask) -> SparseLabels:
        """Those of the chosen events, rows counted among these."""
        keep = chosen[self.rows]
        return SparseLabels((np.cumsum(chosen) - 1)[self.rows[keep]].astype(np.int64), self.values.take(keep))


@dataclass(frozen=True, slots=True, eq=False)
class Descriptions:
    """What m metadata events say of processes and threads, the last word where they repeat.

    Attributes:
        process: int64[m].
        thread: int64[m].
        key: `process_name`, `process_labels` or `thread_name`.
        text: `python3`, `GPU 0`, `stream 7`, …
    """

    process: Integers
    thread: Integers
    key: Labels
    text: Labels

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class RawTrace:
    """n events in the order of the file, which is not the order of time.

    Attributes:
        path: the file.
        phase: `X` for a span, `i` for a mark, whose duration is 0.
        category: `kernel`, `cuda_runtime`, …; "" where the file has none.
        name: n names.
        start_ns: int64[n], with the clock base added where the file states one.
        duration_ns: int64[n], not negative.
        process: int64[n], process id, device index, or a number that stands for a word (`word`).
        thread: int64[n], thread id, stream, or a number that stands for a word; `stream 7` is 7.
        integers: arguments that are integers, by their name in the file; always the same keys (`columns.INTEGERS`).
        texts: arguments that are text, likewise (`columns.TEXTS`); nested values are JSON text as in the file.
        descriptions: names of processes and threads.
        words: process and thread ids that are words.
        metadata: the file's own top-level keys but the events.
        problems: what was repaired, left out or lost.
    """

    path: Path
    phase: Labels
    category: Labels
    name: Labels
    start_ns: Integers
    duration_ns: Integers
    process: Integers
    thread: Integers
    integers: dict[str, SparseIntegers]
    texts: dict[str, SparseLabels]
    descriptions: Descriptions
    words: tuple[str, ...]
    metadata: dict[str, object]
    problems: tuple[Note, ...]

    def __len__(self) -> int:
        return len(self.name)

    def take(self, chosen: Mask) -> RawTrace:
        """The chosen events, in the order they have."""
        return replace(
            self,
            phase=self.phase.take(chosen),
            category=self.category.take(chosen),
            name=self.name.take(chosen),
            start_ns=self.start_ns[chosen],
            duration_ns=self.duration_ns[chosen],
            process=self.process[chosen],
            thread=self.thread[chosen],
            integers={key: column.take(chosen) for key, column in self.integers.items()},
            texts={key: column.take(chosen) for key, column in self.texts.items()},
        )

    def integer(self, key: str) -> Integers:
        """int64[n], the argument of each event, ABSENT where it has none."""
        return self.integers[key].dense(len(self))

    def text(self, key: str) -> Labels:
        """The argument of each of the n events, "" where it has none."""
        return self.texts[key].dense(len(self))

    def word(self, number: int) -> str | None:
        """The word that a process or thread number stands for (`Spans`); None where it is a real number."""
        index = WORDS_FROM - number
        return self.words[index] if 0 <= index < len(self.words) else None
