"""Pure functions of a Run, a module for each thing that is measured.

Which function makes which number, by the words on the screen and the field of the report:

    window                             breakdown.per_rank.window_ns                   measures.breakdown:breakdown
    compute                            breakdown.per_rank.compute_ns                  measures.breakdown:breakdown
    comm.                              breakdown.per_rank.communication_ns            measures.breakdown:breakdown
    move                               breakdown.per_rank.movement_ns                 measures.breakdown:breakdown
    idle                               breakdown.per_rank.sync_ns                     measures.breakdown:breakdown
    idle: waiting for peers            breakdown.per_rank.sync_causes.peer_wait_ns    measures.breakdown:_split
    idle: not yet launched             breakdown.per_rank.sync_causes.host_launch_ns  measures.causes:causes
    idle: host blocked in a sync call  breakdown.per_rank.sync_causes.host_sync_ns    measures.causes:causes
    idle: waiting on the device        breakdown.per_rank.sync_causes.stream_wait_ns  measures.causes:causes
    idle: between steps                breakdown.per_rank.sync_causes.queue_ns        measures.causes:causes
    idle: nothing recorded             breakdown.per_rank.sync_causes.unrecorded_ns   measures.causes:causes
    idle: unknown                      breakdown.per_rank.sync_causes.unknown_ns      measures.causes:causes
    hidden under compute: comm.        breakdown.per_rank.hidden.communication_ns     measures.breakdown:breakdown
    fused                              breakdown.per_rank.fused_ns                    measures.breakdown:breakdown
    overlapped                         breakdown.per_rank.overlapped_ns               measures.breakdown:breakdown
    unclassified kernels               breakdown.per_rank.unclassified_ns             measures.breakdown:breakdown
    collective: calls                  collectives.count                              measures.traffic:traffic
    collective: message                collectives.bytes                              measures.traffic:traffic
    collective: median                 collectives.median_ns                          measures.traffic:traffic
    collective: waiting                collectives.wait_ns                            measures.skew:group_waiting
    collective: transfer               collectives.transfer_ns                        measures.skew:group_waiting
    collective: bus bandwidth          collectives.busbw_GBps                         measures.links:links
    collective: expected               collectives.expected_busbw_GBps                measures.expected:expected
    collective: rung                   collectives.level                              measures.links:links
    group: wait by arrival             waiting.groups.wait_by_arrival_ns              measures.waits:waits
    rank … is last in … of … calls     waiting.late.last_share                        measures.skew:late_ranks
    the others wait … for it           waiting.late.caused_ns                         measures.skew:late_ranks
    what it does longer                waiting.late.reasons.excess_ns                 measures.arrival:reasons
    wait map                           waiting.pairs.wait_ns                          measures.skew:wait_matrix
    ladder: moved                      ladder.bytes                                   measures.ladder:ladder
    ladder: time                       ladder.time_ns                                 measures.ladder:ladder
    pipeline: bubble                   scaling.stages.bubble_share                    measures.stages:stages
    experts: imbalance                 scaling.experts.imbalance                      measures.experts.balance:imbalance
    reused tokens                      run.memory                                     measures.reuse:counted_reuse
    launches and activities a step     extra                                          measures.counts:counts
    work, phase, replay                run.workload                                   measures.workload:workload
"""
