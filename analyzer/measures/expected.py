"""Times that collectives take elsewhere on like machines: a measured table, else a line through one, else constants.

Sources: NCCL, oneCCL, custom all-reduce and expert exchanges measured by NVIDIA's aiconfigurator (Apache-2.0); NCCL
over nodes by microsoft/vidur (MIT); single figures of NCCL's issues. Every row of the tables names its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from analyzer.measures.curves import TimeCurve, doubt, read_curves
from analyzer.measures.ring import LL_BASE_NS, LL_HOP_NS, RingLink, ring_ns
from analyzer.model.hardware import NETWORK, NVLINK, PCIE, Hardware, LinkFigures, MeasuredCurve
from analyzer.schema.finding import Basis
from analyzer.units import size

COLLECTIVES = ("gpu", "fabric", "operation", "implementation", "launch", "ranks", "nodes")
EXCHANGES = ("gpu", "implementation", "phase", "ranks", "nodes", "dtype", "sms")

FEWEST_SIZES = 4
"""Of a curve; single figures of large messages say nothing of others."""
NETWORK_BYTES_PER_S = 50e9
"""One NIC of 400 Gbit/s, in one direction; for groups over nodes that no table holds."""
CONSTANTS_DOUBT = 2.0
"""Factor to the ends of the range where only NCCL's own constants are at hand."""
SHARED_NICS = 4.0
"""Factor to the upper end of the range over nodes: two NICs for eight ranks are common, and nothing says how many."""
SCALED_DOUBT = 1.4
"""Factor to the ends of the range where a curve of another number of ranks is scaled."""

NOTHING_STATED = Hardware()

_PLATFORMS = (
    (r"GB[23]00", "GB300"),
    (r"B[23]00", "B200-SXM"),
    (r"H100 PCIe|H100 NVL", "H100-PCIe-bridge"),
    (r"H[128]00|GH200", "H100-SXM5-80GB"),
    (r"H20\b", "H20"),
    (r"A[18]00.*SXM|A100-SXM", "A100-SXM4-80GB"),
    (r"L40", "L40S"),
    (r"Arc.*B60", "Arc-Pro-B60"),
    (r"GB10", "GB10"),
)
"""Device names as drivers write them → the machine in the tables that has the same links."""

_LINKS = {
    "GB300": ("nvlink", 690e9),
    "B200-SXM": ("nvlink", 690e9),
    "H100-SXM5-80GB": ("nvlink", 360e9),
    "H20": ("nvlink", 360e9),
    "A100-SXM4-80GB": ("nvlink", 205e9),
    "L40S": ("pcie", 20e9),
    "Arc-Pro-B60": ("pcie", 12e9),
}
"""Rung inside a node, and bytes a second that large messages reach there (busbw); from the tables' largest sizes."""


_ANY_LINK = RingLink(LL_BASE_NS, LL_HOP_NS[NETWORK], NETWORK_BYTES_PER_S)
"""For scaling a measured curve to other ranks where nothing is known of the link but that curve."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective of one group.

    Attributes:
        operation: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `send_recv`.
        message_bytes: the reduced tensor, the gathered output, the scattered input, the whole send buffer.
        ranks: of the group.
        nodes: that hold them.
        is_custom: an engine's own all-reduce inside a node, instead of NCCL's.
    """

    operation: str
    message_bytes: float
    ranks: int
    nodes: int = 1
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What a call should take without waiting.

    Attributes:
        time_ns: middle.
        low_ns: lower end of the range.
        high_ns: upper end.
        source: `table`, `line` (a table of another number of ranks, scaled as a ring) or `constants`.
        says: where the figure is from, for a reader.
        basis: always a model.
    """

    time_ns: float
    low_ns: float
    high_ns: float
    source: str
    says: str
    basis: Basis = Basis.MODEL


def platform(device_name: str) -> str | None:
    """The machine of the tables whose links a device has; None where none is known to be alike."""
    return next((machine for pattern, machine in _PLATFORMS if re.search(pattern, device_name)), None)


def expected(call: Call, device_name: str, site: Hardware = NOTHING_STATED) -> Expected | None:
    """What a call should take on a machine; None where nothing is known of its links.

    What the site measured comes first, then links that it states, then the tables that ship.

    Args:
        call: operation, size and group.
        device_name: as the driver calls it (`NVIDIA H100 80GB HBM3`).
        site: its own figures.
    """
    machine = platform(device_name) or ""
    if call.ranks < 2:  # noqa: PLR2004 (one rank has nobody to talk to)
        return None
    site_curves = {series.ranks: curve for series, curve in _own(call, device_name, site)}
    curves = list(site_curves.items()) or ([] if _is_stated(call, machine, site) else _curves(machine, call))
    name = f"{machine or device_name} here" if site_curves else machine
    link = _link(machine, call, site)
    same = [curve for ranks, curve in curves if ranks == call.ranks]
    if same:
        return _of_table(call, name, same[0])
    if curves:
        nearest = min(curves, key=lambda measured: abs(measured[0] - call.ranks))
        return _scaled(call, name, link or _ANY_LINK, *nearest)
    if link is None:
        return None
    return _of_constants(call, link, is_stated=_is_stated(call, machine, site))


def _own(call: Call, device_name: str, site: Hardware) -> Iterator[tuple[MeasuredCurve, TimeCurve]]:
    """What the site measured of an operation on as many nodes; engines' own kernels it did not measure."""
    for series in site.series:
        alike = (series.operation, series.nodes) == (call.operation, call.nodes)
        if alike and not call.is_custom and series.device in {"", device_name}:
            pairs = zip(series.message_bytes, series.time_us, strict=True)
            yield series, TimeCurve.of({float(n_bytes): time_us * 1e3 for n_bytes, time_us in pairs})


def _is_stated(call: Call, machine: str, site: Hardware) -> bool:
    """Whether the site states the link that NCCL would use; a custom kernel's speed does not follow from one."""
    return not call.is_custom and _rung(machine, call.nodes, site) in site.links


def expected_exchange(
    device_name: str, implementation: str, phase: str, tokens_per_rank: int, group: tuple[int, int]
) -> Expected | None:
    """What a dispatch or combine to 8 of 256 experts, 7168 elements a token, should take; None where no table has it.

    Args:
        device_name: as the driver calls it.
        implementation: words of it: `deepep_ll`, `deepep_ht`, `NVLinkTwoSided`.
        phase: `dispatch` or `combine`.
        tokens_per_rank: in one step.
        group: ranks and nodes.
    """
    machine = platform(device_name)
    for key, curve in _exchanges().items():
        gpu, name, of_phase, ranks, nodes, *_ = key
        if (gpu, of_phase, int(ranks), int(nodes)) == (machine, phase, *group) and implementation in name:
            time_ns, factor = curve.at(tokens_per_rank), doubt(curve, tokens_per_rank)
            says = f"measured with {name} on {ranks} ranks of {gpu}"
            return Expected(time_ns, time_ns / factor, time_ns * factor, "table", says)
    return None


@cache
def collective_curves() -> dict[tuple[str, ...], TimeCurve]:
    """Every measured curve of a collective, by the columns of `COLLECTIVES`."""
    return read_curves("collectives.csv", "message_bytes", *COLLECTIVES)


@cache
def _exchanges() -> dict[tuple[str, ...], TimeCurve]:
    return read_curves("expert_exchanges.csv", "tokens_per_rank", *EXCHANGES)


def _curves(machine: str, call: Call) -> list[tuple[int, TimeCurve]]:
    """Ranks and curve of what was measured on a machine by the same means, the first choice of each first."""
    curves = []
    for key in sorted(collective_curves(), key=_choice):
        gpu, _, operation, implementation, launch, ranks, nodes = key
        alike = (gpu, operation, int(nodes)) == (machine, call.operation, call.nodes)
        # Eager launches of custom kernels measure the host, not the wire.
        by_means = launch == "graph" if call.is_custom else "custom" not in implementation
        if alike and by_means and collective_curves()[key].sizes.size >= FEWEST_SIZES:
            curves.append((int(ranks), collective_curves()[key]))
    return curves


def _choice(key: tuple[str, ...]) -> tuple[bool, bool, tuple[str, ...]]:
    """Order of preference: timed by itself before from Python, vLLM's custom kernels before those of others."""
    _, _, _, implementation, launch, *_ = key
    return launch == "eager", "custom" in implementation and not implementation.startswith("vllm"), key


def _of_table(call: Call, machine: str, curve: TimeCurve) -> Expected:
    time_ns, factor = curve.at(call.message_bytes), doubt(curve, call.message_bytes)
    beyond = curve.doublings_outside(call.message_bytes)
    says = f"measured on {call.ranks} ranks of {machine}"
    if beyond:
        ends = f"{size(curve.sizes[0])} to {size(curve.sizes[-1])}"
        says += f", beyond the sizes measured ({ends})"
    return Expected(time_ns, time_ns / factor, time_ns * factor, "table", says)


def _scaled(call: Call, machine: str, link: RingLink, ranks: int, curve: TimeCurve) -> Expected:
    grown = ring_ns(link, call.operation, call.message_bytes, call.ranks) / ring_ns(
        link, call.operation, call.message_bytes, ranks
    )
    time_ns, factor = curve.at(call.message_bytes) * grown, doubt(curve, call.message_bytes) * SCALED_DOUBT
    says = f"measured on {ranks} ranks of {machine}, scaled to {call.ranks} as a ring"
    return Expected(time_ns, time_ns / factor, time_ns * factor, "line", says)


def _of_constants(call: Call, link: RingLink, *, is_stated: bool) -> Expected:
    time_ns = ring_ns(link, call.operation, call.message_bytes, call.ranks)
    is_guessed = call.nodes > 1 and not is_stated
    link_says = (
        ", over the link as stated" if is_stated else ", one 400 Gbit/s NIC a rank assumed" if is_guessed else ""
    )
    says = f"NCCL's constants for a ring of {call.ranks} ranks{link_says}"
    high_ns = time_ns * (SHARED_NICS if is_guessed else CONSTANTS_DOUBT)
    return Expected(time_ns, time_ns / CONSTANTS_DOUBT, high_ns, "constants", says)


def _rung(machine: str, nodes: int, site: Hardware) -> str:
    """The link that a ring's time depends on; "" where it is not known."""
    if nodes > 1:
        return NETWORK
    known = _LINKS[machine][0] if machine in _LINKS else ""
    return known or next((name for name in (NVLINK, PCIE) if name in site.links), "")


def _link(machine: str, call: Call, site: Hardware) -> RingLink | None:
    """The link whose constants a ring on these nodes has; None where nothing is known of it."""
    near = _stated(machine, _rung(machine, 1, site), site)
    if call.nodes == 1:
        return near
    if not machine and NETWORK not in site.links:
        return None
    far = _stated(machine, NETWORK, site) or _ANY_LINK
    return _over_nodes(call, near or far, far, is_stated=NETWORK in site.links)


def _stated(machine: str, rung: str, site: Hardware) -> RingLink | None:
    figures = site.links.get(rung, LinkFigures())
    shipped = NETWORK_BYTES_PER_S if rung == NETWORK else _LINKS.get(machine, ("", None))[1]
    bytes_per_s = figures.gigabytes_per_s * 1e9 if figures.gigabytes_per_s else shipped
    if not rung or bytes_per_s is None:
        return None
    return RingLink(LL_BASE_NS, figures.hop_us * 1e3 if figures.hop_us else LL_HOP_NS[rung], bytes_per_s)


def _over_nodes(call: Call, near: RingLink, far: RingLink, *, is_stated: bool) -> RingLink:
    """A ring over nodes: one hop in `ranks / nodes` leaves a node; all NICs of a node carry a reduction or a gather.

    What a site states of its network is bus bandwidth, the NICs together; what ships is one NIC a rank. Exchanges
    between pairs have only their own.
    """
    hops = call.ranks - 1
    hop_ns = ((call.ranks - call.nodes) * near.hop_ns + (call.nodes - 1) * far.hop_ns) / hops
    is_shared = call.operation in {"all_reduce", "all_gather", "reduce_scatter"} and not is_stated
    nics = call.ranks / call.nodes if is_shared else 1.0
    return RingLink(far.base_ns, hop_ns, min(near.bytes_per_s, nics * far.bytes_per_s))
