"""What each group's collectives cross and how fast: rung, nodes, rails, bus bandwidth, and what is to be expected.

Transfer is one call without its waiting, the median over calls of one message size. Efficiency is expected over
measured time. Bands and sizes: a message of 64 KiB or less is bound by latency, one of 1 MiB or more by bandwidth;
0.7 of the expected speed and more is normal, below 0.4 is worth a look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from analyzer.errors import MissingEvidenceError
from analyzer.matching.collectives import match
from analyzer.measures.expected import Call, Expected, expected
from analyzer.measures.traffic import Traffic, traffic
from analyzer.measures.waits import GroupWaits, WaitVerdict, waits
from analyzer.model.events import ABSENT
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK
from analyzer.once import once

LATENCY_BYTES = 64 << 10
BANDWIDTH_BYTES = 1 << 20
NORMAL, LOW = 0.7, 0.4
"""Efficiencies from which a transfer is normal, and below which it is worth a look."""
IMPLAUSIBLE = 1.3
"""Efficiency of a large message from which the rung or the bytes are wrong."""
MOSTLY_HIDDEN = 0.5
"""Share of a collective's time under compute beyond which it is not graded: both then share SMs and memory."""

Bound = Literal["latency", "bandwidth", "both", "unknown"]
Band = Literal["normal", "low", "slow", "implausible", "unknown"]

PASSES = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
}
"""Times (n - 1)/n is bus bandwidth over S/t, as nccl-tests defines it."""
POINT_TO_POINT = ("send_recv", "send", "recv", "broadcast")

_CUSTOM = re.compile(
    r"cross_device_reduce|allreduce_fusion|multimem_all_reduce|(one|two)_shot_all_reduce|all_reduce_[12]shot"
    r"|allreduce_prototype_(one|two)shot"
)
"""All-reduces that engines and their libraries run only among ranks that read each other's memory."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """One kind of collective on one group.

    Attributes:
        kind: of the collective.
        ranks: of the group.
        size: number of its ranks, those without a trace included; 0 where the group is unknown.
        rung: `peer`, `pcie`, `socket`, `network`; `node` where only the node is known; `unknown`.
        nodes: that hold the group, None where unknown.
        rail_aligned: same device numbers on each node; None on one node or where unknown.
        message_bytes: of the calls measured, None where not recorded.
        transfer_ns: one call without waiting, median; None where waiting cannot be told.
        busbw_bytes_per_s: None where bytes or transfer are unknown, or the kind has no such figure.
        expected: what a call of this size should take here, None where nothing is known.
        in_node: what it should take inside one node; None for a group that is known to be in one.
        is_custom: a kernel that only ranks of one scale-up domain can run.
        is_graded: all its ranks are in the run, and it is not mostly hidden under compute.
    """

    kind: str
    ranks: tuple[int, ...]
    size: int
    rung: str
    nodes: int | None
    rail_aligned: bool | None
    message_bytes: int | None
    transfer_ns: int | None
    busbw_bytes_per_s: float | None
    expected: Expected | None
    in_node: Expected | None
    is_custom: bool
    is_graded: bool

    @property
    def bound(self) -> Bound:
        """`latency`, `bandwidth`, `both` in between, or `unknown`."""
        if self.message_bytes is None:
            return "unknown"
        if self.message_bytes <= LATENCY_BYTES:
            return "latency"
        return "bandwidth" if self.message_bytes >= BANDWIDTH_BYTES else "both"

    @property
    def efficiency(self) -> float | None:
        """Expected over measured time; None where either is unknown."""
        if self.expected is None or not self.transfer_ns:
            return None
        return self.expected.time_ns / self.transfer_ns

    @property
    def band(self) -> Band:
        """`normal`, `low`, `slow`, `implausible`, or `unknown`. What lies within the expected range is normal."""
        if self.efficiency is None or self.expected is None or not self.is_graded:
            return "unknown"
        if self.efficiency >= IMPLAUSIBLE and self.bound == "bandwidth":
            return "implausible"
        if self.efficiency >= NORMAL or (self.transfer_ns or 0) <= self.expected.high_ns:
            return "normal"
        return "low" if self.efficiency >= LOW else "slow"

    @property
    def expected_busbw_bytes_per_s(self) -> float | None:
        """Bus bandwidth at the expected time."""
        return _busbw(self.kind, self.size, self.message_bytes, self.expected.time_ns if self.expected else None)


def unplaced(run: Run) -> MissingEvidenceError:
    """What is missing of a run whose group has no known node, and what would tell."""
    if run.topology.nodes(run.ranks) is None:
        cure = '`shardscope collect topology` beside the traces, or "topology": {"nodes": …} in run.json, would tell'
        return MissingEvidenceError("where the ranks run is not recorded", cure)
    cure = 'state the layout in run.json beside the traces: {"layout": {"tp": 2, …}}'
    return MissingEvidenceError("which ranks talk to each other is not recorded", cure)


def unlinked(what: str) -> MissingEvidenceError:
    """What a snapshot of the topology would tell and is missing."""
    cure = "`shardscope collect topology --workers --out RUN` on each node, RUN the directory of the traces, would tell"
    return MissingEvidenceError(f"{what} not recorded", cure)


@once
def links(run: Run) -> tuple[LinkUse, ...]:
    """One for each row of `traffic`, in its order."""
    return tuple(_link(run, row) for row in traffic(run))


def _link(run: Run, row: Traffic) -> LinkUse:
    group_waits = _waits_of(run, row)
    ranks = row.group or (group_waits.group.ranks if group_waits else _sole(run, row))
    whole = _whole(run, ranks, group_waits)
    size = group_waits.group.size if group_waits else len(ranks)
    nodes = run.topology.nodes(whole) if whole else None
    transfer_ns, message_bytes = _transfer(group_waits, row)
    is_custom = all(_CUSTOM.search(name) for name in row.names)
    n_nodes = len(nodes) if nodes else None
    call = _call(row.kind, message_bytes, size, is_custom=is_custom)
    due, in_node = _expected(run, call, n_nodes) if call else (None, None)
    return LinkUse(
        kind=row.kind,
        ranks=ranks,
        size=size,
        rung=_rung(run, whole, n_nodes),
        nodes=n_nodes,
        rail_aligned=run.topology.is_rail_aligned(whole) if n_nodes and n_nodes > 1 else None,
        message_bytes=message_bytes,
        transfer_ns=transfer_ns,
        busbw_bytes_per_s=_busbw(row.kind, size, message_bytes, transfer_ns),
        expected=due,
        in_node=in_node,
        is_custom=is_custom,
        is_graded=group_waits is not None
        and not group_waits.is_lower_bound
        and row.exposed_ns >= MOSTLY_HIDDEN * row.busy_ns,
    )


def _waits_of(run: Run, row: Traffic) -> GroupWaits | None:
    """Waiting of the row's group, or of the one group that has its kind."""
    try:
        groups = waits(run).groups
    except MissingEvidenceError:
        return None
    having = [group_waits for group_waits in groups if row.kind in group_waits.group.kinds]
    chosen = [group_waits for group_waits in having if group_waits.group.ranks == row.group] if row.group else having
    return chosen[0] if len(chosen) == 1 else None


def _sole(run: Run, row: Traffic) -> tuple[int, ...]:
    """All ranks, where the only axis in use has them all in one group; () where the group is not known."""
    return run.ranks if run.layout.axis_of(run.ranks, row.kind) else ()


def _whole(run: Run, ranks: tuple[int, ...], group_waits: GroupWaits | None) -> tuple[int, ...]:
    """Ranks of the group, those without a trace included; () where these are numbered otherwise than the run's."""
    absent = group_waits.group.absent if group_waits else ()
    if absent and len(match(run).instances) > 1:
        return ()
    return tuple(sorted({*ranks, *absent}))


def _rung(run: Run, ranks: tuple[int, ...], nodes: int | None) -> str:
    if nodes is None:
        return "unknown"
    return run.topology.rung(ranks) or (NETWORK if nodes > 1 else "node")


def _transfer(group_waits: GroupWaits | None, row: Traffic) -> tuple[int | None, int | None]:
    """Median transfer of one call, and its message: the size nearest to the row's median."""
    if group_waits is None or group_waits.verdict is WaitVerdict.INCONCLUSIVE:
        return None, row.message_bytes
    chosen = np.array([kind == row.kind for kind in group_waits.group.kind], np.bool_)
    sizes = group_waits.group.size_bytes[chosen]
    message_bytes = row.message_bytes
    if message_bytes is not None and (sizes != ABSENT).any():
        stated = sizes[sizes != ABSENT]
        message_bytes = int(stated[np.abs(stated - message_bytes).argmin()])
        chosen[chosen] = sizes == message_bytes
    present = group_waits.group.row[chosen] != ABSENT
    rank_transfer_ns = np.where(present, group_waits.duration_ns[chosen] - group_waits.wait_ns[chosen], np.nan)
    # A rank that left early (the root of a broadcast) moved less: the call is over when its slowest rank is.
    whole = np.nanmax(rank_transfer_ns, axis=1) if rank_transfer_ns.size else rank_transfer_ns
    return (int(np.median(whole)) if whole.size else None), message_bytes


def _call(kind: str, message_bytes: int | None, size: int, *, is_custom: bool) -> Call | None:
    """The call as if inside one node; None for what has no expected time or no recorded size."""
    operation = "send_recv" if kind in POINT_TO_POINT[:3] else kind
    if not message_bytes or (operation not in PASSES and operation != "send_recv"):
        return None
    return Call(operation, message_bytes, size, 1, is_custom)


def _expected(run: Run, call: Call, nodes: int | None) -> tuple[Expected | None, Expected | None]:
    """On the group's nodes, and inside one node. A kernel of one scale-up domain runs as inside a node."""
    device = _device(run)
    near = expected(call, device, run.hardware)
    if nodes == 1 or call.is_custom:
        return near, None
    return (expected(replace(call, nodes=nodes), device, run.hardware) if nodes else None), near


def _device(run: Run) -> str:
    """The device of all ranks; "" where they differ."""
    names = {trace.origin.device_name for trace in run.traces}
    return names.pop() if len(names) == 1 else ""


def _busbw(kind: str, size: int, message_bytes: int | None, time_ns: float | None) -> float | None:
    if not message_bytes or not time_ns or size <= 1:
        return None
    if kind in POINT_TO_POINT:
        return message_bytes / time_ns * 1e9
    passes = PASSES.get(kind)
    return None if passes is None else passes * (size - 1) / size * message_bytes / time_ns * 1e9
