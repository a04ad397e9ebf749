import numpy as np
from step_traces import Recorder

from analyzer.measures.layers import layer_of, layers
from analyzer.measures.steps import steps
from analyzer.model.events import Labels
from analyzer.model.run import Run

DENSE = ("norm", "qkv", "attn", "norm", "up", "down")
EXPERTS = ("norm", "qkv", "attn", "norm", "route", "dispatch", "experts", "combine")


def test_layers_are_counted_by_what_occurs_once_in_each():
    found = layers(Labels.of(("embed", *DENSE * 36, "norm", "head", "sample")))
    assert (found.count, found.opener, found.variants) == (36, "qkv", (36,))


def test_equal_names_in_a_layer_are_told_apart_by_their_position():
    names = Labels.of(("embed", *("qkv", "attn", "norm", "up", "norm", "down") * 4))
    found = layers(names)
    norm = names.where(lambda name: name == "norm")
    assert found.position[norm].tolist() == [0, 1] * 4
    assert found.layer[norm].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_what_stands_before_and_after_the_layers_is_in_none():
    names = Labels.of(("embed", "scale", *("qkv", "attn", "up", "down") * 8, "head", "sample"))
    found = layers(names)
    assert found.layer[[0, 1, -2, -1]].tolist() == [-1, -1, -1, -1]
    assert found.position[[0, 1, -2, -1]].tolist() == [-1, -1, -1, -1]


def test_layers_of_two_sorts_are_all_layers():
    found = layers(Labels.of(("embed", *DENSE * 3, *EXPERTS * 58, "norm", "head")))
    assert found.count == 61
    # The layer that ends the dense ones holds the first norm of the experts', as the layers around it do.
    assert found.variants == (58, 3)


def test_layers_that_alternate_are_two_variants():
    found = layers(Labels.of(("qkv", "local", "out", "up", "qkv", "global", "out", "up") * 12))
    assert (found.count, found.variants) == (24, (12, 12))


def test_a_sequence_that_repeats_nothing_has_no_layers():
    assert layers(Labels.of([f"kernel {number}" for number in range(100)])) is None


def test_a_burst_of_equal_kernels_is_no_layer():
    assert layers(Labels.of((*[f"kernel {number}" for number in range(200)], *("add", "mul") * 10))) is None


def test_nothing_has_no_layers():
    assert layers(Labels.of(())) is None


def test_no_name_of_forty_replays_hides_behind_its_launch():
    recorder = Recorder()
    layer = ("norm", "gemm_qkv", "attn", "gemm_out", "reduce", "norm", "gemm_up", "gemm_down", "reduce")
    for _ in range(40):
        recorder.graph("norm", "norm", *layer * 116, "norm", "gemm_head", "sample", us=1).catch_up()
    trace = recorder.trace()
    assert (len(trace.activities), np.unique(trace.activities.correlation).size) == (41_960, 40)
    layer, position = layer_of(trace, steps(Run("run", (trace,)))[0])
    rows = np.stack((trace.activities.name.codes, position))[:, layer >= 0]
    _, held = np.unique(rows, axis=1, return_counts=True)
    # Nine kernels a layer, each of them a row of its own.
    assert held.tolist() == [4_640] * 9


def test_every_step_has_its_own_layers():
    recorder = Recorder()
    for count in (4, 6):
        recorder.annotate(
            f"execute_context_0(0)_generation_{count}({count})",
            lambda count=count: recorder.graph("norm", *DENSE * count),
        ).catch_up()
    trace = recorder.trace()
    found = steps(Run("run", (trace,)))[0]
    layer, _ = layer_of(trace, found)
    assert [int(layer[found.step_of == step].max()) + 1 for step in (0, 1)] == [4, 6]
