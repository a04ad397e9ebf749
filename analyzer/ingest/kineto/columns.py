"""Events to columns: strings coded once, arguments sparse, times exact in integer nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from msgspec import Raw
from msgspec.structs import astuple, fields

from analyzer.ingest.kineto import exact, problems
from analyzer.ingest.kineto.decode import MISSING, NO_TEXT, Arguments, Event
from analyzer.ingest.kineto.detail import COMPLETE, Detail, Fate, Key, fate
from analyzer.ingest.kineto.problems import Problems
from analyzer.ingest.kineto.raw import Descriptions, SparseIntegers, SparseLabels
from analyzer.model.events import ABSENT, Labels
from analyzer.stats.arrays import Codes, Integers, Mask

BATCH = 4096  # events made into columns at a time: large enough for numpy, 3 MB of objects

_DESCRIBED_BY = {"process_name": "name", "thread_name": "name", "process_labels": "labels"}

_SAME = {
    "external id": "External id",  # until 2022
    "size": "bytes",  # ROCm's calls, MTIA
    "size(Byte)": "bytes",  # Ascend
    "Process Group ID": "Process Group Name",  # early 2024
    "Input dims": "Input Dims",  # 2020
}
_STREAMS = ("stream", "wait_on_stream")
_NO_STREAM = 2**32 - 1  # an unsigned -1
_LONGEST_NS = 10**18  # 31 years; keeps start + duration within int64


def _places(default: object) -> dict[str, tuple[int, ...]]:
    """Where in `Arguments` those of one kind stand, each under all its names."""
    positions: dict[str, tuple[int, ...]] = {}
    for position, argument in enumerate(fields(Arguments)):
        if argument.default is default and argument.encode_name not in ("name", "labels"):
            key = _SAME.get(argument.encode_name, argument.encode_name)
            positions[key] = (*positions.get(key, ()), position)
    return positions


_INTEGERS, _TEXTS, _NESTED = _places(MISSING), _places(None), _places(NO_TEXT)
INTEGERS = tuple(_INTEGERS)
TEXTS = (*_TEXTS, *_NESTED)


class Coder(dict[object, int]):
    """A number for each distinct string, in order of first appearance."""

    def __missing__(self, text: object) -> int:
        self[text] = code = len(self)
        return code

    def codes(self, texts: Iterable[object], n: int) -> Codes:
        """int32[n]."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, n)

    def labels(self, parts: list[Codes]) -> Labels:
        """The column, its parts joined."""
        texts = ["" if text is None else str(text) for text in self]
        codes = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        distinct = Labels.of(texts)  # a missing name and an empty one, 7 and "7"
        return Labels(distinct.values, codes if len(distinct.values) == len(texts) else distinct.codes[codes])


class _Fates(dict[Key, Fate]):
    def __init__(self, detail: Detail) -> None:
        self._detail = detail

    def __missing__(self, key: Key) -> Fate:
        self[key] = what = fate(key, self._detail)
        return what


@dataclass(slots=True)
class _Sparse:
    rows: list[Integers] = field(default_factory=list)
    values: list[Integers] = field(default_factory=list)
    coder: Coder = field(default_factory=Coder)


class Builder:
    """Takes events as they are decoded, gives their columns at the end.

    Attributes:
        seen: events taken, wanted or not.
    """

    def __init__(self, detail: Detail, problem_counts: Problems) -> None:
        self.seen = 0
        self._problem_counts = problem_counts
        self._fates = _Fates(detail)
        self._pending: list[Event] = []
        self._n = 0
        self._labels = {key: Coder() for key in ("ph", "cat", "name")}
        self._dense: dict[str, list[Codes]] = {key: [] for key in self._labels}
        self._numbers: dict[str, list[Integers]] = {key: [] for key in ("start", "duration", "pid", "tid")}
        self._sparse = {key: _Sparse() for key in (*INTEGERS, *TEXTS)}
        self._words = Coder()
        self._described: dict[tuple[int, int, str], str] = {}

    def add(self, events: list[Event]) -> None:
        """Keep the wanted ones."""
        fates, keep = self._fates, self._pending.append
        for event in events:
            what = fates[event.ph, event.cat, event.name]
            if what is Fate.SPAN:
                keep(event)
            elif what is Fate.DESCRIPTION:
                self._describe(event)
            elif what is Fate.PAIR:
                self._problem_counts[problems.PAIRS] += 1
            elif what is Fate.NO_EVENT:
                self._problem_counts[problems.NO_PHASE] += 1
                self.seen -= 1
        self.seen += len(events)
        if len(self._pending) >= BATCH:
            self._flush()

    def dense(self, base_ns: int) -> tuple[Labels, Labels, Labels, Integers, Integers, Integers, Integers]:
        """Phase, category, name, start, duration, process and thread of all events.

        Args:
            base_ns: nanoseconds to add to each start.
        """
        self._flush()
        phase, category, name = (self._labels[key].labels(self._dense.pop(key)) for key in ("ph", "cat", "name"))
        start, duration, process, thread = (
            _joined(self._numbers.pop(key)) for key in ("start", "duration", "pid", "tid")
        )
        start += base_ns
        return phase, category, name, start, duration, process, thread

    def arguments(self) -> tuple[dict[str, SparseIntegers], dict[str, SparseLabels]]:
        """The integers and the texts, each by its name in the file."""
        self._flush()
        integers = {key: SparseIntegers(*self._pair(key)) for key in INTEGERS}
        texts = {}
        for key in TEXTS:
            rows, codes = self._pair(key)
            texts[key] = SparseLabels(rows, self._sparse[key].coder.labels([codes.astype(np.int32)]))
        return integers, texts

    def descriptions(self) -> Descriptions:
        """What metadata events say of processes and threads."""
        keys = list(self._described)
        return Descriptions(
            np.array([process for process, _, _ in keys], np.int64),
            np.array([thread for _, thread, _ in keys], np.int64),
            Labels.of(key for _, _, key in keys),
            Labels.of(self._described.values()),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """Process and thread ids that are words."""
        return tuple(str(word) for word in self._words)

    @property
    def latest_ns(self) -> int:
        """Latest start before a clock base is added, 0 where there is none."""
        self._flush()
        return max((int(batch.max()) for batch in self._numbers["start"]), default=0)

    def _describe(self, event: Event) -> None:
        argument = _DESCRIBED_BY.get(str(event.name))
        text = getattr(event.args, argument) if argument and event.args is not None else None
        if text is not None:
            process, thread = (exact.identifier(value, self._words) for value in (event.pid, event.tid))
            self._described[process, thread, str(event.name)] = str(text)

    def _flush(self) -> None:
        events, self._pending = self._pending, []
        timed = self._timed(events) if events else None
        if timed is None:
            return
        events, start, duration = timed
        n = len(events)
        phase, category, name, process, thread, _, _, arguments = zip(*map(astuple, events), strict=True)
        for key, column in (("ph", phase), ("cat", category), ("name", name)):
            self._dense[key].append(self._labels[key].codes(column, n))
        self._numbers["start"].append(start)
        self._numbers["duration"].append(duration)
        self._numbers["pid"].append(exact.identifiers(process, self._words))
        self._numbers["tid"].append(exact.identifiers(thread, self._words))
        given = [each for each in arguments if each is not None]
        if given:
            has = np.fromiter((each is not None for each in arguments), np.bool_, n)
            self._add_arguments(self._n + np.flatnonzero(has), given)
        self._n += n

    def _timed(self, events: list[Event]) -> tuple[list[Event], Integers, Integers] | None:
        """The events that have a time, and the times; None where none has. The others are counted and left out."""
        start, rounded = exact.nanoseconds([event.ts for event in events])
        duration, _ = exact.nanoseconds([event.dur for event in events])
        marks = np.fromiter((event.ph != COMPLETE for event in events), np.bool_, len(events))
        duration[marks] = 0
        untimed = np.zeros(len(events), np.bool_)
        for problem, met in (
            (problems.NO_START, start == MISSING),
            (problems.ODD_START, start == exact.UNUSABLE),
            (problems.NO_DURATION, duration == MISSING),
            (problems.ODD_DURATION, (duration == exact.UNUSABLE) | (duration > _LONGEST_NS)),
            (problems.NEGATIVE, (duration < 0) & (duration > exact.UNUSABLE)),
        ):
            self._count(problem, met & ~untimed)
            untimed |= met
        if rounded:
            self._problem_counts[problems.ROUNDED] += rounded
        if not untimed.any():
            return events, start, duration
        timed = ~untimed
        kept = [event for event, is_timed in zip(events, timed.tolist(), strict=True) if is_timed]
        return (kept, start[timed], duration[timed]) if kept else None

    def _count(self, problem: str, met: Mask) -> None:
        if met.any():
            self._problem_counts[problem] += int(np.count_nonzero(met))

    def _add_arguments(self, rows: Integers, arguments: list[Arguments]) -> None:
        columns = list(zip(*map(astuple, arguments), strict=True))
        k = len(arguments)
        for key, places in _INTEGERS.items():
            given = [exact.integers(columns[position]) for position in places if columns[position].count(MISSING) != k]
            for values in given[1:]:
                given[0] = np.where(given[0] == MISSING, values, given[0])
            if given:
                if key in _STREAMS:
                    given[0][given[0] == _NO_STREAM] = ABSENT
                met = given[0] != MISSING
                self._sparse[key].rows.append(rows[met])
                self._sparse[key].values.append(given[0][met])
        for key, places in _TEXTS.items():
            self._add_texts(key, rows, [columns[position] for position in places], None)
        for key, places in _NESTED.items():
            self._add_texts(key, rows, [columns[position] for position in places], NO_TEXT)

    def _add_texts(self, key: str, rows: Integers, columns: list[tuple[object, ...]], absent: object) -> None:
        given = [column for column in columns if column.count(absent) != len(column)]
        if not given:
            return
        column = given[0] if len(given) == 1 else [a if a is not absent else b for a, b in zip(*given, strict=True)]
        met = [index for index, value in enumerate(column) if value is not absent]
        codes = self._sparse[key].coder.codes((_text(column[index]) for index in met), len(met))
        self._sparse[key].rows.append(rows[met])
        self._sparse[key].values.append(codes.astype(np.int64))

    def _pair(self, key: str) -> tuple[Integers, Integers]:
        sparse = self._sparse[key]
        return _joined(sparse.rows), _joined(sparse.values)


def _text(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, Raw) else str(value)


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
