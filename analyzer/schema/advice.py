"""What to do, and where it holds: advice is data with conditions."""

from __future__ import annotations

from dataclasses import dataclass

ACCELERATORS = ("nvidia", "amd", "huawei", "intel", "meta", "cambricon")
"""Makers of devices that a host launches work on; a run on a CPU has none."""
OWN_CODE = ("torch", "ddp", "fsdp", "torchrec", "diffusion")
"""Engines that are the user's own PyTorch code."""
SHARDED = ("tensor-parallel", "expert-parallel", "context-parallel")
"""Uses of a group whose ranks need each other in every layer."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. Each condition that is stated must be known to hold; what is unknown does not hold.

    A flag, variable or command that the text names brings conditions of its own, from `analyzer/data/flags.toml`: the
    version of its engine that has it, is rid of it, or has it on; and the makers whose devices it is for.

    Attributes:
        text: a sentence; may name flags of the engines below.
        engines: of which the run's is one. A flag of an engine is named by advice for that engine alone.
        since: version of the engine from which on it holds; an unknown version is taken for the newest.
        until: version of the engine from which on it no longer holds.
        makers: of the device.
        phases: any of which a rank runs: prefill, decode, training, …
        layout: `tp > 1`, `dp > 1`, … or `experts` (the model has some).
        uses: of the group that the finding is about, or of any group where it is about none.
        replay: eager, graph, ….
        unless: what is on or followed already: a feature (`fused all-reduce`, see `followed`), or a flag that the
            recorded command or settings hold.
    """

    text: str
    engines: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    makers: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


Suggestion = str | Advice | tuple[str | Advice, ...]
"""A sentence without a flag, advice, or alternatives, of which the first that holds is given."""
