"""What sort of run it is: work, engine, device maker, replay, phases, roles, use of groups, cores."""

from __future__ import annotations

from analyzer.measures.sorts.engines import engine
from analyzer.measures.sorts.makers import maker
from analyzer.measures.sorts.phases import rank_facts
from analyzer.measures.sorts.replay import replay
from analyzer.measures.sorts.uses import group_uses
from analyzer.measures.sorts.works import work
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.schema.workload import WorkloadFacts


@once
def workload(run: Run) -> WorkloadFacts:
    """What the traces, their sidecars and run.json tell of the run as a whole."""
    by = engine(run)
    what = work(run, by)
    groups = group_uses(run, what, by)
    cores = list(run.topology.cores_of.values())
    return WorkloadFacts(
        work=what,
        engine=by,
        maker=maker(run),
        replay=replay(run),
        ranks=rank_facts(run, what, groups),
        groups=groups,
        cores=run.workload.cores or (min(cores) if cores else None),
    )
