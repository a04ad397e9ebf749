import json
from dataclasses import replace

import numpy as np
import pytest
from step_traces import Recorder

from analyzer.errors import TraceFormatError
from analyzer.ingest.layout.layout import guess
from analyzer.ingest.layout.rank_order import sglang_groups, vllm_groups
from analyzer.ingest.server_args import read_server_args, server_layout, server_role
from analyzer.model.events import Labels
from analyzer.model.layout import Layout, Source
from analyzer.model.run import Run
from analyzer.model.trace import CollectiveRecords, ProcessGroup

DECODE = "execute_context_0(0)_generation_8(8)"


def trace(rank=0, world=1, kernels=(), annotation=DECODE, **origin):
    recorder = Recorder(recorded_rank=rank, world_size=world, **origin)
    recorder.annotate(annotation, lambda: recorder.launch(*kernels))
    return recorder.trace(rank)


def created(world, rank, *axes):
    """Process groups as an engine creates them: the default one, then a device and a host group of every sub-group."""
    groups, number = [ProcessGroup("0", "default_pg", world, tuple(range(world)))], 1
    for members in ([tuple(range(world))], *axes):
        for group in members:
            if rank in group:
                groups += [ProcessGroup(str(number + twin), "undefined", len(group), group) for twin in (0, 1)]
            number += 2
    return {"groups": tuple(groups), "group_count": number}


def each(world):
    return [(rank,) for rank in range(world)]


WHOLE = [tuple(range(8))]
TP8_EXPERTS = (WHOLE, each(8), each(8), each(8), each(8), WHOLE)


def test_the_order_of_creation_tells_the_axes_of_eight_tensor_parallel_ranks():
    made = created(8, 0, *TP8_EXPERTS)
    assert made["group_count"] == 71
    layout, notes = guess((trace(0, 8, **made),), None, None)
    assert layout.sizes == {"tp": 8, "pp": 1, "dp": 1, "cp": 1, "dcp": 1}
    assert layout.groups == {"tp": ((0, 1, 2, 3, 4, 5, 6, 7),)}
    assert layout.source is Source.METADATA
    assert notes == ()


def test_the_order_of_creation_tells_one_rank_alone():
    made = created(1, 0, *[each(1)] * 6)
    assert made["group_count"] == 15
    layout, _ = guess((trace(0, 1, **made),), None, None)
    assert layout.sizes == {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "dcp": 1}


def test_sglang_creates_fewer_groups():
    made = created(1, 0, each(1), each(1))
    assert made["group_count"] == 7
    layout, _ = guess((trace(0, 1, annotation="step[DECODE bs=8]", **made),), None, None)
    assert layout.evidence["tp"] == "tp group of 1, by the order in which sglang creates its 7 process groups"


def test_an_expert_group_of_vllm_does_not_say_that_experts_are_split():
    layout, _ = guess((trace(0, 8, **created(8, 0, *TP8_EXPERTS)),), None, None)
    assert "ep" not in layout.sizes


def test_dispatches_to_experts_say_that_the_expert_group_is_used():
    kernels = ("internode_ll::dispatch", "internode_ll::combine")
    layout, _ = guess((trace(0, 8, kernels, **created(8, 0, *TP8_EXPERTS)),), None, None)
    assert layout.sizes["ep"] == 8
    assert layout.source is Source.INFERRED


def test_a_title_that_numbers_experts_says_so_too():
    made = created(8, 3, *TP8_EXPERTS)
    layout, _ = guess((trace(3, 8, processes=("VLLM::Worker_TP3_EP3",), **made),), None, None)
    assert layout.sizes["ep"] == 8


def test_two_stages_of_four_tensor_parallel_ranks_are_told():
    tensor, stage = [(0, 1, 2, 3), (4, 5, 6, 7)], [(0, 4), (1, 5), (2, 6), (3, 7)]
    axes = (tensor, each(8), each(8), stage, each(8))
    layout, _ = guess(tuple(trace(rank, 8, **created(8, rank, *axes)) for rank in (0, 5)), None, None)
    assert (layout.sizes["tp"], layout.sizes["pp"]) == (4, 2)
    # Ranks 0 and 5 alone are here: the groups of the others follow from the engine's order.
    assert layout.groups["pp"] == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_decode_context_ranks_are_inside_the_tensor_parallel_group():
    quarters = [(0, 1), (2, 3), (4, 5), (6, 7)]
    layout, _ = guess((trace(0, 8, **created(8, 0, WHOLE, quarters, each(8), each(8), each(8))),), None, None)
    assert (layout.sizes["tp"], layout.sizes["dcp"]) == (8, 2)


def test_groups_of_another_engine_are_not_decoded_by_order():
    layout, _ = guess((trace(0, 8, annotation="iteration 1", **created(8, 0, *TP8_EXPERTS)),), None, None)
    assert layout.sizes == {}


def test_described_groups_name_their_axis():
    groups = (
        ProcessGroup("0", "default_pg", 4, (0, 1, 2, 3)),
        ProcessGroup("7", "tp:device", 2, (0, 1)),
        ProcessGroup("9", "pp:device", 2, (0, 2)),
    )
    layout, _ = guess((trace(0, 4, groups=groups, annotation="step[DECODE bs=1]"),), None, None)
    assert (layout.sizes["tp"], layout.sizes["pp"]) == (2, 2)
    assert layout.evidence["pp"] == "process group 'pp:device' has 2 ranks"


def test_a_device_mesh_names_its_axes():
    groups = (ProcessGroup("1", "mesh_tp", 2, (0, 1)), ProcessGroup("2", "mesh_dp", 2, (0, 2)))
    layout, _ = guess((trace(0, 4, groups=groups, annotation="x"),), None, None)
    assert layout.sizes == {"tp": 2, "dp": 2}


def test_equal_ranks_of_equal_worlds_are_replicas():
    one, other = trace(0, 1, **created(1, 0, *[each(1)] * 5)), trace(0, 1, **created(1, 0, *[each(1)] * 5))
    layout, notes = guess((one, other), None, None)
    assert (layout.world_size, layout.sizes["dp"], layout.groups) == (2, 2, {"dp": ((0, 1),)})
    assert notes == ()


def test_a_prefill_and_a_decode_instance_are_no_replicas():
    layout, _ = guess((trace(0, 1, stage="prefill"), trace(0, 1, stage="decode")), None, None)
    assert layout.sizes["dp"] == 1


def test_file_names_of_all_ranks_give_exact_sizes():
    traces = tuple(
        trace(rank, 4, placement={"dp": 0, "pp": rank // 2, "tp": rank % 2, "dcp": 0, "ep": rank % 2})
        for rank in range(4)
    )
    layout, _ = guess(traces, None, None)
    assert layout.sizes == {"tp": 2, "pp": 2, "dp": 1, "dcp": 1}
    assert layout.groups["pp"] == ((0, 2), (1, 3))


def test_file_names_of_some_ranks_give_no_size():
    layout, _ = guess((trace(1, 4, placement={"dp": 0, "pp": 0, "tp": 1, "dcp": 0, "ep": 1}),), None, None)
    assert layout.sizes == {}


def test_custom_all_reduces_are_built_for_the_tensor_parallel_group():
    kernels = ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)",)
    layout, _ = guess((trace(0, 4, kernels),), None, None)
    assert (layout.sizes, layout.source) == ({"tp": 4}, Source.INFERRED)


@pytest.mark.parametrize(
    ("name", "tp"),
    [
        ("_ZN4vllm26cross_device_reduce_2stageI13__nv_bfloat16Li8EEEvPNS_8RankDataE", 8),
        ("void aiter::cross_device_reduce_1stage_naive<__hip_bfloat16, 8>(aiter::RankData*)", 8),
        (
            (
                "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport"
                "<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 2, true, true>(int)"
            ),
            2,
        ),
    ],
)
def test_the_number_of_ranks_is_read_from_templates(name, tp):
    layout, _ = guess((trace(0, 8, (name,)),), None, None)
    assert layout.sizes["tp"] == tp


def test_dispatch_kernels_inside_a_node_are_built_for_its_ranks():
    layout, _ = guess((trace(0, 8, ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",)),), None, None)
    assert layout.sizes == {"ep": 8}


def test_two_all_reduces_a_layer_are_tensor_parallel():
    kernels = ("reduce", *("attn", "gemm", "reduce", "gemm", "reduce") * 36)
    layout, _ = guess((trace(0, 8, kernels),), None, None)
    assert layout.sizes == {"tp": 8}
    assert layout.evidence["tp"] == "2.03 all-reduces for each of 36 layer passes, over 8 ranks"


def test_gradients_are_no_tensor_parallel_reductions():
    recorder = Recorder(recorded_rank=0, world_size=8)
    recorder.annotate("Optimizer.step#Adam.step", lambda: recorder.launch(*("attn", "reduce", "reduce") * 36))
    layout, _ = guess((recorder.trace(),), None, None)
    assert layout.sizes == {}


def test_all_to_alls_beside_expert_routing_are_expert_parallel():
    layout, _ = guess((trace(0, 4, ("route", "exchange", "exchange"), **created(4, 0)),), None, None)
    assert layout.sizes == {"ep": 4}


def test_all_to_alls_alone_are_nothing_certain():
    layout, _ = guess((trace(0, 4, ("exchange", "exchange"), **created(4, 0)),), None, None)
    assert layout.sizes == {}


def sending(rank, world, peers, layers):
    """A rank that sends to, or receives from, each of some peers once a forward pass."""
    one = trace(rank, world, ("attn", "gemm") * layers, annotation="iteration")
    count, nothing = len(peers), np.full(len(peers), -1)
    text = Labels.of([""] * count)
    records = CollectiveRecords(
        *(np.zeros(count, np.int64), Labels.of(["send"] * count), text, text, text, nothing, text, nothing, nothing),
        *(nothing, np.array(peers, np.int64), text),
    )
    return replace(one, collectives=records)


def test_a_few_sends_a_forward_pass_are_between_pipeline_stages():
    traces = tuple(sending(rank, 4, peers, 36) for rank, peers in enumerate([[1], [0, 2], [1, 3], [2]]))
    layout, _ = guess(traces, None, None)
    assert layout.sizes == {"pp": 4}


def test_sends_in_every_layer_are_no_pipeline():
    traces = tuple(sending(rank, 2, [1 - rank] * 36, 36) for rank in range(2))
    layout, _ = guess(traces, None, None)
    assert layout.sizes == {}


def test_reductions_of_one_attention_replica_do_not_contradict_the_whole_group():
    kernels = ("void sglang::cross_device_reduce_1stage<__nv_bfloat16, 2>(sglang::RankData*)",)
    args = {"tp_size": 8, "pp_size": 1, "dp_size": 4, "enable_dp_attention": True}
    _, notes = guess((trace(0, 8, kernels),), None, args)
    assert notes == ()


def test_what_is_declared_goes_before_what_is_seen_and_the_contradiction_is_said():
    kernels = ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",)
    declared = Layout(8, {"tp": 4, "dp": 2}, {}, Source.DECLARED, {"tp": "run.json declares tp 4"})
    layout, notes = guess((trace(0, 8, kernels),), declared, None)
    assert layout.sizes == {"tp": 4, "dp": 2}
    assert [note.text for note in notes] == [
        (
            "layout contradiction: tp is 4 (run.json declares tp 4), "
            "but 8 by another witness (custom all-reduce kernels are built for 8 ranks)"
        )
    ]


def test_a_coordinate_beyond_the_declared_size_contradicts_it():
    declared = Layout(4, {"tp": 2}, {}, Source.DECLARED, {})
    _, notes = guess((trace(3, 4, placement={"tp": 3}),), declared, None)
    assert [note.text for note in notes] == [
        (
            "layout contradiction: tp is 2 (run.json declares tp 2), "
            "but at least 4 by another witness (file names state tp coordinates up to 3)"
        )
    ]


def test_sizes_that_do_not_make_up_the_world_contradict_it():
    declared = Layout(None, {"tp": 4, "pp": 2}, {}, Source.DECLARED, {})
    _, notes = guess((trace(0, 4),), declared, None)
    assert "layout contradiction: tp 4 times pp 2 does not divide the 4 ranks of the job" in [
        note.text for note in notes
    ]


def test_nothing_known_is_unknown():
    layout, notes = guess((Run("x", (Recorder().trace(),)).traces), None, None)
    assert (layout.world_size, layout.sizes, layout.source, notes) == (None, {}, Source.UNKNOWN, ())


def test_server_args_state_the_layout():
    args = {"tp_size": 8, "pp_size": 1, "dp_size": 4, "ep_size": 8, "enable_dp_attention": True, "attn_cp_size": 1}
    layout = server_layout(args)
    assert layout.world_size == 8
    assert layout.sizes == {"tp": 8, "pp": 1, "dp": 4, "ep": 8, "cp": 1}
    assert layout.groups["dp"] == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert layout.evidence["dp"] == "server_args.json has dp_size 4, inside the tp group (enable_dp_attention)"


def test_replicas_of_sglang_are_worlds_of_their_own():
    layout = server_layout({"tp_size": 2, "pp_size": 1, "dp_size": 2, "enable_dp_attention": False})
    assert (layout.world_size, layout.groups) == (4, {"tp": ((0, 1), (2, 3)), "dp": ((0, 2), (1, 3))})


def test_server_args_of_another_server_say_nothing():
    assert server_layout({"model_path": "x"}) == Layout()


def test_server_args_go_before_metadata():
    layout, notes = guess((trace(0, 8, **created(8, 0, *TP8_EXPERTS)),), None, {"tp_size": 4, "pp_size": 2})
    assert layout.sizes["tp"] == 4
    assert notes[0].text == (
        "layout contradiction: tp is 4 (server_args.json has tp_size 4), "
        "but 8 by another witness (tp group of 8, by the order in which vllm creates its 71 process groups)"
    )


@pytest.mark.parametrize(("mode", "role"), [("prefill", "prefill"), ("decode", "decode"), ("null", "colocated")])
def test_server_args_state_the_role(mode, role):
    assert server_role({"disaggregation_mode": mode}) == role


def test_server_args_are_read(tmp_path):
    path = tmp_path / "server_args.json"
    path.write_text(json.dumps({"tp_size": 2}))
    assert read_server_args(path) == {"tp_size": 2}


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_damaged_dump_is_one_clear_error(tmp_path, text):
    path = tmp_path / "server_args.json"
    path.write_text(text)
    with pytest.raises(TraceFormatError, match=r"server_args\.json"):
        read_server_args(path)


def test_vllm_numbers_stages_before_tensor_parallel_ranks():
    groups = vllm_groups(8, {"tp": 2, "pp": 2, "dp": 2, "ep": 4})
    assert groups["tp"] == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert groups["pp"] == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert groups["dp"] == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert groups["ep"] == ((0, 1, 4, 5), (2, 3, 6, 7))


def test_sglang_splits_experts_with_a_stride():
    groups = sglang_groups(8, {"tp": 8, "ep": 4}, attention_dp=False)
    assert groups["ep"] == ((0, 2, 4, 6), (1, 3, 5, 7))


def test_sizes_that_do_not_fit_give_no_groups():
    assert vllm_groups(6, {"tp": 4}) == {}
    assert sglang_groups(6, {"tp": 4}, attention_dp=False) == {}
