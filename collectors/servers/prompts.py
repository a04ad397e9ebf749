"""What a load sends: prompts of token ids, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Token ids that every tokenizer has and none gives a meaning to the engine: the first ones may be special.
FIRST_TOKEN, SAFE_TOKENS = 10, 500


@dataclass(frozen=True, slots=True)
class RequestLoad:
    """What is sent.

    Attributes:
        requests: number of requests.
        concurrency: requests under way at any time.
        input_tokens: of each prompt.
        output_tokens: generated for each prompt.
        shared_prefix: share of each prompt that all prompts have in common, 0 to 1.
        seed: of the token ids.
        tokens: ids are drawn from FIRST_TOKEN up to this one.
    """

    requests: int
    concurrency: int
    input_tokens: int
    output_tokens: int
    shared_prefix: float = 0.0
    seed: int = 0
    tokens: int = SAFE_TOKENS

    def prompts(self, turn: str) -> list[list[int]]:
        """Prompts of one turn. Turns share no prefix, so that none finds the other's in the cache."""
        draw = random.Random(f"{self.seed}/{turn}")  # noqa: S311 -- token ids, no secret
        shared = [
            draw.randrange(FIRST_TOKEN, self.tokens) for _ in range(round(self.shared_prefix * self.input_tokens))
        ]
        own_tokens = self.input_tokens - len(shared)
        return [
            [*shared, *(draw.randrange(FIRST_TOKEN, self.tokens) for _ in range(own_tokens))]
            for _ in range(self.requests)
        ]


def load_of(options: Mapping[str, Any]) -> RequestLoad:
    """The load that the options of a collection describe."""
    return RequestLoad(
        requests=options["requests"],
        concurrency=options["concurrency"],
        input_tokens=options["input_len"],
        output_tokens=options["output_len"],
        shared_prefix=options["shared_prefix"],
        seed=options["seed"],
    )
