"""Draw the sample traces under sample_traces/drawn: `python tests/draw_samples.py`. Deterministic to the byte."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from kineto_files import write  # noqa: E402

from analyzer.sketch import sketch  # noqa: E402

TP = """
    layout tp=2
    message 262144
    rank 0 stream 7   GGTTGGG.....NGGGG|GGG.....NGGTTGGG.....NGGGG|GGG.....N
    rank 0 stream 20  .......AAAAA....|....AAAAA........AAAAA....|....AAAAA.
    rank 0 host       llllllllllllllllllllllllllll
    rank 1 stream 7   GGTTGGGGGG..NGGGG|GGGGGG..NGGTTGGGGGG..NGGGG|GGGGGG..N
    rank 1 stream 20  ..........AA....|.......AA...........AA....|.......AA.
    rank 1 host       llllllllllllllllllllllllllll
"""
EP = """
    layout ep=2
    rank 0 stream 7   GTTGXXXXMMMMYYYYNGTTGXXXXMMMMYYYYN
    rank 0 host       g.................................
    rank 0 steps      D.................................
    rank 1 stream 7   GTTGXX..MMMMMMYYNGTTGXX..MMMMMMYYN
    rank 1 host       g.................................
    rank 1 steps      D.................................
"""
PP = """
    layout pp=2
    message 1048576
    rank 0 stream 7   GGTTGGGGSS........GGTTGGGGSS........
    rank 0 host       lllll.............lllll.............
    rank 0 steps      PPPPPPPPPPPPPPPPPPDDDDDDDDDDDDDDDDDD
    rank 1 stream 7   ........SSGGTTGGGG........SSGGTTGGGG
    rank 1 host       lllll.............lllll.............
    rank 1 steps      PPPPPPPPPPPPPPPPPPDDDDDDDDDDDDDDDDDD
"""
COPIES = """
    layout tp=1
    rank 0 stream 7   HHHHGGTTGGDD....HHHHGGTTGGDD....HHHHGGTTGGDD
    rank 0 host       l...llll........l...llll........l...llll....
    rank 0 steps      DDDDDDDDDDDDDDD|DDDDDDDDDDDDDDD|DDDDDDDDDDDD
"""
HEALTHY = """
    layout tp=1
    rank 0 stream 7   GGGTTTGGGG|GGGTTTGGGG|GGGTTTGGGG|GGGTTTGGGG
    rank 0 host       g.........|..........|..........|..........
    rank 0 steps      D.........|..........|..........|..........
"""
LOCALITY = """
    layout tp=2
    nodes  node-a node-a
    numa   0 1
    cpus   0 0
    copy   16384
    model  num_hidden_layers=61 num_key_value_heads=128 kv_lora_rank=512 qk_rope_head_dim=64
    metrics vllm:prefix_cache_queries_total=4800 vllm:prefix_cache_hits_total=2080 vllm:num_preemptions_total=3 \
        vllm:request_success_total=20 vllm_router_policy_decisions_total{policy="round_robin",worker="w0"}=10 \
        vllm_router_policy_decisions_total{policy="round_robin",worker="w1"}=10
    rank 0 stream 7   J|J|J|J|J|J|J|JGGTTGGB|GGE|E|E|NGGGGB|J|J|J|J|J|J|J|JGGTTGGB|GGE|E|E|NGGGGB
    rank 1 stream 7   J|J|J|J|J|J|J|JGGTTGGB|GGE|E|E|NGGGGB|J|J|J|J|J|J|J|JGGTTGGB|GGE|E|E|NGGGGB
"""
HAND_OVER = """
    roles prefill decode
    rank 0 stream 7   GGGGTTTTGGGG............GGGGTTTTGGGG............
    rank 0 host       l...l...l...............l...l...l...............
    rank 0 steps      PPPPPPPPPPPP............PPPPPPPPPPPP............
    rank 1 stream 7   ....................GTG|GTG.................GTG|
    rank 1 host       ....................llllll..................lll.
    rank 1 steps      ....................DDD|DDD.................DDD|
"""
SAMPLES = {
    "tp2": TP,
    "ep2": EP,
    "pp2": PP,
    "host_copies": COPIES,
    "healthy": HEALTHY,
    "locality": LOCALITY,
    "pd_nixl": HAND_OVER,
    "pd_mooncake": HAND_OVER,
}
COUNTED = {
    "pd_nixl": {
        "settings": {"kv_connector": "NixlConnector"},
        "kv_transfers": {"transfers": 2, "bytes": 2 * 313 << 20, "time_ns": 347_588_000},
        "metrics": {"change": {"vllm:nixl_post_time_seconds_sum": 0.258254, "vllm:nixl_num_descriptors_sum": 80_128.0}},
    },
    "pd_mooncake": {
        "settings": {"kv_connector": "MooncakeConnector"},
        "kv_transfers": {"transfers": 3, "bytes": 3 << 28, "time_ns": 60_000_000},
        "metrics": {"change": {"vllm:mooncake_num_descriptors_sum": 16.0}},
    },
}
"""What the engine's counters say: a published NIXL transfer of many small blocks, and one of few large ones."""


def _snapshot(run):
    """The run's host as `collect topology` would have recorded it: devices, NUMA nodes of 32 CPUs, processes."""
    topology = run.topology
    nodes = sorted(set(topology.numa_of.values()))
    processes = {
        str(rank): {"cpus": ",".join(f"{32 * node}-{32 * node + 31}" for node in process.cpu_nodes)}
        for rank, process in topology.processes.items()
    }
    host = {
        "devices": [{"name": f"GPU{rank}", "numa_node": node} for rank, node in topology.numa_of.items()],
        "numa_nodes": [{"index": node, "cpus": f"{32 * node}-{32 * node + 31}"} for node in nodes],
        "processes": processes,
    }
    return {"schema": 1, "hosts": {"node-a": host}}


def main():
    for name, drawing in SAMPLES.items():
        run = sketch.read(drawing)
        folder = write(run, ROOT / "sample_traces" / "drawn" / name, compress=True)
        facts = {
            "schema": 1,
            "engine": "vllm",
            "layout": dict(run.layout.sizes),
            "topology": {"nodes": {str(rank): "node-a" for rank in run.ranks}},
        }
        if run.workload.model:
            facts["model"] = run.workload.model
        if run.workload.counters:
            facts["metrics"] = {"change": run.workload.counters}
        if run.workload.roles:
            facts["roles"] = {str(rank): role for rank, role in run.workload.roles.items()}
        facts |= COUNTED.get(name, {})
        if run.topology.numa_of:
            (folder / "topology.json").write_text(json.dumps(_snapshot(run), indent=1) + "\n")
        (folder / "run.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
