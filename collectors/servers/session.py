"""One collection from running servers: facts, an unprofiled load, a profiled load, files, run.json."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analyzer import units
from analyzer.errors import ShardscopeError, UsageError
from collectors.servers import load as _load
from collectors.servers import metrics, trace_files
from collectors.servers.engine import Endpoint, Engine, Identity, Plan
from collectors.servers.hf_config import config_of, dimensions
from collectors.servers.http import NOT_FOUND, Access, Http, check
from collectors.servers.load import TimedAnswer
from collectors.servers.prompts import RequestLoad
from collectors.servers.transfers import Watch, watched

log = logging.getLogger(__name__)

_ELSEWHERE = re.compile(r"[^/]+:")  # HOST:/path as scp writes it, or gs://bucket
_WARM_UP_TOKENS = 4  # enough for a prefill, a decode and the sampler
_AFTER_A_FAULT_S = 15.0  # for files to settle once a server is gone or the user broke off


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for.

    Attributes:
        endpoints: servers to profile.
        router: URL that takes the load, "" to send it to the servers.
        out: run directory.
        load: what is sent.
        plan: what is recorded.
        trace_dirs: where servers write, by name of the server; "" stands for the only one.
        layout: degrees that the user states.
        model: dimensions that the user states.
        access: to the servers; its time limit holds for traces to be written as well.
        with_reference: send the load without the profiler first.
        force: write into a directory that is not empty.
        command: for the record.
    """

    endpoints: tuple[Endpoint, ...]
    router: str
    out: Path
    load: RequestLoad
    plan: Plan
    trace_dirs: Mapping[str, str]
    layout: Mapping[str, int]
    model: Mapping[str, Any]
    access: Access
    with_reference: bool
    force: bool
    command: str


@dataclass(slots=True)
class Server:
    """One server during a collection.

    Attributes:
        endpoint, identity: who it is.
        out: its run directory.
        folder: where its traces can be seen from here, None where they cannot.
        before, after: its metrics around the profiled load.
        watch: its metrics during that load.
        files_before: what its folder held before.
        is_started: whether its profiler has been started.
        files: traces in the run directory.
        absent: what could not be had, and why.
    """

    endpoint: Endpoint
    identity: Identity
    out: Path
    folder: Path | None
    watch: Watch
    before: metrics.Scrape = field(default_factory=lambda: metrics.Scrape(""))
    after: metrics.Scrape = field(default_factory=lambda: metrics.Scrape(""))
    files_before: trace_files.Sizes = field(default_factory=dict)
    is_started: bool = False
    files: list[Path] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Turns:
    """The load, sent without and with the profiler.

    Attributes:
        load: as it was sent, token ids fitted to the models.
        reference, profiled: answers of each turn.
        prompts: of the profiled turn.
        fault: what ended the collection early, None where nothing did.
    """

    load: RequestLoad
    reference: list[TimedAnswer] = field(default_factory=list)
    profiled: list[TimedAnswer] = field(default_factory=list)
    prompts: list[list[int]] = field(default_factory=list)
    fault: BaseException | None = None


def record(engine: Engine, request: Request, tell: Callable[[str], None]) -> tuple[list[Server], Turns]:
    """Servers with their traces in the run directories, and the answers to the load.

    A fault during the profiled load is kept in the turns, so that what is there can be written first.

    Args:
        engine: kind of the servers.
        request: what the user asked for.
        tell: says to the user what happens now.

    Raises:
        ShardscopeError: a server cannot be reached, or cannot profile.
    """
    trace_files.prepare(request.out, force=request.force)
    with closing(Http(request.access)) as http:
        servers = [_server(engine, http, endpoint, request) for endpoint in request.endpoints]
        _tell_apart(servers)
        for server in servers:
            trace_files.prepare(server.out, force=True)
        turns = Turns(_fitted(request.load, servers))
        _warm_up(engine, servers, request, turns.load, tell)
        if request.with_reference:
            _send(engine, servers, request, turns, "reference", tell)
        for server in servers:
            server.before = _scrape(http, server)
            server.files_before = trace_files.sizes(server.folder) if server.folder else {}
        try:
            with _profiler(engine, http, servers, request, tell):
                _send(engine, servers, request, turns, "profiled", tell)
        except (KeyboardInterrupt, ShardscopeError) as fault:
            turns.fault = fault
        for server in servers:
            _finish(http, server, request, turns, tell)
    return servers, turns


def _server(engine: Engine, http: Http, endpoint: Endpoint, request: Request) -> Server:
    out = request.out / endpoint.name
    identity = engine.identify(http, endpoint)
    identity.model = {**(identity.model or dimensions(config_of(identity.model_path))), **request.model}
    identity.layout |= request.layout
    longest = request.load.input_tokens + request.load.output_tokens
    if identity.max_tokens and longest > identity.max_tokens:
        raise UsageError(
            f"--input-len and --output-len are {longest} tokens together; {endpoint.url} takes {identity.max_tokens}"
        )
    chosen = str(out.absolute()) if engine.asks_for_folder else ""
    identity.trace_dir = request.trace_dirs.get(endpoint.name) or identity.trace_dir or chosen
    if not identity.trace_dir:
        raise UsageError(
            f"{endpoint.url} does not say where it writes traces; pass that directory as --trace-dir "
            f"{endpoint.name + '=' if endpoint.name else ''}DIR, or HOST:DIR where it is not on this machine"
        )
    is_remote = _ELSEWHERE.match(identity.trace_dir)
    watch = Watch(f"{endpoint.url}/metrics")
    return Server(endpoint, identity, out, None if is_remote else Path(identity.trace_dir).absolute(), watch)


def _tell_apart(servers: Sequence[Server]) -> None:
    folders = [server.folder.resolve() for server in servers if server.folder]
    if len(set(folders)) < len(folders):
        raise UsageError(
            f"two servers write to {max(folders, key=folders.count)}, so their files cannot be told apart; "
            "start each with a directory of its own"
        )


def _fitted(load: RequestLoad, servers: Sequence[Server]) -> RequestLoad:
    vocabularies = [server.identity.model.get("vocab_size") for server in servers]
    known = [size for size in vocabularies if isinstance(size, int)]
    return replace(load, tokens=min(known)) if known else load


def _warm_up(
    engine: Engine, servers: Sequence[Server], request: Request, load: RequestLoad, tell: Callable[[str], None]
) -> None:
    """Send short requests, so that what an engine does once is not in the measurement."""
    output_tokens = min(_WARM_UP_TOKENS, load.output_tokens)
    short = replace(load, requests=2 * len(servers), concurrency=1, output_tokens=output_tokens)
    _send(engine, servers, request, Turns(short), "warm-up", tell)


def _send(
    engine: Engine,
    servers: Sequence[Server],
    request: Request,
    turns: Turns,
    turn: str,
    tell: Callable[[str], None],
) -> None:
    """Send the load of one turn; answers are kept as they come."""
    load = turns.load
    answers = turns.profiled if turn == "profiled" else turns.reference
    turns.prompts = load.prompts(turn)

    def keep(answer: TimedAnswer) -> None:
        answers.append(answer)
        tell(f"Sending, {turn}: {len(answers)} of {units.count(load.requests, 'request')} answered")

    send = engine.sender({s.endpoint: s.identity for s in servers}, request.router, load.output_tokens)
    is_split = any(server.endpoint.role for server in servers)
    if is_split and turn == "profiled":
        send = watched(send, [server.watch for server in servers])
    tell(f"Sending, {turn}")
    _load.run(turns.prompts, send, concurrency=load.concurrency, access=request.access, on_answer=keep)


@contextmanager
def _profiler(
    engine: Engine, http: Http, servers: Sequence[Server], request: Request, tell: Callable[[str], None]
) -> Iterator[None]:
    """The profilers of all servers, on; and off again however the load ends."""
    started: list[Server] = []
    try:
        for server in servers:
            plan = replace(request.plan, trace_dir=_ELSEWHERE.sub("", server.identity.trace_dir, count=1))
            engine.start(http, server.endpoint, server.identity, plan)
            server.is_started = True
            started.append(server)
        yield
    except BaseException:
        for fault in _stopped(engine, http, started, tell):
            log.warning("%s", fault)
        raise
    if faults := _stopped(engine, http, started, tell):
        raise faults[0]


def _stopped(
    engine: Engine, http: Http, servers: Sequence[Server], tell: Callable[[str], None]
) -> list[ShardscopeError]:
    """Stop every profiler, also where one of them does not answer."""
    tell("Stopping the profiler: the server writes its traces")
    return [fault for server in servers if (fault := _fault_of_stop(engine, http, server))]


def _fault_of_stop(engine: Engine, http: Http, server: Server) -> ShardscopeError | None:
    try:
        engine.stop(http, server.endpoint, server.identity)
    except ShardscopeError as fault:
        return fault
    return None


def _finish(http: Http, server: Server, request: Request, turns: Turns, tell: Callable[[str], None]) -> None:
    """Take metrics and files of one server; the first fault of all servers is kept."""
    try:
        server.after = _scrape(http, server)
    except ShardscopeError as fault:
        server.absent["metrics after the load"] = str(fault)
    if not server.is_started:
        return
    if server.folder is None:
        server.absent["traces"] = f"on another machine: copy them from {server.identity.trace_dir} to {server.out}"
        return
    limit_s = request.access.timeout_s
    try:
        files = trace_files.settled(
            server.folder,
            server.files_before,
            expected=server.identity.ranks or 1,
            timeout_s=min(limit_s, _AFTER_A_FAULT_S) if turns.fault else limit_s,
            on_poll=lambda n_bytes: tell(f"Waiting for traces: {units.size(n_bytes)} in {server.folder}"),
        )
    except (KeyboardInterrupt, ShardscopeError) as fault:
        server.absent["traces"] = str(fault) or "interrupted"
        turns.fault = turns.fault or fault
        files = trace_files.whole(server.folder, server.files_before)
    try:
        server.files = trace_files.gather(files, server.out)
    except ShardscopeError as fault:
        server.absent["traces"] = str(fault)
        turns.fault = turns.fault or fault


def _scrape(http: Http, server: Server) -> metrics.Scrape:
    answer = http.get(server.watch.url)
    if answer.status_code == NOT_FOUND:
        server.absent["metrics"] = f"{server.watch.url} answers 404; SGLang serves metrics with --enable-metrics"
        return metrics.Scrape("")
    check(answer)
    try:
        return metrics.scrape(answer.text)
    except ValueError as error:
        raise ShardscopeError(f"{server.watch.url} is not in Prometheus' format: {error}") from error
