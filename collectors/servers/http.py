"""The one door to HTTP: endpoints of serving engines, and every fault of the network as one line with its cure.

Needs httpx (extra `collect`): import this module inside functions.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from analyzer.errors import ShardscopeError

CONNECT_TIMEOUT_S = 10  # a server that is up accepts at once; a wrong address may never answer
NOT_FOUND = 404
UNAUTHORIZED = (401, 403)
_SHOWN_CHARACTERS = 200  # of a server's own error text


@dataclass(frozen=True, slots=True)
class Access:
    """How servers are spoken to.

    Attributes:
        api_key: sent as a bearer token where given; never recorded.
        timeout_s: for an answer, or between two events of a streamed one.
        tls: certificates that are trusted; loading them takes longer than a request.
    """

    api_key: str
    timeout_s: float
    tls: ssl.SSLContext = field(default_factory=httpx.create_ssl_context)

    def client(self) -> httpx.Client:
        """A client for one request after another."""
        return httpx.Client(headers=self._headers(), timeout=self._timeout(), verify=self.tls)

    def async_client(self, connections: int) -> httpx.AsyncClient:
        """A client for many requests at once, of which `connections` stay open in between."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=connections)
        return httpx.AsyncClient(headers=self._headers(), timeout=self._timeout(), verify=self.tls, limits=limits)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    def _timeout(self) -> httpx.Timeout:
        return httpx.Timeout(self.timeout_s, connect=CONNECT_TIMEOUT_S)


class Http:
    """Requests to serving engines, one after another."""

    def __init__(self, access: Access) -> None:
        self._client = access.client()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, url: str) -> httpx.Response:
        """The answer, whatever its status.

        Raises:
            ShardscopeError: no answer.
        """
        return self._ask("GET", url, None)

    def post(self, url: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """The answer, whatever its status.

        Raises:
            ShardscopeError: no answer.
        """
        return self._ask("POST", url, body)

    def document(self, url: str) -> dict[str, Any] | None:
        """The JSON object at a URL; None where the server has no such page.

        Raises:
            ShardscopeError: no answer, an error, or an answer that is no JSON object.
        """
        answer = self.get(url)
        if answer.status_code == NOT_FOUND:
            return None
        check(answer)
        try:
            document = answer.json()
        except ValueError as error:
            raise ShardscopeError(
                f"{url} answers with text that is no JSON; is this the engine's own address?"
            ) from error
        if not isinstance(document, dict):
            raise ShardscopeError(f"{url} answers with {type(document).__name__}, expected a JSON object")
        return document

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> httpx.Response:
        try:
            return self._client.request(method, url, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise fault(error, url) from error


def fault(error: httpx.HTTPError | httpx.InvalidURL, url: str) -> ShardscopeError:
    """What went wrong on the way to a server, and what to look at."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ShardscopeError(f"{url}: cannot connect ({error}); is the server up, and is this its address?")
    if isinstance(error, httpx.TimeoutException):
        return ShardscopeError(f"{url}: no answer in time; look at the server's log, or raise --timeout")
    return ShardscopeError(f"{url}: the server went away ({error}); look at its log")


def check(answer: httpx.Response) -> None:
    """Nothing where the server agreed.

    Raises:
        ShardscopeError: it did not; with what it said.
    """
    url, status = answer.request.url, answer.status_code
    if status in UNAUTHORIZED:
        raise ShardscopeError(f"{url} answers {status}: it wants an API key; pass --api-key-env VARIABLE")
    if status >= httpx.codes.BAD_REQUEST:
        raise ShardscopeError(f"{url} answers {status}: {said(answer)}")


def said(answer: httpx.Response) -> str:
    """The server's own error text, shortened to one line."""
    words = " ".join(answer.text.split())
    return words[:_SHOWN_CHARACTERS] or "no text"
