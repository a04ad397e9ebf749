"""Small traces with launches, graphs and annotations, for tests of steps and layouts."""

import numpy as np

from analyzer.model.events import ABSENT, Activities, Events, Labels
from analyzer.model.kind import Kind
from analyzer.model.pattern import Pattern
from analyzer.model.trace import CollectiveRecords, Origin, Trace

US = 1_000
SUBCLASSES = {
    "gemm": (Kind.COMPUTE, "gemm"),
    "attn": (Kind.COMPUTE, "attention"),
    "norm": (Kind.COMPUTE, "norm"),
    "sample": (Kind.COMPUTE, "sampling"),
    "HtoD": (Kind.MOVEMENT, "copy_htod"),
    "DtoH": (Kind.MOVEMENT, "copy_dtoh"),
    "reduce": (Kind.COMMUNICATION, "all_reduce"),
    "exchange": (Kind.COMMUNICATION, "all_to_all"),
    "route": (Kind.COMPUTE, "moe_route"),
    "internode_ll::dispatch": (Kind.COMMUNICATION, "dispatch"),
    "internode_ll::combine": (Kind.COMMUNICATION, "combine"),
}


class Recorder:
    """Writes a trace down in the order in which a host would launch it; one microsecond a call, times in microseconds."""

    def __init__(self, device="cuda", **origin):
        self.device, self.origin = device, origin
        self.spans, self.calls, self.annotated, self.correlation = [], [], [], 0
        self.host = self.busy = 0

    def launch(self, *names, us=10, thread=1, stream=7, call="cudaLaunchKernel", late=5):
        """One call that launches activities one after another, the first no sooner than `late` after the call."""
        self.correlation += 1
        self.calls.append((call, self.host, self.host + 1, 100, thread, self.correlation))
        self.host += 1
        self.busy = max(self.busy, self.host + late)
        for name in names:
            self.spans.append((name, self.busy, self.busy + us, 0, stream, self.correlation))
            self.busy += us
        return self

    def graph(self, *names, us=10, thread=1):
        return self.launch(*names, us=us, thread=thread, call="cudaGraphLaunch")

    def annotate(self, name, work, thread=1):
        """A range around what `work` launches."""
        start = self.host
        work()
        self.host += 1
        self.annotated.append((name, start, self.host, 100, thread, ABSENT))
        return self

    def wait(self, us):
        self.host += us
        return self

    def catch_up(self):
        """The host waits for the device."""
        self.host = max(self.host, self.busy)
        return self

    def trace(self, rank=0):
        spans = sorted(self.spans, key=lambda span: span[1])
        names = Labels.of(span[0] for span in spans)
        patterns = []
        for name in names.values:
            word = next((word for word in SUBCLASSES if name.startswith(word)), None)
            patterns.append(None if word is None else Pattern(word, *SUBCLASSES[word], (name,)))
        activities = Activities(*_columns(spans), tuple(patterns), np.full(len(spans), ABSENT, np.int64))
        nothing = Events(*_columns([]))
        return Trace(
            rank,
            Origin(f"rank{rank}", self.device, **self.origin),
            activities,
            calls=Events(*_columns(sorted(self.calls, key=lambda call: call[1]))),
            ops=nothing,
            annotations=Events(*_columns(sorted(self.annotated, key=lambda span: span[1]))),
            collectives=CollectiveRecords.none(),
        )


def _columns(rows):
    names = Labels.of(row[0] for row in rows)
    start, end, process, lane, correlation = (np.array([row[at] for row in rows], np.int64) for at in range(1, 6))
    return names, start * US, end * US, process, lane, correlation
