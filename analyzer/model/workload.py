"""What ran: model, engine, role."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.model.handover import Handover


@dataclass(frozen=True, slots=True)
class Workload:
    """What is known of the job beside its traces.

    Attributes:
        engine: `vllm`, `sglang`, `torch`, another engine's name, or "unknown".
        role: `prefill`, `decode`, `colocated`, or "" where unknown.
        model: dimensions as in a Hugging Face config (`hidden_size`, `num_hidden_layers`, `num_key_value_heads`, …).
        versions: of engine and libraries.
        settings: batch, lengths, concurrency, profiler settings, command: as recorded, for comparing runs.
        reference: step times without the profiler and `inflation` (with it over without), where a collector timed both.
        roles: of each rank, where ranks differ.
        memory: what the engine counted during the load: `preemptions`, `kv_use` (share of the KV memory, 0 to 1),
            `queried_tokens` and `cached_tokens` of the prefix cache; those that are known.
        expert_tokens: tokens routed to each expert in the recording, all layers and ranks; () where nobody counted.
        counters: by how much each series of the engine's and the router's metrics grew while the run was served,
            by `name{labels}` as Prometheus writes it. A series that did not grow is absent; so are all, where nothing
            was scraped.
        handover: of keys and values from prefill to decode ranks.
        declared: what run.json states of the sort of run: `work`, `engine`, `phase`, `role`.
        cores: of the host, as run.json states; None where it does not.
    """

    engine: str = "unknown"
    role: str = ""
    model: dict[str, int | float | str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int | float | str] = field(default_factory=dict)
    reference: dict[str, int | float] = field(default_factory=dict)
    roles: dict[int, str] = field(default_factory=dict)
    memory: dict[str, int | float] = field(default_factory=dict)
    expert_tokens: tuple[int, ...] = ()

    counters: dict[str, float] = field(default_factory=dict)
    handover: Handover = field(default_factory=Handover)
    declared: dict[str, str] = field(default_factory=dict)
    cores: int | None = None

    @property
    def is_split_by_role(self) -> bool:
        """Whether ranks of this run are meant to do different work: prefill and decode."""
        return len(set(self.roles.values())) > 1
