"""Measured links as rows of the report."""

from __future__ import annotations

from analyzer.measures.links import LinkUse
from analyzer.schema.link import LinkRow


def link_row(link: LinkUse) -> LinkRow:
    """Whole nanoseconds; the expected time with its range and where it is from."""
    due = link.expected
    return LinkRow(
        nodes=link.nodes,
        rail_aligned=link.rail_aligned,
        transfer_ns=link.transfer_ns,
        expected_ns=round(due.time_ns) if due else None,
        expected_low_ns=round(due.low_ns) if due else None,
        expected_high_ns=round(due.high_ns) if due else None,
        expected_from=due.says if due else "",
        in_node_ns=round(link.in_node.time_ns) if link.in_node else None,
        bound=link.bound,
        band=link.band,
    )
