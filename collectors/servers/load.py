"""A load on a serving engine: the same token-id prompts for the same seed, streamed answers, a time for each token.

Times are taken at the client, so they hold the network and the server's queue.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import httpx
import numpy as np

from analyzer.errors import ShardscopeError
from collectors.servers.http import Access, fault, said

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}


class Chunk(NamedTuple):
    """One event of a streamed answer: whether it brought tokens, and the counts it told (None where it did not)."""

    is_output: bool
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """Times and counts of one request.

    Attributes:
        index: of its prompt.
        worker: name of the server, "" where there is one.
        sent_ns: when it was sent, since the epoch.
        first_token_ns: from sending to the first token; None where none came.
        gaps_ns: between events that brought tokens. An event may bring several tokens.
        total_ns: from sending to the end.
        prompt_tokens, cached_tokens, output_tokens: as the server counts; None where it does not say.
        fault: why it failed, "" where it did not.
    """

    index: int
    worker: str
    sent_ns: int
    first_token_ns: int | None
    gaps_ns: tuple[int, ...]
    total_ns: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    fault: str = ""


Send = Callable[[httpx.AsyncClient, int, list[int]], Awaitable[TimedAnswer]]


def run(
    prompts: Sequence[list[int]],
    send: Send,
    *,
    concurrency: int,
    access: Access,
    on_answer: Callable[[TimedAnswer], None] = lambda _: None,
) -> list[TimedAnswer]:
    """Answers to all prompts, in order of the prompts.

    Args:
        prompts: token ids of each.
        send: how one prompt becomes one answer.
        concurrency: requests under way at any time.
        access: to the servers.
        on_answer: called as each answer is complete.

    Raises:
        ShardscopeError: the server cannot be reached, or no request succeeded.
    """
    return asyncio.run(_run(prompts, send, concurrency, access, on_answer))


async def _run(
    prompts: Sequence[list[int]],
    send: Send,
    concurrency: int,
    access: Access,
    on_answer: Callable[[TimedAnswer], None],
) -> list[TimedAnswer]:
    answers: dict[int, TimedAnswer] = {}
    todo = iter(enumerate(prompts))
    async with access.async_client(2 * concurrency) as client:

        async def one_after_another() -> None:
            for index, prompt in todo:
                answers[index] = await send(client, index, prompt)
                on_answer(answers[index])

        workers = [asyncio.create_task(one_after_another()) for _ in range(min(concurrency, len(prompts)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    ordered = [answers[index] for index in sorted(answers)]
    if ordered and all(answer.fault for answer in ordered):
        raise ShardscopeError(f"all {len(ordered)} requests failed; the first: {ordered[0].fault}")
    return ordered


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go: the name of the server for the record, the URL, and what one event of this engine says."""

    worker: str
    url: str
    read: Callable[[dict[str, Any]], Chunk]


async def stream(client: httpx.AsyncClient, index: int, target: Target, body: Mapping[str, Any]) -> TimedAnswer:
    """The answer to one request whose events are read as they come.

    Args:
        client: of this load.
        index: of the prompt.
        target: where it goes.
        body: of the request.

    Raises:
        ShardscopeError: the server cannot be reached.
    """
    sent_ns, start_ns = time.time_ns(), time.perf_counter_ns()
    token_ns: list[int] = []
    counts: dict[str, int] = {}
    trouble = ""
    try:
        async with client.stream("POST", target.url, json=body) as response:
            if response.is_error:
                await response.aread()
                trouble = f"{target.url} answers {response.status_code}: {said(response)}"
            else:
                async for line in response.aiter_lines():
                    if event := _event(line):
                        now_ns = time.perf_counter_ns()
                        chunk = target.read(event)
                        token_ns += [now_ns] * chunk.is_output
                        counts |= {name: count for name, count in chunk._asdict().items() if count is not None}
                        trouble = trouble or _error(event)
    except httpx.ConnectError as error:
        raise fault(error, target.url) from error
    except httpx.HTTPError as error:
        trouble = str(fault(error, target.url))
    counts.pop("is_output", None)
    if not token_ns and not trouble:
        trouble = f"{target.url} ended the answer without a token"
    return TimedAnswer(
        index=index,
        worker=target.worker,
        sent_ns=sent_ns,
        first_token_ns=token_ns[0] - start_ns if token_ns else None,
        gaps_ns=tuple(later - earlier for earlier, later in pairwise(token_ns)),
        total_ns=time.perf_counter_ns() - start_ns,
        fault=trouble,
        **counts,
    )


def _event(line: str) -> dict[str, Any]:
    """The JSON object of a server-sent event; empty for other lines and for the closing `[DONE]`."""
    if not line.startswith("data:") or line.endswith("[DONE]"):
        return {}
    event = json.loads(line.removeprefix("data:"))
    return event if isinstance(event, dict) else {}


def _error(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    return str(error.get("message", error) if isinstance(error, dict) else error) if error else ""


def summary(answers: Sequence[TimedAnswer]) -> dict[str, object]:
    """Quantiles and totals of one turn, times in ns; requests that failed are counted and left out of the times."""
    done = [answer for answer in answers if not answer.fault]
    first = [answer.first_token_ns for answer in done if answer.first_token_ns is not None]
    gaps = [gap for answer in done for gap in answer.gaps_ns]
    spans = [(answer.sent_ns, answer.sent_ns + answer.total_ns) for answer in done]
    duration_ns = max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0
    output_tokens = sum(answer.output_tokens or 0 for answer in done)
    return {
        "requests": len(done),
        "failed": len(answers) - len(done),
        "duration_ns": duration_ns,
        "ttft_ns": quantiles(first),
        "itl_ns": quantiles(gaps),
        "tpot_ns": quantiles(list(_per_token(done))),
        "request_ns": quantiles([answer.total_ns for answer in done]),
        "output_tokens": output_tokens,
        "output_tokens_per_s": round(output_tokens / duration_ns * 1e9, 3) if duration_ns else None,
    }


def _per_token(answers: Sequence[TimedAnswer]) -> Iterator[int]:
    """Time of each output token after the first, request by request."""
    for answer in answers:
        if answer.first_token_ns is not None and (answer.output_tokens or 0) > 1:
            yield sum(answer.gaps_ns) // ((answer.output_tokens or 0) - 1)


def quantiles(times_ns: Sequence[int]) -> dict[str, int]:
    """Median and tails, linearly interpolated; empty where there is nothing."""
    if not times_ns:
        return {}
    values = np.quantile(np.asarray(times_ns, dtype=np.int64), list(QUANTILES.values()))
    return {name: round(value) for name, value in zip(QUANTILES, values.tolist(), strict=True)}


def paces_ns(answers: Sequence[TimedAnswer], concurrency: int, tokens: int) -> list[float]:
    """Mean time between tokens over the first `tokens` gaps of each of the requests sent first; those that have any.

    Under a profile of N engine steps the first N/2 tokens of these requests come from profiled steps, and before the
    server stops to write its traces; so the same figure without the profiler tells what it costs. Time to the first
    token is left out: it holds the queue and prefill, which no two loads share.
    """
    return [
        sum(answer.gaps_ns[:tokens]) / len(answer.gaps_ns[:tokens])
        for answer in answers
        if answer.index < concurrency and answer.gaps_ns[:tokens] and not answer.fault
    ]


def records(answers: Sequence[TimedAnswer], prompts: Sequence[list[int]]) -> Iterator[str]:
    """A line of JSON for each request, as a request log for `shardscope routing` holds it."""
    for answer in sorted(answers, key=lambda answer: answer.sent_ns):
        stated = {name: value for name, value in asdict(answer).items() if value not in (None, "", ())}
        yield json.dumps({"timestamp": answer.sent_ns, **stated, "prompt_token_ids": prompts[answer.index]})
