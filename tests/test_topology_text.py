"""Topology parsers, on text as the tools print it."""

import json

import pytest

from analyzer.errors import TraceFormatError
from collectors.hosts import tool_text as topology_text
from collectors.hosts import topology_xml
from collectors.hosts.fabric import Fabric, FabricLink, most_trusted

NVIDIA_H200 = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tPIX\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNODE\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tSYS\tPIX\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_3\n"
    "\n"
)

# Pasted into a bug report: tabs became spaces, no NIC, one GPU in a container without affinity.
NVIDIA_PASTED = """
root@node2:~# nvidia-smi topo -m
        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      PHB     0-63    0               N/A
GPU1    PHB      X      0-63    0               N/A

Legend:

  X    = Self
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
"""

NVIDIA_ONE = "\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t\t\t\tN/A\n\nLegend:\n"

ROCM = """

============================ ROCm System Management Interface ============================

================================ Weight between two GPUs =================================
       GPU0         GPU1         GPU2         \x20
GPU0   0            15           72           \x20
GPU1   15           0            72           \x20
GPU2   72           72           0            \x20

================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2         \x20
GPU0   0            1            3            \x20
GPU1   1            0            3            \x20
GPU2   3            3            0            \x20

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2         \x20
GPU0   0            XGMI         PCIE         \x20
GPU1   XGMI         0            PCIE         \x20
GPU2   PCIE         PCIE         0            \x20

======================================= Numa Nodes =======================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[0]\t\t: (Topology) Numa Affinity: 0
GPU[1]\t\t: (Topology) Numa Node: 0
GPU[1]\t\t: (Topology) Numa Affinity: 0
GPU[2]\t\t: (Topology) Numa Node: 1
GPU[2]\t\t: (Topology) Numa Affinity: 1
================================== End of ROCm SMI Log ===================================
"""

AMD = """ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 ENABLED      ENABLED      ENABLED
0000:22:00.0 ENABLED      ENABLED      ENABLED
0000:9f:00.0 ENABLED      ENABLED      ENABLED

WEIGHT TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 0            15           15
0000:22:00.0 15           0            15
0000:9f:00.0 15           15           0

HOPS TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 0            1            1
0000:22:00.0 1            0            1
0000:9f:00.0 1            1            0

LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 SELF         XGMI         XGMI
0000:22:00.0 XGMI         SELF         XGMI
0000:9f:00.0 XGMI         XGMI         SELF

NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 N/A          50000-50000  50000-50000
0000:22:00.0 50000-50000  N/A          50000-50000
0000:9f:00.0 50000-50000  50000-50000  N/A

CACHE COHERANCY TABLE:
             0000:0c:00.0 0000:22:00.0 0000:9f:00.0
0000:0c:00.0 SELF         C            C
0000:22:00.0 C            SELF         C
0000:9f:00.0 C            C            SELF


Legend:
  SELF = Current GPU
  ENABLED / DISABLED = Link is enabled or disabled
  N/A = Not supported
"""

ASCEND_910B = """\t   NPU0       NPU1       NPU2       CPU Affinity
NPU0       X          HCCS       PHB        144-167
NPU1       HCCS       X          SYS        144-167
NPU2       PHB        SYS        X          96-119

Legend:

  X    = Self
  SYS  = Path traversing PCIe and NUMA nodes. Nodes are connected through SMP, such as QPI, UPI.
  HCCS = Connection traversing HCCS.
"""

ASCEND_A3 = """           Phy-ID12   Phy-ID13   Phy-ID14
Phy-ID12   X          SIO        HCCS_SW
Phy-ID13   SIO        X          HCCS_SW
Phy-ID14   HCCS_SW    HCCS_SW    X

Legend:

  X    = Self
  SIO  = Path traversing the SIO bus
  HCCS_SW = Connection traversing HCCS through a switch
  NA   = Unknown relationship.
"""

RANK_TABLE = """{
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {"server_id": "10.155.111.140", "host_nic_ip": "reserve",
         "device": [{"device_id": "0", "device_ip": "192.1.27.6", "rank_id": "0"},
                    {"device_id": "1", "device_ip": "192.2.27.6", "rank_id": "1"}]},
        {"server_id": "10.155.111.141", "host_nic_ip": "reserve",
         "device": [{"device_id": "0", "device_ip": "192.1.27.8", "rank_id": "2"}]}
    ],
    "status": "completed"
}"""

RANK_TABLE_A3 = """{
    "status": "completed", "version": "1.2", "server_count": "2",
    "server_list": [
        {"server_id": "node_0", "device": [{"device_id": "0", "super_device_id": "37748736", "rank_id": "0"}]},
        {"server_id": "node_1", "device": [{"device_id": "7", "super_device_id": "38600711", "rank_id": "1"}]}
    ],
    "super_pod_list": [{"super_pod_id": "0", "server_list": [{"server_id": "node_0"}, {"server_id": "node_1"}]}]
}"""

NCCL_H100 = """<system version="1">
  <cpu host_hash="0x8393fb66b8b750c5" numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:b7:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="32.0 GT/s" link_width="16">
      <pci busid="0000:b9:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s" link_width="16">
        <nic>
          <net name="mlx5_4" dev="4" latency="0" speed="400000" port="1" guid="0x5e7ca70003e1a258" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
      <pci busid="0000:b8:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s" link_width="16">
        <gpu dev="5" sm="90" rank="5" gdr="1">
          <nvlink target="0000:08:00.0" count="4" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
  </cpu>
  <cpu host_hash="0x8393fb66b8b750c5" numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s" link_width="16">
      <pci busid="0000:18:00.0" class="0x030200" link_speed="32.0 GT/s" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:08:00.0" count="9" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="9" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
    <pci busid="0000:41:00.0" class="0x020700" link_speed="16.0 GT/s" link_width="16">
      <nic>
        <net name="mlx5_9" dev="9" speed="100000" port="1" guid="0x1" maxconn="131072" gdr="0"/>
      </nic>
    </pci>
  </cpu>
</system>
"""

NCCL_V100 = """<system version="1">
  <cpu numaid="0" affinity="0000,0fffff00,000fffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79">
    <pci busid="0000:03:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">
      <pci busid="0000:04:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">
        <pci busid="0000:06:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
          <gpu dev="0" sm="70" rank="0" gdr="1">
            <nvlink target="0000:07:00.0" count="1" tclass="0x030200"/>
          </gpu>
        </pci>
      </pci>
      <pci busid="0000:07:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
        <gpu dev="1" sm="70" rank="1" gdr="1">
          <nvlink target="0000:06:00.0" count="1" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:0a:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
        <gpu dev="2" sm="70" rank="2" gdr="1"/>
      </pci>
    </pci>
  </cpu>
</system>
"""

LSTOPO = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003" gp_index="1">
    <info name="HostName" value="node-a"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" gp_index="3">
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" gp_index="14" local_memory="11368878080"/>
      <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-20]">
        <object type="Bridge" gp_index="867" bridge_type="1-1" depth="1" bridge_pci="0000:[02-0f]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
          <object type="Bridge" gp_index="848" bridge_type="1-1" depth="2" bridge_pci="0000:[0c-0c]" pci_busid="0000:0b:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
            <object type="PCIDev" gp_index="824" pci_busid="0000:0c:00.0" pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="31.507692">
              <info name="PCIVendor" value="Mellanox Technologies"/>
              <object type="OSDev" gp_index="995" name="ibp12s0" osdev_type="2"/>
              <object type="OSDev" gp_index="1011" name="mlx5_0" osdev_type="3"/>
            </object>
          </object>
          <object type="Bridge" gp_index="948" bridge_type="1-1" depth="2" bridge_pci="0000:[0f-0f]" pci_busid="0000:0b:10.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
            <object type="PCIDev" gp_index="907" pci_busid="0000:0f:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.507692">
              <object type="OSDev" gp_index="1017" name="opencl0d0" subtype="OpenCL" osdev_type="5">
                <info name="GPUModel" value="NVIDIA A100-SXM4-80GB"/>
              </object>
              <object type="OSDev" gp_index="1018" name="nvml0" subtype="NVML" osdev_type="1"/>
            </object>
          </object>
        </object>
        <object type="Bridge" gp_index="950" bridge_type="1-1" depth="1" bridge_pci="0000:[20-20]" pci_busid="0000:00:03.0" pci_type="0604 [8086:352a] [8086:352a] b0" pci_link_speed="31.507692">
          <object type="PCIDev" gp_index="909" pci_busid="0000:20:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.507692">
            <object type="OSDev" gp_index="1020" name="nvml1" subtype="NVML" osdev_type="1"/>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="4">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="15" local_memory="11368878080"/>
      <object type="Bridge" gp_index="11" bridge_type="0-1" depth="0" bridge_pci="0000:[80-9f]">
        <object type="PCIDev" gp_index="910" pci_busid="0000:9f:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.507692">
          <object type="OSDev" gp_index="1021" name="nvml2" subtype="NVML" osdev_type="1"/>
        </object>
      </object>
    </object>
  </object>
</topology>
"""


def kinds(fabric: Fabric) -> dict[tuple[str, str], str]:
    return {link.between: link.kind for link in fabric.links}


def test_nvidia_smi_with_an_underlined_header_gives_links_by_the_nics_own_names():
    assert kinds(topology_text.nvidia_smi(NVIDIA_H200)) == {
        ("GPU0", "GPU1"): "NV18",
        ("GPU0", "GPU2"): "NV18",
        ("GPU0", "mlx5_0"): "PIX",
        ("GPU0", "mlx5_3"): "SYS",
        ("GPU1", "GPU2"): "NV18",
        ("GPU1", "mlx5_0"): "NODE",
        ("GPU1", "mlx5_3"): "SYS",
        ("GPU2", "mlx5_0"): "SYS",
        ("GPU2", "mlx5_3"): "PIX",
        ("mlx5_0", "mlx5_3"): "SYS",
    }


def test_nvidia_smi_gives_the_affinities_of_gpus_and_leaves_those_of_nics_unknown():
    devices = {device.name: device for device in topology_text.nvidia_smi(NVIDIA_H200).devices}
    assert (devices["GPU2"].cpus, devices["GPU2"].numa_node) == ("56-111,168-223", 1)
    assert (devices["mlx5_0"].cpus, devices["mlx5_0"].numa_node) == ("", None)


def test_nvidia_smi_is_read_when_tabs_were_pasted_as_spaces():
    fabric = topology_text.nvidia_smi(NVIDIA_PASTED)
    assert fabric.links == (FabricLink(("GPU0", "GPU1"), "PHB"),)
    assert [device.numa_node for device in fabric.devices] == [0, 0]


def test_a_lone_gpu_in_a_container_has_no_link_and_no_affinity():
    fabric = topology_text.nvidia_smi(NVIDIA_ONE)
    assert fabric.links == ()
    assert [(device.name, device.cpus, device.numa_node) for device in fabric.devices] == [("GPU0", "", None)]


def test_nvidia_smi_text_without_a_matrix_is_an_error_that_names_the_command():
    with pytest.raises(TraceFormatError, match=r"expected the output of `nvidia-smi topo -m`"):
        topology_text.nvidia_smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")


def test_a_matrix_cut_in_the_middle_of_a_row_is_an_error():
    with pytest.raises(TraceFormatError, match="the row of GPU1 has fewer cells than the 5 devices"):
        topology_text.nvidia_smi(NVIDIA_H200[: NVIDIA_H200.index("NV18\tNODE")])


def test_rocm_smi_gives_type_weight_and_hops_of_each_pair_once():
    assert topology_text.rocm_smi(ROCM).links == (
        FabricLink(("GPU0", "GPU1"), "XGMI", weight=15, hops=1),
        FabricLink(("GPU0", "GPU2"), "PCIE", weight=72, hops=3),
        FabricLink(("GPU1", "GPU2"), "PCIE", weight=72, hops=3),
    )


def test_rocm_smi_gives_numa_nodes():
    assert [device.numa_node for device in topology_text.rocm_smi(ROCM).devices] == [0, 0, 1]


def test_rocm_smi_with_link_types_alone_has_no_weights():
    start = ROCM.index("=============================== Link Type")
    assert topology_text.rocm_smi(ROCM[start : ROCM.index("======================================= Numa")]).links[
        0
    ] == (FabricLink(("GPU0", "GPU1"), "XGMI"))


def test_amd_smi_numbers_gpus_in_the_order_of_their_addresses():
    fabric = topology_text.amd_smi(AMD)
    assert [(device.name, device.bus_id) for device in fabric.devices] == [
        ("GPU0", "0000:0c:00.0"),
        ("GPU1", "0000:22:00.0"),
        ("GPU2", "0000:9f:00.0"),
    ]
    assert fabric.links[1] == FabricLink(("GPU0", "GPU2"), "XGMI", weight=15, hops=1)


def test_npu_smi_gives_links_and_cpus():
    fabric = topology_text.npu_smi(ASCEND_910B)
    assert kinds(fabric) == {("NPU0", "NPU1"): "HCCS", ("NPU0", "NPU2"): "PHB", ("NPU1", "NPU2"): "SYS"}
    assert fabric.devices[2].cpus == "96-119"


def test_npu_smi_with_physical_ids_calls_devices_npu():
    assert kinds(topology_text.npu_smi(ASCEND_A3)) == {
        ("NPU12", "NPU13"): "SIO",
        ("NPU12", "NPU14"): "HCCS_SW",
        ("NPU13", "NPU14"): "HCCS_SW",
    }


def test_a_rank_table_places_ranks():
    assert [(p.rank, p.node, p.device) for p in topology_text.rank_table(RANK_TABLE)] == [
        (0, "10.155.111.140", 0),
        (1, "10.155.111.140", 1),
        (2, "10.155.111.141", 0),
    ]


def test_a_rank_table_of_super_pods_names_the_pod():
    assert [(p.node, p.super_pod) for p in topology_text.rank_table(RANK_TABLE_A3)] == [
        ("node_0", "0"),
        ("node_1", "0"),
    ]


def test_ranks_of_server_groups_are_kept_apart():
    part = json.loads(RANK_TABLE)
    groups = json.dumps({"version": "1.0", "status": "completed", "server_group_list": [{"group_id": "1", **part}]})
    assert {p.group for p in topology_text.rank_table(groups)} == {"1"}


def test_a_rank_table_that_is_being_written_is_not_read():
    with pytest.raises(TraceFormatError, match="wait until it is 'completed'"):
        topology_text.rank_table(RANK_TABLE.replace('"completed"', '"initializing"'))


def test_nccl_adds_up_nvlinks_through_switches():
    assert kinds(topology_xml.nccl(NCCL_H100))["GPU5", "GPU0"] == "NV18"


def test_nccl_names_pci_paths():
    links = kinds(topology_xml.nccl(NCCL_H100))
    assert links["mlx5_4", "GPU5"] == "PIX"
    assert links["mlx5_4", "GPU0"] == "SYS"
    assert links["GPU0", "mlx5_9"] == "PHB"


def test_nccl_tells_direct_nvlinks_from_pci():
    assert kinds(topology_xml.nccl(NCCL_V100)) == {
        ("GPU0", "GPU1"): "NV1",
        ("GPU0", "GPU2"): "PXB",
        ("GPU1", "GPU2"): "PIX",
    }


def test_nccl_gives_address_and_numa_node():
    device = topology_xml.nccl(NCCL_H100).devices[1]
    assert (device.name, device.bus_id, device.numa_node) == ("GPU5", "0000:b8:00.0", 1)


def test_lstopo_names_paths_as_nvidia_smi_does():
    assert kinds(topology_xml.lstopo(LSTOPO)) == {
        ("mlx5_0", "GPU0"): "PIX",
        ("mlx5_0", "GPU1"): "PHB",
        ("mlx5_0", "GPU2"): "SYS",
        ("GPU0", "GPU1"): "PHB",
        ("GPU0", "GPU2"): "SYS",
        ("GPU1", "GPU2"): "SYS",
    }


def test_lstopo_gives_models_numa_nodes_and_the_host():
    fabric = topology_xml.lstopo(LSTOPO)
    assert fabric.devices[1].model == "NVIDIA A100-SXM4-80GB"
    assert [device.numa_node for device in fabric.devices] == [0, 0, 0, 1]
    assert topology_xml.lstopo_host(LSTOPO) == "node-a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not XML"),
        ("<system/>", "no <gpu> and no <net>"),
        ("<graphs/>", "root element is <graphs>"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><system/>', "entities"),
    ],
)
def test_what_is_not_a_nccl_topology_is_an_error(text, message):
    with pytest.raises(TraceFormatError, match=message):
        topology_xml.nccl(text)


def test_the_driver_is_believed_before_the_pci_tree():
    best = most_trusted(
        {
            "nccl": Fabric(links=(FabricLink(("GPU1", "GPU0"), "PHB"), FabricLink(("GPU0", "GPU2"), "SYS"))),
            "nvidia-smi": Fabric(links=(FabricLink(("GPU0", "GPU1"), "NV4"),)),
        }
    )
    assert {pair: (link.kind, source) for pair, (link, source) in best.items()} == {
        ("GPU0", "GPU1"): ("NV4", "nvidia-smi"),
        ("GPU0", "GPU2"): ("SYS", "nccl"),
    }
