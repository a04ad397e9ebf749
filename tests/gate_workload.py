"""A stand-in for a serving job under profile: decode steps of a model whose speed a file in the repository decides.

`python gate_workload.py FOLDER --seed N` reads `model.json` where it runs, draws what two ranks would do in each of
three runs, and writes their traces and run.json into FOLDER/1 to FOLDER/3. A run has luck of its own: its kernels are
up to 1 % longer or shorter.
"""

import json
import random
from pathlib import Path

import click
import kineto_files

from analyzer.sketch import sketch

STEPS, LAYERS = 24, 4
COLUMN_US = 2
GAP = 4
"""Columns between steps."""


def drawing(kernel_us, all_reduces, luck):
    """Two ranks; each layer is a product and its all-reduces, launched ahead."""
    rows = {"stream 7": "", "stream 20": "", "host": "", "steps": ""}
    for _ in range(STEPS):
        layer_g = "G" * round(kernel_us * luck.uniform(0.99, 1.01) / COLUMN_US)
        layer_a = ".".join(["A" * 12] * all_reduces)
        compute = (layer_g + "." * len(layer_a) + ".") * LAYERS
        exchange = ("." * len(layer_g) + layer_a + ".") * LAYERS
        launches = "l" * (LAYERS * (1 + all_reduces))
        width = len(compute)
        rows["stream 7"] += compute + "." * GAP
        rows["stream 20"] += exchange + "." * GAP
        rows["host"] += launches.ljust(width, ".") + "." * GAP
        rows["steps"] += "|" + "D" * (width - 1) + "." * GAP
    ranks = [f"rank {rank} {place} {cells}" for rank in (0, 1) for place, cells in rows.items()]
    return "\n".join([f"column {COLUMN_US} µs", "layout tp=2", "engine vllm", "message 16384", *ranks])


def record(folder, model, seed):
    """One run."""
    luck = random.Random(seed)
    kernel_us = model["kernel_us"] * luck.uniform(0.99, 1.01)
    kineto_files.write(sketch.read(drawing(kernel_us, model["all_reduces"], luck)), folder, compress=True)
    manifest = {
        "schema": 1,
        "engine": "vllm",
        "role": "decode",
        "layout": {"world_size": 2, "tp": 2},
        "settings": {"batch": 8},
    }
    (folder / "run.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=int, required=True)
def main(folder, seed):
    model = json.loads(Path("model.json").read_text(encoding="utf-8"))
    for repeat in range(3):
        record(folder / str(repeat + 1), model, seed + repeat)


if __name__ == "__main__":
    main()
