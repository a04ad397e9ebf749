"""A run: the traces of all ranks of one job in one configuration, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.model.hardware import Hardware
from analyzer.model.layout import Layout
from analyzer.model.topology import Topology
from analyzer.model.trace import Note, Trace
from analyzer.model.workload import Workload


@dataclass(frozen=True, eq=False)
class Run:
    """Never changed after it is loaded.

    Attributes:
        label: path as the user gave it.
        traces: one a rank, ranks unique and ascending.
        layout: parallel axes.
        topology: placement of ranks.
        workload: model, engine, role.
        hardware: figures of the site's own machines, where it states any.
        notes: what finding and reading the files brought up, beside each trace's own notes.
    """

    label: str
    traces: tuple[Trace, ...]
    layout: Layout = field(default_factory=Layout)
    topology: Topology = field(default_factory=Topology)
    workload: Workload = field(default_factory=Workload)
    notes: tuple[Note, ...] = ()
    hardware: Hardware = field(default_factory=Hardware)

    def __post_init__(self) -> None:
        ranks = [trace.rank for trace in self.traces]
        if ranks != sorted(set(ranks)):
            raise ValueError(f"ranks must be unique and ascending, got {ranks}")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks whose traces are here."""
        return tuple(trace.rank for trace in self.traces)
