"""What a built-in workload computes and how often: the job that the command hands to each rank, as one JSON text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Dimensions of the decoder.

    Attributes:
        layers: decoder layers.
        hidden: width of the residual stream, elements.
        heads: query heads.
        kv_heads: key and value heads; each serves heads / kv_heads query heads.
        ffn: inner width of a feed-forward block, or of one expert.
        vocab: tokens.
        experts: experts a layer; 0 is a dense feed-forward.
        top_k: experts a token is sent to.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    experts: int = 0
    top_k: int = 0

    @property
    def head_dim(self) -> int:
        """Elements of one head."""
        return self.hidden // self.heads

    def config(self) -> dict[str, int]:
        """The same dimensions under their names in a Hugging Face config."""
        dimensions = {
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab,
        }
        if self.experts:
            return dimensions | {
                "moe_intermediate_size": self.ffn,
                "num_experts": self.experts,
                "num_experts_per_tok": self.top_k,
            }
        return dimensions | {"intermediate_size": self.ffn}


@dataclass(frozen=True, slots=True)
class JobSettings:
    """One workload at one degree.

    Attributes:
        workload: `tp`, `pp`, `dp`, `ep`, `cp`, `dcp` or `pd`.
        degree: as the user wrote it: "2", or "2+1" (prefill + decode ranks) for `pd`.
        size: of the model.
        batch: sequences of the whole job, not of one rank, so that degrees can be compared.
        context: prompt tokens a sequence.
        steps: decode steps that follow each prefill step.
        rounds: prefill-and-decode rounds that are timed, and again that are profiled.
        warmup: rounds before that, neither timed nor profiled.
        dtype: `auto`, `float32`, `bfloat16` or `float16`.
        device: `auto`, `cpu` or `cuda`.
        seed: of weights and prompts.
        extra: what only this workload knows, by option name (`skew`, `transfer`, …).
    """

    workload: str
    degree: str
    size: ModelSize
    batch: int
    context: int
    steps: int
    rounds: int
    warmup: int
    dtype: str = "auto"
    device: str = "auto"
    seed: int = 0
    extra: dict[str, int | float | str] = field(default_factory=dict)

    @property
    def split(self) -> tuple[int, ...]:
        """Ranks of each role: (2,), or (2, 1) for two prefill and one decode rank."""
        return tuple(int(ranks) for ranks in self.degree.split("+"))

    @property
    def ranks(self) -> int:
        """Ranks of the job."""
        return sum(self.split)

    @property
    def name(self) -> str:
        """Folder of the run: `tp2`, `pd1+1`."""
        return f"{self.workload}{self.degree}"


@dataclass(frozen=True, slots=True)
class Job:
    """What a rank is told.

    Attributes:
        settings: of the workload.
        folder: directory that the traces and `run.json` go to.
        command: the command line, as `run.json` keeps it.
    """

    settings: JobSettings
    folder: str
    command: str

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The inverse of `to_json`."""
        fields = json.loads(text)
        settings = fields["settings"]
        return cls(
            settings=JobSettings(**(settings | {"size": ModelSize(**settings["size"])})),
            folder=fields["folder"],
            command=fields["command"],
        )
