"""What one policy made of a request log, and what the log says was really made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model.events import ABSENT
from analyzer.routing.paths import Paths
from analyzer.routing.replay import Replay, Work
from analyzer.routing.request_log import RequestLog
from analyzer.routing.service import Service
from analyzer.schema.finding import Basis
from analyzer.stats.arrays import Integers

_TAIL_PERCENT = 99


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """Reuse and balance under one policy.

    Attributes:
        policy: its name, or `achieved`.
        basis: of the hit rate; times are always of the service model.
        hit_rate: blocks found over blocks asked for; tokens over tokens where the log itself tells them.
        recomputed_tokens: prefilled again although some worker had prefilled them before.
        recompute_time_ns: prefill time of those.
        balance: busy time of the busiest worker over the mean of all; 1 is even; None where workers are unknown.
        busiest_share: requests of the worker with the most of them over all requests.
        requests: of each worker.
        busy_ns: of each worker.
        ttft_p50_ns: median of wait plus prefill; None where it is not replayed.
        ttft_p99_ns: 99th percentile of the same.
    """

    policy: str
    basis: Basis
    hit_rate: float
    recomputed_tokens: int
    recompute_time_ns: int
    balance: float | None = None
    busiest_share: float | None = None
    requests: tuple[int, ...] = ()
    busy_ns: tuple[int, ...] = ()
    ttft_p50_ns: int | None = None
    ttft_p99_ns: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What the replays of a log share.

    Attributes:
        work: paths and costs of the requests.
        service: the model of time.
        prompt_tokens: int64[n], as logged, else the tokens of the blocks.
        blocks: asked for, over all requests.
        block_tokens: tokens of a block.
    """

    work: Work
    service: Service
    prompt_tokens: Integers
    blocks: int
    block_tokens: int

    @classmethod
    def of(cls, log: RequestLog, paths: Paths, service: Service) -> Case:
        """The log with its costs under a model of time."""
        of_blocks = log.block_count * log.block_tokens
        prompt = np.where(log.input_tokens == ABSENT, of_blocks, log.input_tokens)
        work = Work(
            paths=paths,
            arrival_ns=log.arrival_ns,
            whole_ns=service.prefill_ns(prompt),
            saved_ns=service.prefill_ns(np.arange(int(log.block_count.max()) + 1) * log.block_tokens),
            decode_ns=service.decode_ns(np.maximum(log.output_tokens, 0)),
        )
        return cls(work, service, prompt, int(log.block.size), log.block_tokens)

    def tokens(self, blocks: Integers) -> Integers:
        """int64[n]: tokens in the first blocks of each prompt, the last of which may be partly filled."""
        return np.minimum(blocks * self.block_tokens, self.prompt_tokens)


def outcome(case: Case, policy: str, basis: Basis, workers: int, replay: Replay) -> PolicyOutcome:
    """The figures of a replay over so many workers."""
    hit = case.tokens(replay.hit_blocks)
    prefill_ns = case.work.whole_ns - case.service.prefill_ns(hit)
    seen = case.tokens(case.work.paths.seen)
    ttft_ns = np.percentile(replay.wait_ns + prefill_ns, (50, _TAIL_PERCENT))
    requests, busy_ns = _loads(replay.worker, prefill_ns + case.work.decode_ns, workers)
    return PolicyOutcome(
        policy=policy,
        basis=basis,
        hit_rate=int(replay.hit_blocks.sum()) / case.blocks,
        recomputed_tokens=int((seen - hit).sum()),
        recompute_time_ns=int((case.service.prefill_ns(seen) - case.service.prefill_ns(hit)).sum()),
        balance=_over_mean(busy_ns),
        busiest_share=max(requests) / sum(requests),
        requests=requests,
        busy_ns=busy_ns,
        ttft_p50_ns=int(ttft_ns[0]),
        ttft_p99_ns=int(ttft_ns[1]),
    )


def measured(case: Case, log: RequestLog) -> PolicyOutcome | None:
    """What the engines found in their caches, from the requests that say so; None where none does.

    Where every request also names its worker, with the balance between workers.
    """
    is_stated = log.cached_tokens != ABSENT
    asked = int(case.prompt_tokens[is_stated].sum())
    if asked == 0:
        return None
    cached = np.where(is_stated, log.cached_tokens, 0)
    again = np.where(is_stated, np.maximum(case.tokens(case.work.paths.seen), cached), 0)
    again_ns = case.service.prefill_ns(again) - case.service.prefill_ns(cached)
    requests: tuple[int, ...] = ()
    busy_ns: tuple[int, ...] = ()
    if log.workers and is_stated.all() and (log.worker != ABSENT).all():
        held_ns = case.work.whole_ns - case.service.prefill_ns(cached) + case.work.decode_ns
        requests, busy_ns = _loads(log.worker, held_ns, len(log.workers))
    return PolicyOutcome(
        policy="achieved",
        basis=Basis.MEASURED,
        hit_rate=int(cached.sum()) / asked,
        recomputed_tokens=int((again - cached).sum()),
        recompute_time_ns=int(again_ns.sum()),
        balance=_over_mean(busy_ns) if busy_ns else None,
        busiest_share=max(requests) / sum(requests) if requests else None,
        requests=requests,
        busy_ns=busy_ns,
    )


def _loads(worker: Integers, held_ns: Integers, workers: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    busy_ns = np.zeros(workers, np.int64)
    np.add.at(busy_ns, worker, held_ns)
    return tuple(np.bincount(worker, minlength=workers).tolist()), tuple(busy_ns.tolist())


def _over_mean(busy_ns: tuple[int, ...]) -> float:
    total = sum(busy_ns)
    return max(busy_ns) * len(busy_ns) / total if total else 1.0
