"""`collect topology`: what Linux, NVML and the tools tell of a host, and how it is written."""

import json
import os
import types

import pytest
from click.testing import CliRunner

from analyzer.errors import RunNotFoundError, TraceFormatError, UsageError
from collectors.hosts import linux
from collectors.hosts import nvml as topology_nvml
from collectors.hosts import snapshot as topology_snapshot
from collectors.hosts.fabric import Device, Fabric, FabricLink
from collectors.topology import command

NVIDIA = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV4\t0-7\t0\t\tN/A\nGPU1\tNV4\t X \t0-7\t0\t\tN/A\n"
RANK_TABLE = json.dumps(
    {
        "status": "completed",
        "version": "1.0",
        "server_list": [
            {"server_id": "10.0.0.1", "device": [{"device_id": "4", "device_ip": "192.1.1.4", "rank_id": "0"}]}
        ],
    }
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path):
    """A recorded file system: two NUMA nodes, one RDMA device with its interface, one Ethernet card, one worker."""
    for node, (cpus, distance) in enumerate((("0-3,8-11", "10 21"), ("4-7,12-15", "21 10"))):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        write(folder / "cpulist", cpus + "\n")
        write(folder / "distance", distance + "\n")
        write(folder / "meminfo", f"Node {node} MemTotal:       1024 kB\nNode {node} MemFree:        12 kB\n")
    rdma = tmp_path / "sys/devices/pci0000:00/0000:00:01.0/0000:1a:00.0"
    write(rdma / "numa_node", "1\n")
    write(rdma / "net/ib0/operstate", "up\n")
    port = rdma / "infiniband/mlx5_0/ports/1"
    write(port / "rate", "400 Gb/sec (4X NDR)\n")
    write(port / "link_layer", "InfiniBand\n")
    write(port / "state", "4: ACTIVE\n")
    ethernet = tmp_path / "sys/devices/pci0000:00/0000:00:02.0"
    write(ethernet / "numa_node", "-1\n")
    write(ethernet / "net/eth0/speed", "25000\n")
    write(ethernet / "net/eth0/operstate", "up\n")
    for at, target in (
        ("class/infiniband/mlx5_0", rdma / "infiniband/mlx5_0"),
        ("class/net/ib0", rdma / "net/ib0"),
        ("class/net/eth0", ethernet / "net/eth0"),
        ("bus/pci/devices/0000:1a:00.0", rdma),
    ):
        (tmp_path / "sys" / at).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / at).symlink_to(target)
    (rdma / "infiniband/mlx5_0/device").symlink_to(rdma)
    (rdma / "net/ib0/device").symlink_to(rdma)
    (ethernet / "net/eth0/device").symlink_to(ethernet)
    write(tmp_path / "sys/class/net/lo/operstate", "unknown\n")
    worker = tmp_path / "proc/4711"
    write(worker / "status", "Name:\tVLLM::Worker_TP\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n")
    write(worker / "cmdline", "VLLM::Worker_TP0\0\0\0")
    write(
        worker / "numa_maps",
        "7f00 default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4\n7f80 bind:1 huge anon=1 N1=1 kernelpagesize_kB=2048\n",
    )
    write(worker / "environ", "NCCL_DEBUG=INFO\0HOME=/root\0VLLM_API_KEY=sk-1\0VLLM_HOST=http://me:pw@proxy:80\0")
    return tmp_path


def test_numa_nodes_have_cpus_memory_and_distances(root):
    assert linux.numa_nodes(root / "sys")[1] == linux.NumaNode(1, "4-7,12-15", 1_048_576, (21, 10))


def test_an_rdma_device_has_its_rate_node_and_interface(root):
    assert linux.nics(root / "sys")[0] == linux.Nic(
        name="mlx5_0",
        bus_id="0000:1a:00.0",
        numa_node=1,
        link_layer="InfiniBand",
        gbit_per_s=400.0,
        state="ACTIVE",
        interfaces=("ib0",),
    )


def test_ethernet_cards_are_listed_and_loopback_is_not(root):
    assert [(nic.name, nic.gbit_per_s, nic.numa_node) for nic in linux.nics(root / "sys")[1:]] == [("eth0", 25.0, None)]


def test_a_process_has_its_affinity_and_memory_by_node(root):
    process = linux.process(root / "proc", 4711)
    assert (process.title, process.cpus, process.memory_nodes) == ("VLLM::Worker_TP0", "0-3", "0-1")
    assert process.resident_bytes == {0: 8_192, 1: 2_101_248}


def test_secrets_never_leave_the_environment(root):
    process = linux.process(root / "proc", 4711)
    assert process.environment == {"NCCL_DEBUG": "INFO", "VLLM_HOST": "http://proxy:80"}
    assert process.withheld == ("VLLM_API_KEY",)


@pytest.mark.parametrize("word", ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"])
def test_a_variable_whose_name_speaks_of_a_secret_is_withheld(word):
    assert linux.allowed({f"VLLM_S3_{word}_FILE": "x"}) == ({}, (f"VLLM_S3_{word}_FILE",))


def test_unrelated_variables_are_not_recorded():
    assert linux.allowed({"HOME": "/root", "AWS_SESSION": "x", "CUDA_VISIBLE_DEVICES": "0,1"}) == (
        {"CUDA_VISIBLE_DEVICES": "0,1"},
        (),
    )


def test_engine_workers_are_found_by_their_titles(root):
    write(root / "proc/5/cmdline", "bash\0-c\0VLLM::Worker\0")
    assert list(linux.engine_processes(root / "proc")) == [4711]


ADDRESSES = ("00000000:1B:00.0", "00000000:43:00.0", "00000000:52:00.0")
# The first two GPUs are joined by two links, the last two by a switch at 05:00.0.
FAR_ENDS = (
    ("00000000:43:00.0", "00000000:43:00.0", None),
    ("00000000:1B:00.0", "00000000:1B:00.0", "00000000:05:00.0"),
    ("00000000:05:00.0", None, None),
)


def nvml():
    """The functions of nvidia-ml-py that are used, answering for three GPUs."""
    return types.SimpleNamespace(
        NVML_NVLINK_MAX_LINKS=3,
        NVML_FEATURE_ENABLED=1,
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda _: b"NVIDIA H200",
        nvmlDeviceGetPciInfo=lambda handle: types.SimpleNamespace(busId=ADDRESSES[handle]),
        nvmlDeviceGetNvLinkState=lambda handle, link: int(FAR_ENDS[handle][link] is not None),
        nvmlDeviceGetNvLinkRemotePciInfo=lambda handle, link: types.SimpleNamespace(busId=FAR_ENDS[handle][link]),
        nvmlDeviceGetTopologyCommonAncestor=lambda *_: 50,
    )


def test_nvml_counts_links_directly_and_through_switches_and_falls_back_to_pci():
    fabric = topology_nvml.fabric(nvml())
    assert [(link.between, link.kind) for link in fabric.links] == [
        (("GPU0", "GPU1"), "NV2"),
        (("GPU0", "GPU2"), "SYS"),
        (("GPU1", "GPU2"), "NV1"),
    ]
    assert fabric.devices[0] == Device("GPU0", "0000:1b:00.0", model="NVIDIA H200")


def test_a_device_gets_the_numa_node_of_its_address(root):
    snapshot = topology_snapshot.Snapshot(fabrics={"nvml": Fabric((Device("GPU0", "0000:1a:00.0"),), ())})
    snapshot.probe_linux({}, root)
    assert snapshot.as_json()["devices"] == [{"name": "GPU0", "bus_id": "0000:1a:00.0", "numa_node": 1}]


def test_a_dead_process_is_recorded_as_absent(root):
    snapshot = topology_snapshot.Snapshot()
    snapshot.probe_linux({"0": 1}, root)
    assert snapshot.absent["process 1"] == "No such file or directory"


def test_the_better_source_names_the_link_and_is_named():
    snapshot = topology_snapshot.Snapshot(
        fabrics={
            "nccl": Fabric(links=(FabricLink(("GPU0", "GPU1"), "PHB"),)),
            "rocm-smi": Fabric(links=(FabricLink(("GPU0", "GPU1"), "XGMI", weight=15, hops=1),)),
        }
    )
    assert snapshot.as_json()["links"] == [
        {"from": "GPU0", "to": "GPU1", "type": "XGMI", "source": "rocm-smi", "weight": 15, "hops": 1}
    ]


def tool(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def no_tools(tmp_path, monkeypatch):
    """A path with no tool of any vendor on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def collect(*arguments):
    return CliRunner().invoke(command, list(arguments), catch_exceptions=False)


def test_a_tool_that_fails_or_is_missing_is_recorded_with_the_reason(no_tools):
    tool(no_tools, "nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9")
    host = json.loads(collect("--host", "node-a").stdout)["hosts"]["node-a"]
    assert host["absent"]["nvidia-smi"] == "exit code 9: NVIDIA-SMI has failed"
    assert host["absent"]["rocm-smi"] == "not installed"


def test_a_tool_that_answers_is_read(no_tools):
    tool(no_tools, "nvidia-smi", f"printf '{NVIDIA}'".replace("\t", r"\t").replace("\n", r"\n"))
    host = json.loads(collect("--host", "node-a").stdout)["hosts"]["node-a"]
    assert host["links"] == [{"from": "GPU0", "to": "GPU1", "type": "NV4", "source": "nvidia-smi"}]


@pytest.mark.usefixtures("no_tools")
def test_this_process_is_recorded_under_its_rank():
    host = json.loads(collect("--host", "a", "--pid", f"3={os.getpid()}").stdout)["hosts"]["a"]
    assert host["processes"]["3"]["pid"] == os.getpid()


def test_recorded_text_is_read_for_another_host(tmp_path):
    write(tmp_path / "topo.txt", NVIDIA)
    collect("--from", str(tmp_path / "topo.txt"), "--as", "nvidia-smi", "--host", "far", "--out", str(tmp_path / "run"))
    document = json.loads((tmp_path / "run/topology.json").read_text())
    assert document == {
        "schema": 1,
        "hosts": {
            "far": {
                "devices": [
                    {"name": "GPU0", "numa_node": 0, "cpus": "0-7"},
                    {"name": "GPU1", "numa_node": 0, "cpus": "0-7"},
                ],
                "links": [{"from": "GPU0", "to": "GPU1", "type": "NV4", "source": "nvidia-smi"}],
            }
        },
    }


def test_a_second_host_is_added_and_the_first_is_kept(tmp_path):
    write(tmp_path / "topo.txt", NVIDIA)
    for host in ("a", "b"):
        collect("--from", str(tmp_path / "topo.txt"), "--as", "nvidia-smi", "--host", host, "--out", str(tmp_path))
    assert sorted(json.loads((tmp_path / "topology.json").read_text())["hosts"]) == ["a", "b"]


def test_a_host_that_is_there_is_replaced_only_by_force(tmp_path):
    write(tmp_path / "topo.txt", NVIDIA)
    arguments = ("--from", str(tmp_path / "topo.txt"), "--as", "nvidia-smi", "--host", "a", "--out", str(tmp_path))
    collect(*arguments)
    with pytest.raises(UsageError, match="has a already; pass --force"):
        collect(*arguments)
    assert collect(*arguments, "--force").exit_code == 0


def test_a_rank_table_alone_needs_no_host(tmp_path):
    write(tmp_path / "hccl.json", RANK_TABLE)
    document = json.loads(collect("--from", str(tmp_path / "hccl.json"), "--as", "rank-table").stdout)
    assert document["ranks"] == {"0": {"node": "10.0.0.1", "device": 4, "address": "192.1.1.4"}}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--from", "topo.txt"), UsageError, "1 --from and 0 --as"),
        (("--from", "topo.txt", "--as", "nvidia-smi"), UsageError, "needs --host NAME"),
        (("--from", "none.txt", "--as", "nvidia-smi"), RunNotFoundError, "none.txt: No such file"),
        (("--from", "topo.txt", "--as", "npu-smi", "--host", "a"), TraceFormatError, "npu-smi info -t topo"),
        (("--from", "topo.txt", "--as", "nvidia-smi", "--pid", "3"), UsageError, "use one at a time"),
        (("--pid", "rank0=3"), UsageError, "expected PID or RANK=PID"),
    ],
)
@pytest.mark.usefixtures("no_tools")
def test_wrong_usage_is_one_line(tmp_path, monkeypatch, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "topo.txt", NVIDIA)
    with pytest.raises(error, match=message):
        collect(*arguments)


def test_a_file_that_is_no_topology_is_not_overwritten(tmp_path):
    write(tmp_path / "topo.txt", NVIDIA)
    write(tmp_path / "topology.json", "{}")
    with pytest.raises(TraceFormatError, match=r"not a topology\.json"):
        collect("--from", str(tmp_path / "topo.txt"), "--as", "nvidia-smi", "--host", "a", "--out", str(tmp_path))
