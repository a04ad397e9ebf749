"""What every serving engine has: endpoints with roles, facts about itself, a profiler to start and to stop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from analyzer.errors import UsageError
from collectors.servers.http import Http
from collectors.servers.load import Send

ROLES = ("prefill", "decode")

_NAMED_URL = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)=(?P<url>.+)")
_SECRET = re.compile(r"(?:^|_)(?:api_?key|key|token|secret|passwd|password|credentials?|auth)(?:_|$)", re.IGNORECASE)
_SECRET_FLAG = re.compile(r"--(?:[\w-]+-)?(?:key|token|secret|password)(?:-[\w-]+)?")
_SECRET_ARGUMENT = re.compile(rf"({_SECRET_FLAG.pattern}[= ])\S+")
_PASSWORD_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server.

    Attributes:
        name: as the user gave it, `server0`, … where there are several without names, "" where there is one.
        role: `prefill`, `decode` or "".
        url: without a path.
    """

    name: str
    role: str
    url: str


@dataclass(slots=True)
class Identity:
    """What a server tells about itself.

    Attributes:
        versions: of the engine and its libraries.
        model: dimensions, by their names in a Hugging Face config.
        layout: degrees of the axes that it tells.
        settings: what else bears on the result.
        profiler: how its profiler is set up.
        info: everything it told, without secrets.
        info_file: name of the file `info` is written to.
        model_name: for requests.
        model_path: folder or name of the model.
        max_tokens: of prompt and answer together, None where it does not say.
        trace_dir: where it writes, "" where it does not say.
        ranks: number of worker processes, each of which writes a trace; None where unknown.
        is_one_host: whether it says that all of them are on one host.
    """

    versions: dict[str, str] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    profiler: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    info_file: str = ""
    model_name: str = ""
    model_path: str = ""
    max_tokens: int | None = None
    trace_dir: str = ""
    ranks: int | None = None
    is_one_host: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be profiled.

    Attributes:
        steps: engine steps to record, 0 for as long as the load takes.
        skip_steps: engine steps to let pass before.
        by_stage: record prefill and decode apart, where the engine can.
        with_stack: record Python frames, where the request may choose.
        trace_dir: directory to ask the server to write to, where the request may choose.
    """

    steps: int
    skip_steps: int
    by_stage: bool = False
    with_stack: bool = False
    trace_dir: str = ""


class Engine(Protocol):
    """A kind of server.

    Attributes:
        name: as in `run.json`.
        asks_for_folder: whether each profile may go to a directory of its own.
    """

    name: str
    asks_for_folder: bool

    def identify(self, http: Http, endpoint: Endpoint) -> Identity:
        """Facts about one server.

        Raises:
            ShardscopeError: it is not this engine, or its profiler is off; with the cure.
        """

    def start(self, http: Http, endpoint: Endpoint, identity: Identity, plan: Plan) -> None:
        """Start the profiler; what was asked of it goes into `identity.profiler`."""

    def stop(self, http: Http, endpoint: Endpoint, identity: Identity) -> None:
        """Stop the profiler; returns when the server says that it has written, or at once where it does not."""

    def sender(self, servers: Mapping[Endpoint, Identity], router: str, output_tokens: int) -> Send:
        """How one prompt is sent: to the router, to servers in turn, or to a prefill and a decode server."""


def endpoints(urls: tuple[str, ...]) -> tuple[Endpoint, ...]:
    """Servers from `URL` or `NAME=URL`; a name that begins with a role has it.

    Raises:
        UsageError: not a URL, a name given twice, or prefill without decode.
    """
    named_endpoints: list[Endpoint] = []
    for index, text in enumerate(urls):
        named = _NAMED_URL.fullmatch(text)
        name = named["name"] if named else "" if len(urls) == 1 else f"server{index}"
        role = next((role for role in ROLES if name.startswith(role)), "")
        named_endpoints.append(Endpoint(name, role, address(named["url"] if named else text)))
    if len({endpoint.name for endpoint in named_endpoints}) < len(named_endpoints):
        raise UsageError("two --url have one name; give each its own, for example --url decode0=… --url decode1=…")
    roles = {endpoint.role for endpoint in named_endpoints}
    if len(roles & set(ROLES)) == 1:
        raise UsageError(f"--url for {', '.join(roles)} alone; prefill and decode servers are profiled together")
    if len(roles) > 1 and "" in roles:
        raise UsageError("some --url are prefill or decode servers and some are neither; name all or none")
    return tuple(named_endpoints)


def address(url: str) -> str:
    """Scheme, host and port of a URL; a path such as `/v1` is dropped.

    Raises:
        UsageError: it is not an HTTP URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{without_password(url)}: not a URL of a server; expected for example http://127.0.0.1:8000")
    return f"{parts.scheme}://{parts.netloc}"


def by_name(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Values by server name from `VALUE` or `NAME=VALUE`; a value without a name is for the one server.

    Raises:
        UsageError: a name is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if name in values:
            raise UsageError(f"{option} {text}: given twice for {name or 'the same server'}")
        values[name] = value
    return values


def without_secrets(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """The same JSON with the text of keys, tokens and passwords replaced, and passwords cut from URLs."""
    if isinstance(value, dict):
        return {
            name: "withheld"
            if _SECRET.search(str(name)) and entry and isinstance(entry, str)
            else without_secrets(entry)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        flags = ["", *value][: len(value)]
        return [
            "withheld" if isinstance(flag, str) and _SECRET_FLAG.fullmatch(flag) else without_secrets(entry)
            for flag, entry in zip(flags, value, strict=True)
        ]
    return _SECRET_ARGUMENT.sub(r"\1withheld", without_password(value)) if isinstance(value, str) else value


def without_password(text: str) -> str:
    """The text with user name and password cut from URLs."""
    return _PASSWORD_IN_URL.sub("", text)
