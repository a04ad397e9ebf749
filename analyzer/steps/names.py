"""What engines write into the names of their steps: phase, requests, tokens, context.

Forms, by the version that first wrote them:

- vLLM 0.13: `execute_new_2_cached_6`
- vLLM 0.23: `execute_context_1(512)_generation_6(6)`, with a third number, Σq², in a downstream build
- vLLM 0.28, and SGLang builds for ROCm: `execute_518_context_1(sq512sk1024sqsq262144sqsk524288)_generation_6(sq6…)`
- SGLang 0.5.11: `step[EXTEND bs=1 toks=512]`, `step[DECODE bs=16]`; 0.5.20 may add `c_sq=512 c_sk=1024 … forward_id=7`
- ATOM: `prefill[bs=2 tok=14721 ctx=[7803, 6918] sqsq=… sqsk=… sk=…]`, `decode[bs=117/128 tok=117 d=117]`
- graph capture of all: `capture_32_FULL`, `capture_32_decode`
- torch: `ProfilerStep#7`

Sources: vllm/v1/worker/gpu_worker.py; sglang/srt/model_executor/step_span_utils.py; torch/profiler/profiler.py;
TraceLens, annotation references for vLLM, SGLang and ATOM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
class StepHalf:
    """The prefill half or the decode half of a step. None where the name does not say.

    Attributes:
        requests: in this half.
        tokens: scheduled for them in this step; Σq.
        context_tokens: keys that they attend to, the new ones included; Σkv.
    """

    requests: int | None = None
    tokens: int | None = None
    context_tokens: int | None = None

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
        requests: in both halves; None where the name does not say.
        tokens: scheduled in both halves; None where the name does not say.
        prefill: requests without an output token yet.
        decode: the others.
    """

    writer: Writer
    phase: Phase
    requests: int | None = None
    tokens: int | None = None
    prefill: StepHalf = StepHalf()
    decode: StepHalf = StepHalf()

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
_ATOM = re.compile(r"^(?P<stage>prefill|decode)\[bs=(?P<bs>\d+)(?:/\d+)? tok=(?P<tok>\d+)(?P<rest> .*)?\]$")
_ATOM_REST = re.compile(r"\b(?P<key>sqsq|sqsk|sk|p|d)=(?P<value>\d+)")
_CAPTURE = re.compile(r"^capture_(?P<tok>\d+)_(?P<mode>[A-Za-z_]+)$")
_PROFILER = re.compile(r"^ProfilerStep#\d+$")

_NOTHING = StepHalf(0, 0, 0)
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
        return StepName(Writer.ENGINE, Phase.CAPTURE, tokens=int(capture["tok"]))
    if counted := _DETAILED.match(name) or _CONTEXT.match(name):
        return _halves(_half(counted.groupdict(), "c"), _half(counted.groupdict(), "g"))
    if started := _NEW_CACHED.match(name):
        return _halves(StepHalf(int(started["new"])), StepHalf(int(started["cached"])))
    if step := _SGLANG.match(name):
        return _sglang(step)
    if step := _ATOM.match(name):
        return _atom(step)
    return None


def _halves(prefill: StepHalf, decode: StepHalf) -> StepName:
    """A step of which both halves are written out."""
    requests, tokens = _sum(prefill.requests, decode.requests), _sum(prefill.tokens, decode.tokens)
    return StepName(
        Writer.ENGINE, _phase(prefill.requests or 0, decode.requests or 0), requests, tokens, prefill, decode
    )


def _sglang(step: re.Match[str]) -> StepName:
    fields: dict[str, str | None] = {}
    for extra in _SGLANG_REST.finditer(step["rest"]):
        key = extra["key"]
        fields[f"{key}_req" if key in {"c", "g"} else key] = extra["value"]
    phase = _STAGES.get(step["stage"], Phase.UNKNOWN)
    requests, tokens = int(step["bs"]), _number(step["toks"])
    prefill, decode = _half(fields, "c"), _half(fields, "g")
    if phase is Phase.IDLE:
        return StepName(Writer.ENGINE, phase, 0, 0, _NOTHING, _NOTHING)
    if phase is Phase.MIXED:
        return StepName(
            Writer.ENGINE, phase, requests, _first(tokens, _sum(prefill.tokens, decode.tokens)), prefill, decode
        )
    if phase is Phase.PREFILL:
        prefill = replace(prefill, requests=requests, tokens=_first(prefill.tokens, tokens))
        return StepName(Writer.ENGINE, phase, requests, prefill.tokens, prefill, _NOTHING)
    if phase is Phase.DECODE:
        tokens = _first(tokens, requests)
    decode = replace(decode, requests=requests, tokens=_first(decode.tokens, tokens))
    return StepName(Writer.ENGINE, phase, requests, decode.tokens, _NOTHING, decode)


def _atom(step: re.Match[str]) -> StepName:
    rest = {extra["key"]: int(extra["value"]) for extra in _ATOM_REST.finditer(step["rest"] or "")}
    requests, tokens = int(step["bs"]), int(step["tok"])
    whole = StepHalf(requests, tokens, rest.get("sk"))
    if step["stage"] == "prefill":
        return StepName(Writer.ENGINE, Phase.PREFILL, requests, tokens, whole, _NOTHING)
    if not rest.get("p"):
        return StepName(Writer.ENGINE, Phase.DECODE, requests, tokens, _NOTHING, whole)
    # The sums of a mixed batch are those of both halves together: neither half's own is known.
    return StepName(Writer.ENGINE, Phase.MIXED, requests, tokens, StepHalf(rest["p"]), StepHalf(rest.get("d")))


def _half(fields: dict[str, str | None], half: str) -> StepHalf:
    columns = ("req", "sq", "sk")
    return StepHalf(*(_number(fields.get(f"{half}_{column}")) for column in columns))


def _phase(prefilling: int, decoding: int) -> Phase:
    if prefilling and decoding:
        return Phase.MIXED
    if prefilling:
        return Phase.PREFILL
    return Phase.DECODE if decoding else Phase.IDLE


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
