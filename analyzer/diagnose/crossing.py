"""The answer to question 4: which boundary the groups cross, and whether the link is the bottleneck at all."""

from __future__ import annotations

from analyzer.errors import MissingEvidenceError
from analyzer.measures.bottleneck import says, speed_says
from analyzer.measures.links import links, unplaced
from analyzer.model.run import Run
from analyzer.model.topology import NETWORK, SOCKET
from analyzer.units import ranks

_CROSSES = {NETWORK: "talk over the network", SOCKET: "talk across CPU sockets"}
"""Rungs that are boundaries → the words for them."""


def crossing(run: Run) -> str:
    """The answer in one sentence.

    Raises:
        MissingEvidenceError: where ranks run is not recorded; says what speed is consistent with.
    """
    uses = {use.ranks or run.ranks: use for use in links(run)}
    if not uses:
        return "no communication, so none crosses a boundary"
    limited = says(run)
    if any(use.nodes is None for use in uses.values()):
        weak = next(filter(None, map(speed_says, links(run))), "")
        lack = unplaced(run)
        known = [lack.missing, f"speed is weak evidence: {weak}" if weak else "", limited]
        raise MissingEvidenceError("; ".join(filter(None, known)), lack.cure)
    tail = f"; {limited}" if limited else ""
    crossed = [
        f"ranks {ranks(group)} {_CROSSES[use.rung]}" + (f" of {use.nodes} nodes" if use.rung == NETWORK else "")
        for group, use in uses.items()
        if use.rung in _CROSSES
    ]
    if crossed:
        return f"yes: {'; '.join(crossed)}{tail}"
    where = ", ".join(sorted(set(run.topology.node_of.values())))
    stays = "scale-up domain" if any((use.nodes or 0) > 1 for use in uses.values()) else "node"
    return f"no: every group stays inside one {stays} ({where}){tail}"
