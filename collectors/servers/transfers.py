"""KV transfers between a prefill and a decode server, one by one: metrics looked at after each request."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from collectors.servers import metrics
from collectors.servers.load import Send, TimedAnswer


@dataclass(slots=True)
class Watch:
    """Pages of metrics of one server, taken while a load runs.

    Attributes:
        url: of the metrics.
        pages: time (ns since the epoch) and text.
    """

    url: str
    pages: list[tuple[int, str]] = field(default_factory=list)

    async def look(self, client: httpx.AsyncClient) -> None:
        """Take a page; a server that does not answer is noticed by the load itself."""
        try:
            answer = await client.get(self.url)
        except httpx.HTTPError:
            return
        if answer.is_success:
            self.pages.append((time.time_ns(), answer.text))

    def transfers(self, before: metrics.Scrape) -> list[dict[str, int]]:
        """What was transferred from page to page: `at_ns` (epoch), `transfers`, `bytes`, `time_ns`.

        With one request under way at a time each entry is one transfer; with more, requests that end together share
        an entry.
        """
        entries = []
        for at_ns, text in self.pages:
            now = metrics.scrape(text)
            if moved := metrics.transfers(metrics.change(before, now)):
                entries.append({"at_ns": at_ns, **moved})
            before = now
        return entries


def watched(send: Send, watches: Sequence[Watch]) -> Send:
    """Send, then look at the metrics of the servers; no time of the answer holds the look."""

    async def send_and_look(client: httpx.AsyncClient, index: int, prompt: list[int]) -> TimedAnswer:
        answer = await send(client, index, prompt)
        for watch in watches:
            await watch.look(client)
        return answer

    return send_and_look
