"""The parallel layout of a run: what is declared, what metadata tells, what kernels show, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from analyzer.ingest.layout.claims import Claim, engine_of
from analyzer.ingest.layout.marks import observed, placed, titled
from analyzer.ingest.layout.process_groups import created, described
from analyzer.ingest.layout.rank_order import Groups, sglang_groups, vllm_groups
from analyzer.ingest.server_args import ServerArgs, server_layout
from analyzer.model.layout import AXES, CONTRADICTION, Layout, Source
from analyzer.model.trace import Note, Trace

_SURENESS = list(Source)


def guess(
    traces: tuple[Trace, ...], declared: Layout | None, server_args: ServerArgs | None
) -> tuple[Layout, tuple[Note, ...]]:
    """Sizes and rank groups of each axis, by the surest witness of it, and a note for each that contradicts it.

    An axis of which no witness knows the size is absent.

    Args:
        traces: of the run.
        declared: from run.json, None where there is none.
        server_args: SGLang's dump, None where there is none.
    """
    served = Layout() if server_args is None else server_layout(server_args)
    world, replicas = _world(traces, declared, served)
    claims = list(_claims(traces, declared, served, world, replicas))
    chosen: dict[str, Claim] = {}
    for claim in claims:
        if not claim.at_least:
            chosen.setdefault(claim.axis, claim)
    notes = [*_contradictions(chosen, claims), *_misfits(chosen, traces, world)]
    sizes = {axis: chosen[axis].size for axis in AXES if axis in chosen}
    groups = _groups(traces, chosen, world, server_args)
    source = max((claim.source for claim in chosen.values()), key=_SURENESS.index, default=Source.UNKNOWN)
    evidence = {axis: chosen[axis].sentence for axis in sizes}
    return Layout(world, sizes, groups, source, evidence), tuple(notes)


def _claims(
    traces: tuple[Trace, ...], declared: Layout | None, served: Layout, world: int | None, replicas: int
) -> Iterator[Claim]:
    """All that is said, surest first."""
    if declared is not None:
        yield from _declared(declared)
    yield from _declared(served)
    if replicas > 1:
        sentence = f"{replicas} traces each say that they are rank {traces[0].origin.recorded_rank} of their world"
        yield Claim("dp", replicas, Source.METADATA, sentence)
    for claim in _recorded(traces):
        # A replica's groups are those of its own world.
        if replicas == 1:
            yield claim
        elif claim.axis != "dp":
            yield replace(claim, groups=())
    yield from placed(traces, world)
    yield from titled(traces, world)
    yield from observed(traces, world)


def _declared(layout: Layout) -> Iterator[Claim]:
    for axis, size in layout.sizes.items():
        sentence = layout.evidence.get(axis, f"run.json declares {axis} {size}")
        yield Claim(axis, size, Source.DECLARED, sentence, layout.groups.get(axis, ()))


def _recorded(traces: tuple[Trace, ...]) -> Iterator[Claim]:
    """What process groups tell."""
    yield from described(traces)
    yield from created(traces)
    if traces and all(trace.origin.world_size == 1 for trace in traces):
        for axis in AXES:
            yield Claim(axis, 1, Source.METADATA, "the default process group has one rank")


def _world(traces: tuple[Trace, ...], declared: Layout | None, served: Layout) -> tuple[int | None, int]:
    """Ranks of the job, None where unknown, and the replicas that call themselves by equal ranks.

    A replica of a dense model is a world of its own. Traces of different stages are different instances, not replicas.
    """
    recorded = [(trace.origin.recorded_rank, trace.origin.world_size) for trace in traces]
    sizes = {size for _, size in recorded if size is not None}
    stages = {trace.origin.stage for trace in traces}
    often = {recorded.count(one) for one in recorded if None not in one}
    replicas = often.pop() if len(often) == 1 and len(sizes) == 1 and len(stages) == 1 else 1
    for layout in (declared, served):
        if layout is not None and layout.world_size is not None:
            return layout.world_size, replicas
    return (sizes.pop() * replicas if len(sizes) == 1 else None), replicas


def _contradictions(chosen: dict[str, Claim], claims: list[Claim]) -> Iterator[Note]:
    said: set[tuple[str, int]] = set()
    for claim in claims:
        winner = chosen.get(claim.axis)
        if winner is None or (claim.axis, claim.size) in said or _is_attention_part(claim, winner, chosen):
            continue
        if claim.size > winner.size if claim.at_least else claim.size != winner.size:
            said.add((claim.axis, claim.size))
            least = "at least " if claim.at_least else ""
            yield Note(
                f"{CONTRADICTION} {claim.axis} is {winner.size} ({winner.sentence}), "
                f"but {least}{claim.size} by another witness ({claim.sentence})"
            )


def _is_attention_part(claim: Claim, winner: Claim, chosen: dict[str, Claim]) -> bool:
    """Whether kernels show the part of a tp group that attention dp leaves to one replica."""
    inside = chosen["dp"].size if "dp" in chosen else 1
    return claim.axis == "tp" and claim.source is Source.INFERRED and claim.size * inside == winner.size


def _misfits(chosen: dict[str, Claim], traces: tuple[Trace, ...], world: int | None) -> Iterator[Note]:
    """Sizes that cannot make up the world, or a world smaller than its ranks."""
    if world is None:
        return
    tp, pp = (chosen[axis].size if axis in chosen else 1 for axis in ("tp", "pp"))
    if world % (tp * pp):
        yield Note(f"{CONTRADICTION} tp {tp} times pp {pp} does not divide the {world} ranks of the job")
    highest = max((trace.rank for trace in traces), default=0)
    if highest >= world:
        yield Note(f"{CONTRADICTION} a trace is of rank {highest}, but the job has {world} ranks")


def _groups(
    traces: tuple[Trace, ...], chosen: dict[str, Claim], world: int | None, server_args: ServerArgs | None
) -> Groups:
    """Rank groups of each axis: as seen, and where not all are seen, as the engine numbers its ranks."""
    if world is None:
        return {axis: claim.groups for axis, claim in chosen.items() if claim.groups}
    sizes = {axis: claim.size for axis, claim in chosen.items()}
    computed: Groups = {}
    engine = engine_of(traces)
    if engine == "vllm":
        computed = vllm_groups(world, sizes)
    elif engine == "sglang" or server_args is not None:
        inside = server_args is not None and server_args.get("enable_dp_attention") is True
        computed = sglang_groups(world, sizes, attention_dp=inside)
    by_axis: Groups = {}
    for axis, claim in chosen.items():
        whole = (tuple(range(world)),) if claim.size == world else ()
        full = claim.groups if len(claim.groups) * claim.size >= world else ()
        groups = full or computed.get(axis, ()) or whole or claim.groups
        if groups and claim.size > 1:
            by_axis[axis] = groups
    return by_axis
