"""Request logs for the routing tests; run as a script it draws `sample_traces/routing_sessions.jsonl` again.

In the sample one tenant asks for the same 30 blocks every 250 ms, more than one worker can decode, and 12 users chat.
It was served in turn by three workers, as a round-robin router would.
"""

import json
import tempfile
from itertools import count
from pathlib import Path

from analyzer.routing.policies import POLICIES, ReplaySetup
from analyzer.routing.request_log import load
from analyzer.routing.routing import routing
from analyzer.routing.service import Service

# A prompt token takes 10 ns, a generated one 100 ns: figures that can be added by hand.
PLAIN = Service(prefill_ns_per_token=10, prefill_ns_per_token2=0, decode_ns_per_token=100)


def log_of(requests, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.jsonl"
        path.write_text("\n".join(map(json.dumps, requests)), encoding="utf-8")
        return load(path, **options)


def asked(*prompts, step_ms=1000, **fields):
    return [{"timestamp": at * step_ms, "hash_ids": list(blocks), **fields} for at, blocks in enumerate(prompts)]


def outcomes(requests, workers, capacity=None, service=PLAIN, block_tokens=1, policies=tuple(POLICIES)):
    found = routing(log_of(requests, block_tokens=block_tokens), ReplaySetup(workers, capacity, policies, service))
    return {each.policy: each for each in found.outcomes}


def hit_rates(*arguments, **options):
    return {name: each.hit_rate for name, each in outcomes(*arguments, **options).items()}


def cpu_recipe():
    """The requests of the router comparison on CPU: 5 sessions of 4 turns, 192 + 32·turn tokens, blocks of 32."""
    return [
        {
            "timestamp": 1000 * (5 * turn + session),
            "input_length": 192 + 32 * turn,
            "output_length": 4,
            "hash_ids": [100 * session + block for block in range(6 + turn)],
            "session_id": f"s{session}",
        }
        for turn in range(4)
        for session in range(5)
    ]


SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces" / "routing_sessions.jsonl"
WORKERS = 3


def sample_requests():
    ids = count()
    document = [next(ids) for _ in range(30)]
    drawn = [(250 * turn, "tenant", [*document, next(ids)], 700) for turn in range(60)]
    system = [next(ids) for _ in range(2)]
    for user in range(12):
        prompt = list(system)
        for turn in range(5):
            prompt += [next(ids) for _ in range(3)]
            drawn.append((100 + 2_300 * user + 4_100 * turn, f"user-{user}", list(prompt), 150))
    drawn.sort(key=lambda request: request[0])
    return drawn


def sample_text():
    lines = []
    for at, (arrival_ms, session, blocks, output) in enumerate(sample_requests()):
        request = {
            "timestamp": arrival_ms,
            "input_length": 512 * len(blocks),
            "output_length": output,
            "hash_ids": blocks,
            "session_id": session,
            "worker": f"w{at % WORKERS}",
        }
        lines.append(json.dumps(request, separators=(",", ":")))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    SAMPLE.write_text(sample_text(), encoding="utf-8")
