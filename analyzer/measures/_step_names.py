"""What engines write into the names of their steps: phase, requests, tokens, context.

Forms, by the version that first wrote them:

- vLLM 0.13: `execute_new_2_cached_6`
- vLLM 0.23: `execute_context_1(512)_generation_6(6)`, with a third number, Σq², in a downstream build
- vLLM 0.28, and SGLang builds for ROCm: `execute_518_context_1(sq512sk1024sqsq262144sqsk524288)_generation_6(sq6…)`
- SGLang 0.5.11: `step[EXTEND bs=1 toks=512]`, `step[DECODE bs=16]`; 0.5.20 may add `c_sq=512 c_sk=1024 … forward_id=7`
- graph capture of both: `capture_32_FULL`
- torch: `ProfilerStep#7`

Sources: vllm/v1/worker/gpu_worker.py; sglang/srt/model_executor/step_span_utils.py; torch/profiler/profiler.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Phase(str, Enum):
    """What an engine iteration does."""

    PREFILL = "prefill"
    DECODE = "decode"
    MIXED = "mixed"
    DRAFT = "draft"
    VERIFY = "verify"
    IDLE = "idle"
    CAPTURE = "capture"
    UNKNOWN = "unknown"


class Writer(str, Enum):
    """Whose loop a name marks; an engine's step is nearer to the work than the profiler's."""

    ENGINE = "engine"
    PROFILER = "profiler"


@dataclass(frozen=True, slots=True)
class Part:
    """The prefill half or the decode half of a step. None where the name does not say.

    Attributes:
        requests: in this half.
        tokens: scheduled for them in this step; Σq.
        context_tokens: keys that they attend to, the new ones included; Σkv.
        squared_tokens: Σq².
        attended_pairs: Σq·kv, to which attention work is proportional.
    """

    requests: int | None = None
    tokens: int | None = None
    context_tokens: int | None = None
    squared_tokens: int | None = None
    attended_pairs: int | None = None

    @property
    def reused_tokens(self) -> int | None:
        """Keys and values that were in the cache before the step: prefix hits and earlier chunks."""
        if self.context_tokens is None or self.tokens is None:
            return None
        return self.context_tokens - self.tokens


@dataclass(frozen=True, slots=True)
class StepName:
    """A step's name, read.

    Attributes:
        writer: engine or profiler.
        phase: of the whole step.
        prefill: requests without an output token yet.
        decode: the others.
    """

    writer: Writer
    phase: Phase
    prefill: Part = Part()
    decode: Part = Part()

    @property
    def requests(self) -> int | None:
        """In both halves; None where either is not known."""
        return _sum(self.prefill.requests, self.decode.requests)

    @property
    def tokens(self) -> int | None:
        """Scheduled in both halves; None where either is not known."""
        return _sum(self.prefill.tokens, self.decode.tokens)

    @property
    def is_speculative(self) -> bool:
        """More tokens than requests are decoded: drafts are being verified."""
        requests, tokens = self.decode.requests, self.decode.tokens
        return requests is not None and tokens is not None and tokens > requests


_NEW_CACHED = re.compile(r"^execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)$")
_CONTEXT = re.compile(
    r"^execute_context_(?P<c_req>\d+)\((?P<c_sq>\d+)(?:_(?P<c_sqsq>\d+))?\)"
    r"_generation_(?P<g_req>\d+)\((?P<g_sq>\d+)(?:_(?P<g_sqsq>\d+))?\)$"
)
_DETAILED = re.compile(
    r"^execute_(?P<tok>\d+)_context_(?P<c_req>\d+)"
    r"\(sq(?P<c_sq>\d+)sk(?P<c_sk>\d+)sqsq(?P<c_sqsq>\d+)(?:sqsk(?P<c_sqsk>\d+))?\)"
    r"_generation_(?P<g_req>\d+)\(sq(?P<g_sq>\d+)sk(?P<g_sk>\d+)sqsq(?P<g_sqsq>\d+)(?:sqsk(?P<g_sqsk>\d+))?\)$"
)
_SGLANG = re.compile(r"^step\[(?P<stage>[A-Z_0-9]+) bs=(?P<bs>\d+)(?: toks=(?P<toks>\d+))?(?P<rest>[^\]]*)\]$")
_SGLANG_REST = re.compile(r"\b(?P<key>[cg](?:_(?:sqsq|sqsk|sq|sk))?)=(?P<value>\d+)")
_CAPTURE = re.compile(r"^capture_(?P<tok>\d+)_(?P<mode>[A-Z_]+)$")
_PROFILER = re.compile(r"^ProfilerStep#\d+$")

_NOTHING = Part(0, 0, 0, 0, 0)
_STAGES = {
    "EXTEND": Phase.PREFILL,
    "SPLIT_PREFILL": Phase.PREFILL,
    "DECODE": Phase.DECODE,
    "MIXED": Phase.MIXED,
    "IDLE": Phase.IDLE,
    # Requests whose KV came from a prefill instance: nothing is computed for them yet.
    "PREBUILT": Phase.IDLE,
    "VERIFY": Phase.VERIFY,
    "TARGET_VERIFY": Phase.VERIFY,
    "DRAFT": Phase.DRAFT,
    "DRAFT_EXTEND": Phase.DRAFT,
    "DRAFT_EXTEND_V2": Phase.DRAFT,
}


def read_step_name(name: str) -> StepName | None:
    """What a name says of its step; None where it does not mark a step."""
    if _PROFILER.match(name):
        return StepName(Writer.PROFILER, Phase.UNKNOWN)
    if capture := _CAPTURE.match(name):
        return StepName(Writer.ENGINE, Phase.CAPTURE, decode=Part(tokens=int(capture["tok"])))
    if counted := _DETAILED.match(name) or _CONTEXT.match(name):
        return _vllm(counted.groupdict())
    if started := _NEW_CACHED.match(name):
        new, cached = int(started["new"]), int(started["cached"])
        return StepName(Writer.ENGINE, _phase(new, cached), Part(new), Part(cached))
    if step := _SGLANG.match(name):
        return _sglang(step)
    return None


def _vllm(fields: dict[str, str | None]) -> StepName:
    prefill, decode = (_part(fields, half) for half in "cg")
    return StepName(Writer.ENGINE, _phase(prefill.requests or 0, decode.requests or 0), prefill, decode)


def _sglang(step: re.Match[str]) -> StepName:
    fields: dict[str, str | None] = {"bs": step["bs"], "toks": step["toks"]}
    for extra in _SGLANG_REST.finditer(step["rest"]):
        key = extra["key"]
        fields[f"{key}_req" if key in {"c", "g"} else key] = extra["value"]
    phase = _STAGES.get(step["stage"], Phase.UNKNOWN)
    batch, tokens = int(step["bs"]), _number(step["toks"])
    if phase is Phase.IDLE:
        return StepName(Writer.ENGINE, phase, _NOTHING, _NOTHING)
    if phase is Phase.MIXED:
        return StepName(Writer.ENGINE, phase, *_mixed(_part(fields, "c"), _part(fields, "g"), tokens))
    if phase is Phase.PREFILL:
        return StepName(Writer.ENGINE, phase, _filled(_part(fields, "c"), batch, tokens), _NOTHING)
    if phase is Phase.DECODE:
        return StepName(Writer.ENGINE, phase, _NOTHING, _filled(_part(fields, "g"), batch, tokens or batch))
    return StepName(Writer.ENGINE, phase, _NOTHING, _filled(_part(fields, "g"), batch, tokens))


def _mixed(prefill: Part, decode: Part, tokens: int | None) -> tuple[Part, Part]:
    """Both halves of a mixed step; a request that decodes takes one token."""
    decode = _filled(decode, decode.requests, decode.requests)
    left = None if tokens is None or decode.tokens is None else tokens - decode.tokens
    return _filled(prefill, prefill.requests, left), decode


def _part(fields: dict[str, str | None], half: str) -> Part:
    columns = ("req", "sq", "sk", "sqsq", "sqsk")
    return Part(*(_number(fields.get(f"{half}_{column}")) for column in columns))


def _filled(part: Part, requests: int | None, tokens: int | None) -> Part:
    """The part with what it lacks taken from the step's own batch and token count."""
    return Part(
        requests if part.requests is None else part.requests,
        tokens if part.tokens is None else part.tokens,
        part.context_tokens,
        part.squared_tokens,
        part.attended_pairs,
    )


def _phase(prefilling: int, decoding: int) -> Phase:
    if prefilling and decoding:
        return Phase.MIXED
    if prefilling:
        return Phase.PREFILL
    return Phase.DECODE if decoding else Phase.IDLE


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
