"""`topology.json` beside the traces places ranks on devices, links, NICs and NUMA nodes."""

import json

import pytest
from click.testing import CliRunner
from kineto_files import write

from analyzer.errors import TraceFormatError
from analyzer.ingest.load import load
from analyzer.model.topology import Process, Topology
from analyzer.sketch import sketch
from collectors.topology import command

PAIR = """
    layout tp=2
    rank 0 stream 7   GGGGAAAA
    rank 1 stream 7   GGGGAAAA
"""
FOUR = """
    layout tp=4
    rank 0 stream 7   GGGGAAAA
    rank 1 stream 7   GGGGAAAA
    rank 2 stream 7   GGGGAAAA
    rank 3 stream 7   GGGGAAAA
"""


def link(first, second, kind):
    return {"from": first, "to": second, "type": kind, "source": "nvidia-smi"}


HOST = {
    "devices": [{"name": "GPU0", "numa_node": 0}, {"name": "GPU1", "numa_node": 1}],
    "links": [
        link("GPU0", "GPU1", "SYS"),
        link("GPU0", "mlx5_0", "PIX"),
        link("GPU1", "mlx5_0", "SYS"),
        link("GPU0", "mlx5_1", "SYS"),
        link("GPU1", "mlx5_1", "NODE"),
    ],
    "nics": [{"name": "mlx5_0", "state": "ACTIVE"}, {"name": "mlx5_1", "state": "ACTIVE"}],
    "numa_nodes": [{"index": 0, "cpus": "0-3,8-11"}, {"index": 1, "cpus": "4-7"}],
}


def run_with(folder, drawing=PAIR, manifest=None, **topology):
    place = write(sketch.read(drawing), folder)
    (place / "topology.json").write_text(json.dumps({"schema": 1, **topology}))
    if manifest:
        (place / "run.json").write_text(json.dumps(manifest))
    return load(place)


def test_the_only_host_with_a_device_for_every_rank_holds_all_ranks(tmp_path):
    topology = run_with(tmp_path, hosts={"alpha": HOST}).topology
    assert topology == Topology(
        node_of={0: "alpha", 1: "alpha"},
        source="topology.json",
        device_of={0: 0, 1: 1},
        links={(0, 1): "SYS"},
        nics_of={0: ("mlx5_0",), 1: ("mlx5_1",)},
        numa_of={0: 0, 1: 1},
        cores_of={"alpha": 12},
    )
    assert topology.rung((0, 1)) == "socket"


def test_a_host_with_fewer_devices_than_ranks_does_not_hold_them(tmp_path):
    run = run_with(tmp_path, FOUR, hosts={"alpha": HOST})
    assert run.topology == Topology()
    assert any("does not say where the ranks run" in note.text for note in run.notes)


def test_run_json_names_the_nodes_and_the_hosts_their_links(tmp_path):
    nodes = {"0": "alpha", "1": "alpha", "2": "beta", "3": "beta"}
    quad = {
        "devices": [{"name": f"GPU{at}"} for at in range(4)],
        "links": [link("GPU0", "GPU1", "NV18"), link("GPU2", "GPU3", "PHB")],
    }
    hosts = {"alpha": quad, "beta": quad}
    topology = run_with(tmp_path, FOUR, {"topology": {"nodes": nodes}}, hosts=hosts).topology
    assert (topology.rung((0, 1)), topology.rung((2, 3)), topology.rung((0, 2))) == ("peer", "pcie", "network")
    assert topology.is_rail_aligned((0, 2)) is False


def test_a_process_tells_its_ranks_device_cpus_and_environment(tmp_path):
    environment = {"CUDA_VISIBLE_DEVICES": "1,0", "NCCL_IB_DISABLE": "1"}
    process = {"title": "worker", "cpus": "4-5", "resident_bytes": {"0": 4096}, "environment": environment}
    host = HOST | {"processes": {"0": process, "1": process}}
    topology = run_with(tmp_path, hosts={"alpha": host}).topology
    assert topology.device_of == {0: 1, 1: 0}
    assert topology.processes[0] == Process((1,), {0: 4096}, environment)


def test_a_rank_table_names_nodes_devices_and_the_super_pod(tmp_path):
    ranks = {str(at): {"node": f"10.0.0.{at}", "device": 4, "super_pod": "0"} for at in range(2)}
    topology = run_with(tmp_path, hosts={}, ranks=ranks).topology
    assert topology.nodes((0, 1)) == ("10.0.0.0", "10.0.0.1")
    assert topology.rung((0, 1)) == "peer"
    assert topology.is_rail_aligned((0, 1)) is True


def test_a_link_that_is_not_recorded_leaves_the_rung_unknown(tmp_path):
    host = HOST | {"links": [link("GPU0", "mlx5_0", "PIX")]}
    assert run_with(tmp_path, hosts={"alpha": host}).topology.rung((0, 1)) is None


def test_a_nic_that_is_down_is_nobodys(tmp_path):
    host = HOST | {"nics": [{"name": "mlx5_0", "state": "DOWN"}, {"name": "mlx5_1", "state": "ACTIVE"}]}
    assert run_with(tmp_path, hosts={"alpha": host}).topology.nics_of == {0: ("mlx5_1",), 1: ("mlx5_1",)}


@pytest.mark.parametrize(
    ("text", "says"), [("[]", "Expected `object`"), ('{"schema": 9}', "schema 9, this version reads schema 1")]
)
def test_what_is_no_topology_is_one_clear_line(tmp_path, text, says):
    place = write(sketch.read(PAIR), tmp_path)
    (place / "topology.json").write_text(text)
    with pytest.raises(TraceFormatError, match=says):
        load(place)


def test_what_the_collector_writes_of_nvidia_smi_is_read(tmp_path):
    place = write(sketch.read(PAIR), tmp_path / "run")
    matrix = tmp_path / "topo.txt"
    matrix.write_text(
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tSYS\tPIX\t0-3\t0\t\tN/A\n"
        "GPU1\tSYS\t X \tSYS\t4-7\t1\t\tN/A\n"
        "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
        "\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    )
    words = ["--from", str(matrix), "--as", "nvidia-smi", "--host", "alpha", "--out", str(place)]
    CliRunner().invoke(command, words, catch_exceptions=False)
    topology = load(place).topology
    assert (topology.links, topology.rung((0, 1))) == ({(0, 1): "SYS"}, "socket")
    assert (topology.nics_of, topology.numa_of) == ({0: ("mlx5_0",), 1: ("mlx5_0",)}, {0: 0, 1: 1})
