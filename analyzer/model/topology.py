"""Where ranks are: nodes, and what is known of the links between them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Topology:
    """Placement of ranks.

    Attributes:
        node_of: node name of each rank; a rank that is absent is unplaced.
        links: link type between two device indices of one node ("NV18", "PIX", "SYS"), as `collect topology` recorded.
        source: `declared`, `metadata` or `unknown`.
    """

    node_of: dict[int, str] = field(default_factory=dict)
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    source: str = "unknown"

    def nodes(self, ranks: tuple[int, ...]) -> tuple[str, ...] | None:
        """Distinct nodes of a group in order of first rank; None where a rank is unplaced."""
        if any(rank not in self.node_of for rank in ranks):
            return None
        return tuple(dict.fromkeys(self.node_of[rank] for rank in ranks))
