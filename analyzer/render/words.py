"""Words that every form of the report uses alike."""

from __future__ import annotations

from analyzer.schema.breakdown import RankBreakdown, StepKind
from analyzer.schema.ladder import LadderRow
from analyzer.schema.report import CollectiveRow, FindingRow, RunFacts
from analyzer.schema.waiting import GroupWaiting, LateRankRow, LateReason
from analyzer.units import count, duration, ranks, rate, share, size

TERMS = (("compute", "compute"), ("communication", "comm."), ("movement", "move"), ("sync", "idle"))
"""Term → the word for a narrow column."""
CAUSES = {
    "peer_wait_ns": "waiting for peers",
    "host_launch_ns": "not yet launched",
    "host_sync_ns": "host blocked in a sync call",
    "stream_wait_ns": "waiting on the device",
    "queue_ns": "between steps",
    "unrecorded_ns": "nothing recorded: another process, or lost records",
    "unknown_ns": "unknown",
}
"""Cause of idle time → what the device was doing."""
DOING = {
    "compute": "computes",
    "movement": "copies",
    "launch": "waits for its host's launches",
    "blocked": "waits for a blocked host",
    "stream": "waits on the device",
    "unrecorded": "runs nothing that is recorded (another process, or lost records)",
}
"""What a late rank does longer than the others → in a sentence."""
CERTAIN = 0.0001
"""Chances below it are called so: more digits would only count calls."""
LIKELY = 0.05
"""Chance of being last so often from which a rank is not named in words; tables and JSON have it."""
MATTERS = 0.1
"""Of a rank's own lateness: what it does longer by less is not told in words."""
SHARED_OUT = frozenset(("moe_gemm",))
"""Work whose amount the router decides: as many kernels may hold more tokens."""
LONGEST_KERNEL = 60
"""Letters of a kernel's name inside a sentence."""
VERDICTS = {"ok": "ok", "attention": "look", "problem": "problem", "unknown": "unknown"}
UNKNOWN = "unknown"
SPEEDS = {"normal": "as expected", "low": "low", "slow": "slow", "implausible": "too fast: size or rung wrong"}
SPEEDS |= {UNKNOWN: UNKNOWN}
"""Band of a collective's efficiency → the words for it."""
PHASES = {"mixed": "prefill and decode"}
REPLAYS = {"graph": "graph replay", "eager": "eager", "mixed": "partly graph replay"}
"""Phase and way of launching → the words for them; what is not listed is a word itself, or silent."""
NONE = "–"
LONGEST_LIST = 60
"""Letters of a list of ranks; scattered ranks of a large job fill pages."""


def facts(run: RunFacts) -> str:
    """Ranks, devices, engine, sort of run and layout in one line."""
    of = f" of {run.world_size}" if run.world_size not in (None, len(run.ranks)) else ""
    known = {axis: degree for axis, degree in run.layout.items() if axis != "source"}
    used = " ".join(f"{axis}={degree}" for axis, degree in known.items() if degree != 1)
    unsplit = "not split" if len(run.ranks) == 1 else "no axis above 1"
    layout = f"{used} ({run.layout['source']})" if used else unsplit if known else "layout unknown"
    role = f", {run.role}" if run.role else ""
    engine = "engine unknown" if run.engine == UNKNOWN else run.engine
    what = "".join(f", {word}" for word in sort(run) if word != run.role)
    return f"{count(len(run.ranks), 'rank')}{of}, {', '.join(run.devices)}, {engine}{role}{what}, {layout}"


def sort(run: RunFacts) -> list[str]:
    """What sort of run it is in a few words: work, phase, replay; [] where nothing tells."""
    if run.workload is None:
        return []
    phases = {rank.phase for rank in run.workload.ranks} - {UNKNOWN, "training", "capture"}
    phase = phases.pop() if len(phases) == 1 else " and ".join(sorted(phases - {"mixed"}, reverse=True))
    words = (run.workload.work.value, PHASES.get(phase, phase), REPLAYS.get(run.workload.replay.value, ""))
    return [word for word in words if word not in ("", UNKNOWN)]


def gain(row: FindingRow) -> str:
    """What a finding would give back at most."""
    return f"up to {share(row.cost_share)} of the window" if row.cost_share else "no cost in time"


def places(numbers: list[int]) -> str:
    """'rank 4', 'ranks 0-7', '128 ranks, 0, 2, 4 …'."""
    listed = ranks(numbers)
    if len(listed) > LONGEST_LIST:
        return f"{count(len(numbers), 'rank')}, {listed[:LONGEST_LIST].rpartition(',')[0]} …"
    return f"rank{'' if len(numbers) == 1 else 's'} {listed}"


def part(ns: int, whole_ns: int) -> str:
    """A time as a share of a longer one."""
    return share(ns / whole_ns if whole_ns else 0.0)


def idle(rows: list[RankBreakdown]) -> list[str]:
    """Causes of idle time as shares of all windows, longest first."""
    window_ns = sum(row.window_ns for row in rows)
    causes = {cause: sum(getattr(row.sync_causes, key) for row in rows) for key, cause in CAUSES.items()}
    return [f"{cause} {part(ns, window_ns)}" for cause, ns in sorted(causes.items(), key=lambda item: -item[1]) if ns]


def blended(rows: list[RankBreakdown]) -> list[str]:
    """Time of kernels that do the work of two terms, as shares of all windows; each counts as one of them only."""
    window_ns = sum(row.window_ns for row in rows)
    fused_ns, overlapped_ns = (sum(row.fused_ns or 0 for row in rows), sum(row.overlapped_ns or 0 for row in rows))
    lines = []
    if fused_ns:
        lines.append(f"fused: {part(fused_ns, window_ns)} is communication in kernels that compute as well")
    if overlapped_ns:
        lines.append(f"overlapped: {part(overlapped_ns, window_ns)} is compute in kernels with an exchange inside")
    return lines


def kind(row: CollectiveRow) -> str:
    """What the calls do, marked where their kernels compute as well."""
    return f"{row.kind} (fused)" if row.fused else row.kind


def waiting(row: CollectiveRow) -> str:
    """Share of a collective's time that is waiting for its last participant."""
    if row.wait_ns is None:
        return UNKNOWN
    return part(row.wait_ns, row.wait_ns + (row.transfer_ns or 0))


def moved(n_bytes: int | None) -> str:
    """Bytes, or unknown."""
    return UNKNOWN if n_bytes is None else size(n_bytes)


def members(row: CollectiveRow) -> str:
    """Ranks of the group."""
    return places(row.group).removeprefix("ranks ").removeprefix("rank ") if row.group else UNKNOWN


def bandwidth(gigabytes_per_s: float | None) -> str:
    """Bus bandwidth, or unknown."""
    return UNKNOWN if gigabytes_per_s is None else rate(gigabytes_per_s * 1e9)


def period(row: StepKind) -> str:
    """From one step's start to the next."""
    return NONE if row.period_ns is None else duration(row.period_ns)


def left_out(row: StepKind) -> str:
    """Steps that are in no figure, and why; empty where all are."""
    return ", ".join(f"{n:,} {reason}" for reason, n in row.left_out.items())


def agreement(row: GroupWaiting) -> str:
    """Whether waiting by arrival and by shortest duration agree; a clock too coarse for the first cannot say."""
    if row.agrees is None or (row.used != "arrival" and row.wait_by_arrival_ns != row.wait_by_shortest_ns):
        return NONE
    return "yes" if row.agrees else "no"


def late(row: LateRankRow) -> str:
    """How often a rank is last against chance, by how much, and what that costs."""
    chance = f"p < {CERTAIN:.4f}" if row.p_value < CERTAIN else f"p = {row.p_value:.2g}"
    whose = "persistent" if row.is_own else "persistent, but inherited"
    return (
        f"{places(row.group)}: rank {row.rank} is last in {share(row.last_share)} of {count(row.calls, 'call')} "
        f"(chance {share(row.chance)}, {chance}; {whose if row.is_persistent else 'not persistent'}), "
        f"by {duration(row.median_late_ns)} (p90 {duration(row.p90_late_ns)}); "
        f"the others wait {duration(row.caused_ns)} for it"
    )


def told(rows: list[LateRankRow], most: int, most_reasons: int) -> list[str]:
    """A sentence for each late rank that chance does not explain, or that there is none."""
    named = [row for row in rows if row.p_value < LIKELY]
    if rows and not named:
        return ["no rank is last more often than chance explains"]
    return [f"{late(row)}: {reasons(row, most_reasons)}" for row in named[:most]]


def reasons(row: LateRankRow, most: int) -> str:
    """What a late rank does longer, as far as it makes up for its lateness, and unequal work where steps state it."""
    longer = [_reason(each) for each in row.reasons if each.share is None or each.share >= MATTERS][:most]
    if row.more_tokens:
        longer.append(f"its steps hold {row.more_tokens:+.1f} tokens against the others")
    return "; ".join(longer) or "nothing that it does longer is recorded"


def _reason(row: LateReason) -> str:
    """By how much it is longer, and how that goes with lateness."""
    what = DOING.get(row.doing, row.doing) + (
        f" ({' '.join(filter(None, (row.work, _short(row.name))))})" if row.name else ""
    )
    goes = "" if row.correlation is None else f", correlation {row.correlation:.2f}"
    more = ""
    if row.name and row.more_calls:
        more = f", {row.more_calls:+.1f} kernels"
    elif row.work in SHARED_OUT:
        more = ", in as many kernels: more tokens for its experts, or slower"
    return f"{what} {duration(row.excess_ns)} longer a call{goes}{more}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_KERNEL else f"{name[:LONGEST_KERNEL]}…"


def speed(row: CollectiveRow) -> str:
    """How a call compares with what is to be expected, or unknown."""
    return UNKNOWN if row.link is None else SPEEDS[row.link.band]


def nodes(row: CollectiveRow) -> str:
    """Nodes of the group, with rails where it leaves one, or unknown."""
    if row.link is None or row.link.nodes is None:
        return UNKNOWN
    rails = {True: ", rail-aligned", False: ", across rails", None: ""}[row.link.rail_aligned]
    return f"{row.link.nodes}{rails}"


def in_a_step(row: LadderRow) -> tuple[str, str]:
    """Bytes and time of a rung in one step, or a dash where no step holds any."""
    if row.step_ns is None:
        return NONE, NONE
    return moved(row.step_bytes), duration(row.step_ns)
