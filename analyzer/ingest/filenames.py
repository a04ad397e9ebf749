"""What a trace file's name and folders say about it.

Names are the second witness: what stands inside the file (`distributedInfo`) is asked first. They tell repeated
profiles, roles and replicas apart, which the inside does not.

Sources: vllm/v1/worker/gpu_worker.py and vllm/distributed/utils.py; sglang/profiler.py,
sglang/srt/managers/scheduler_components/profiler_manager.py and bench_one_batch.py; torch/profiler/profiler.py
(`tensorboard_trace_handler`); torch_npu's handler; names in the wild (HTA, PARAM, KernelBench traces).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath

PLACEMENT = ("tp", "pp", "dp", "ep", "dcp")
"""Coordinates that names state."""


class FileKind(str, Enum):
    """What sort of file a name belongs to."""

    WORKER = "worker"
    FRONTEND = "frontend"
    CAPTURE = "capture"
    MERGED = "merged"
    ONE_BATCH = "one_batch"
    EXECUTION_GRAPH = "execution_graph"
    MEMORY = "memory"
    TABLE = "table"
    SIDECAR = "sidecar"
    OTHER = "other"

    @property
    def may_be_trace(self) -> bool:
        """Whether the file may hold what one rank did; only its content says whether it does."""
        return self in {FileKind.WORKER, FileKind.ONE_BATCH, FileKind.MERGED}


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What a name states; everything else is absent.

    Attributes:
        kind: sort of file. Any other JSON file is a WORKER: only its content can say that it is not.
        engine: `vllm`, `sglang`, `ascend`, or "" where the form is shared by several.
        rank: within its world (vLLM: within its data-parallel replica), None where not stated.
        placement: coordinates along `tp`, `pp`, `dp`, `ep`, `dcp`.
        stage: `prefill` or `decode`, "" where not stated.
        host: host name, "" where not stated.
        pid: process id on that host.
        time_ns: when it was written, since the epoch.
        profile: prefix or profile id that the files of one session share; "" where there is none.
        folder_number: number that ends the folder's name. It is a rank where sibling folders differ in nothing else.
    """

    kind: FileKind
    engine: str = ""
    rank: int | None = None
    placement: dict[str, int] = field(default_factory=dict)
    stage: str = ""
    host: str = ""
    pid: int | None = None
    time_ns: int | None = None
    profile: str = ""
    folder_number: int | None = None


@dataclass(frozen=True, slots=True)
class _Form:
    kind: FileKind
    engine: str
    pattern: re.Pattern[str]


def _form(kind: FileKind, engine: str, pattern: str) -> _Form:
    return _Form(kind, engine, re.compile(pattern + "$"))


_TIME = r"(?P<time>\d{10,19})"
_TORCH = r"\.pt\.trace\.json"
_VLLM_PLACE = r"dp(?P<dp>\d+)_pp(?P<pp>\d+)_tp(?P<tp>\d+)_dcp(?P<dcp>\d+)_ep(?P<ep>\d+)_rank(?P<rank>\d+)"
_SGLANG_PLACE = r"-TP-(?P<tp>\d+)(?:-DP-(?P<dp>\d+))?(?:-PP-(?P<pp>\d+))?(?:-EP-(?P<ep>\d+))?"
_PREFIX = r"^(?:(?P<profile>.+?)_)?"
# Host names hold no underscore, so what stands before the last one is a prefix.
_HOST_PID = r"(?P<host>[^_]+)_(?P<pid>\d+)"

# Asked in this order, without ".gz".
_FORMS = (
    _form(FileKind.MEMORY, "sglang", rf"^(?P<profile>.+?){_SGLANG_PLACE}-memory(?:-(?P<stage>[A-Za-z_]+))?\.pickle"),
    _form(FileKind.OTHER, "sglang", rf"^rpd-(?P<profile>.+?){_SGLANG_PLACE}\.trace\.json"),
    _form(FileKind.MERGED, "sglang", r"^merged-(?P<profile>.+)\.trace\.json"),
    _form(FileKind.CAPTURE, "vllm", rf"^graph_capture_rank_(?P<rank>\d+)\.{_TIME}{_TORCH}"),
    _form(FileKind.CAPTURE, "sglang", rf"^cuda_graph_capture-(?P<profile>.+?){_SGLANG_PLACE}\.json"),
    _form(FileKind.FRONTEND, "vllm", rf"^(?:(?P<profile>.+)_)?{_HOST_PID}\.async_llm\.{_TIME}{_TORCH}"),
    _form(FileKind.WORKER, "vllm", rf"{_PREFIX}{_VLLM_PLACE}\.{_TIME}{_TORCH}"),
    _form(FileKind.TABLE, "vllm", rf"{_PREFIX}{_VLLM_PLACE}\.profiler_out\.txt"),
    _form(FileKind.TABLE, "vllm", rf"{_PREFIX}rank(?P<rank>\d+)\.profiler_out\.txt"),
    _form(FileKind.TABLE, "vllm", r"^profiler_out_(?P<rank>\d+)\.txt"),
    _form(FileKind.WORKER, "vllm", rf"^(?P<profile>.+)-rank-(?P<rank>\d+)\.{_TIME}{_TORCH}"),
    _form(FileKind.WORKER, "sglang", rf"^(?P<profile>.+?){_SGLANG_PLACE}(?:-(?P<stage>[A-Za-z_]+))?\.trace\.json"),
    _form(
        FileKind.ONE_BATCH,
        "sglang",
        r"^(?P<profile>.+_batch\d+_input\d+_output\d+)(?:_(?P<stage>[A-Za-z_]+))?\.trace\.json",
    ),
    _form(FileKind.WORKER, "", rf"{_PREFIX}rank[-_]?(?P<rank>\d+)\.{_TIME}{_TORCH}"),
    _form(FileKind.WORKER, "", rf"^rank[-_]?(?P<rank>\d+)_{_HOST_PID}\.{_TIME}{_TORCH}"),
    _form(
        FileKind.WORKER,
        "",
        rf"^(?:(?P<profile>.+?)\.)?worker[-_]?(?P<rank>\d+)(?:_(?P<step>step_\d+))?(?:\.{_TIME})?{_TORCH}",
    ),
    _form(FileKind.WORKER, "", rf"^(?:(?P<profile>.+)_)?{_HOST_PID}\.{_TIME}{_TORCH}"),
    _form(FileKind.EXECUTION_GRAPH, "", r"^(?P<profile>.*?)[._-]?\bet\.json"),
    _form(FileKind.EXECUTION_GRAPH, "", r"^(?P<profile>.*?)_et_(?P<rank>\d+)\.json"),
    _form(FileKind.MEMORY, "", r"^(?P<profile>.+)\.pickle"),
    _form(FileKind.SIDECAR, "", r"^(?:run|manifest)\.json"),
    _form(FileKind.SIDECAR, "sglang", r"^server_args\.json"),
    _form(FileKind.SIDECAR, "ascend", r"^(?:communication(?:_matrix)?\.json|profiler_info(?:_\d+)?\.json)"),
    _form(FileKind.SIDECAR, "ascend", r"^(?:kernel_details|op_statistic|step_trace_time|api_statistic)\.csv"),
    _form(FileKind.WORKER, "ascend", r"^trace_view\.json"),
)
_SUFFIX = re.compile(r"(?:\.pt)?(?:[.-](?:chrome-)?trace)?\.json$")
_RANK = re.compile(r"(?<![A-Za-z])(?:gpu[-_])?rank[-_]?(\d+)(?!\d)")
_KINETO = re.compile(r"(?<=kineto[-_])(\d+)$")
_FOLDER_RANK = re.compile(r"(?<![A-Za-z])(?:rank|worker|device)[-_]?(\d+)(?![\dA-Za-z])")
_FOLDER_NUMBER = re.compile(r"[A-Za-z][-_](\d+)$")
_ASCEND_FOLDER = re.compile(rf"^(?:rank[-_]?\d+|{_HOST_PID}_(?P<profile>\d{{14,17}}))_ascend_pt$")
_SECONDS = re.compile(r"(?<!\d)(\d{10})\.(\d{1,9})$")
_STAGES = {"extend": "prefill", "prefill": "prefill", "decode": "decode"}
_UNITS_NS = {10: 1_000_000_000, 13: 1_000_000, 16: 1_000, 19: 1}
"""Nanoseconds in the unit of a time stamp, by its number of digits (between the years 2001 and 2286)."""
_FOLDERS = 2
"""Folders above a file that may speak for it: an Ascend export lies two below its rank's."""


def identity(path: PurePath | str) -> FileIdentity:
    """What the name and the nearest folders of a file state."""
    path = PurePath(path)
    name = path.name.removesuffix(".gz")
    for form in _FORMS:
        match = form.pattern.match(name)
        if match is not None:
            stated = _stated(form, match)
            break
    else:
        stated = _by_words(name)
    return _with_folders(stated, path)


def _stated(form: _Form, match: re.Match[str]) -> FileIdentity:
    groups = {key: value for key, value in match.groupdict().items() if value is not None}
    placement = {axis: int(groups[axis]) for axis in PLACEMENT if axis in groups}
    profile = "_".join(filter(None, (groups.get("profile", ""), groups.get("step", ""))))
    rank = _number(groups.get("rank"))
    # A tensor-parallel rank is the rank in the world only where nothing else splits the world.
    if rank is None and placement.keys() <= {"tp", "ep"}:
        rank = placement.get("tp")
    return FileIdentity(
        form.kind,
        form.engine,
        _worded_rank(profile)[0] if rank is None else rank,
        placement,
        _STAGES.get(groups.get("stage", "").lower(), "") or _worded_stage(profile),
        groups.get("host", ""),
        _number(groups.get("pid")),
        _time_ns(groups.get("time", "")) or _seconds_ns(profile),
        profile,
    )


def _by_words(name: str) -> FileIdentity:
    """The identity of a name in no known form: a rank and a stage, where words state them."""
    if not name.endswith(".json"):
        return FileIdentity(FileKind.OTHER, rank=_worded_rank(name)[0])
    stem = _SUFFIX.sub("", name)
    rank, rest = _worded_rank(stem)
    return FileIdentity(FileKind.WORKER, rank=rank, stage=_worded_stage(stem), profile=rest.strip("._- "))


def _worded_rank(stem: str) -> tuple[int | None, str]:
    """The one rank that a name states, and the name without it."""
    for pattern in (_RANK, _KINETO):
        stated = {int(digits) for digits in pattern.findall(stem)}
        if len(stated) == 1:
            return stated.pop(), pattern.sub("", stem)
    return None, stem


def _worded_stage(stem: str) -> str:
    stated = {_STAGES[word] for word in re.split(r"[^A-Za-z]+", stem.lower()) if word in _STAGES}
    return stated.pop() if len(stated) == 1 else ""


def _with_folders(stated: FileIdentity, path: PurePath) -> FileIdentity:
    """What the name leaves open, taken from the nearest folders."""
    folders = [folder.name for folder in path.parents][:_FOLDERS]
    for folder in folders:
        ascend = _ASCEND_FOLDER.match(folder)
        if ascend is not None:
            pid = _number(ascend["pid"])
            stated = replace(
                stated, engine="ascend", host=ascend["host"] or "", pid=pid, profile=ascend["profile"] or stated.profile
            )
        rank = _FOLDER_RANK.search(folder.removesuffix("_ascend_pt"))
        if stated.rank is None and rank is not None:
            stated = replace(stated, rank=int(rank[1]))
        if not stated.stage and folder.lower() in _STAGES:
            stated = replace(stated, stage=_STAGES[folder.lower()])
    number = _FOLDER_NUMBER.search(folders[0]) if folders else None
    return replace(stated, folder_number=int(number[1])) if number is not None else stated


def _time_ns(digits: str) -> int | None:
    unit_ns = _UNITS_NS.get(len(digits))
    return None if unit_ns is None else int(digits) * unit_ns


def _seconds_ns(text: str) -> int | None:
    seconds = _SECONDS.search(text)
    return None if seconds is None else int(seconds[1]) * 1_000_000_000 + int(seconds[2].ljust(9, "0"))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
