"""How long a request holds its worker: a model, whose three figures can be given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.stats.arrays import Integers


@dataclass(frozen=True, slots=True)
class Service:
    """Prefill of x tokens takes a1·x + a2·x²; behind a cached prefix, the whole prompt's less the prefix's.

    The defaults are those of gpt-oss-120b on one H200. a1 and a2 go through 510 ms for 16,384 tokens and 1,988 ms for
    49,152 (llm-d on peer-to-peer KV sharing); 2,048 tokens, measured at 78 ms, come out 29 % short. Decode is 1,479
    generated tokens a second at 64 requests of 8,192 + 1,024 tokens (vLLM 0.18, InferenceX) less that prefill. It is
    a share of a full batch: where 64 requests decode at once, here one follows the other, 64 times as fast.

    Attributes:
        prefill_ns_per_token: a1.
        prefill_ns_per_token2: a2, for attention.
        decode_ns_per_token: of a generated token.
    """

    prefill_ns_per_token: float = 26_500.0
    prefill_ns_per_token2: float = 0.284
    decode_ns_per_token: float = 446_000.0

    def prefill_ns(self, tokens: Integers) -> Integers:
        """int64[n]: prefill of the first so many tokens of a prompt."""
        count = tokens.astype(np.float64)
        linear = self.prefill_ns_per_token + self.prefill_ns_per_token2 * count
        return np.rint(linear * count).astype(np.int64)

    def decode_ns(self, tokens: Integers) -> Integers:
        """int64[n]: decode of so many generated tokens."""
        return np.rint(self.decode_ns_per_token * tokens.astype(np.float64)).astype(np.int64)
