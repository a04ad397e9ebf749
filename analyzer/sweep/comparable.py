"""Whether reports may be compared in a sweep: one workload, one software, one shape of split; what differs is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.errors import UsageError
from analyzer.model.layout import AXES
from analyzer.schema.breakdown import StepKind
from analyzer.schema.report import Report
from analyzer.schema.settings import GRAPH, LOAD, PRECISION, SETTINGS
from analyzer.whatif.limits import Facts, divisions

LAYOUT = "layout"
"""Word for comparing whole layouts instead of the degrees of one axis."""
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
"""Keys under which configs of Hugging Face state the experts of a layer; a dense model has none of them."""
FOLLOWING = {"tp": ("ep", "dcp"), "dp": ("ep",), "cp": ("ep",), "dcp": (), "ep": ("tp", "dp"), "pp": ()}
"""Axes that engines derive from another one, and that may change with it."""
SAME_BATCH = ("tp", "dcp", LAYOUT)
"""What leaves the tokens of a step over all replicas as they are; the other axes also change the work of a rank."""
SAME_TOKENS = 0.10
"""Relative distance of the tokens a step from which steps do other work; a decode step varies by a request or two."""


def check_settings(reports: Sequence[Report], dimension: str) -> None:
    """Everything but the degree is equal, as far as it is known.

    Args:
        reports: at least one.
        dimension: axis whose degree varies, or "layout" for all of them.

    Raises:
        UsageError: names the first difference, and the two runs; or heads that do not divide.
    """
    for other in reports[1:]:
        for what, here, there in _facts(reports[0], other, dimension):
            if here != there:
                what_varies = "their layout" if dimension == LAYOUT else dimension
                raise UsageError(
                    f"{what} differs, {here} in {reports[0].run.label} and {there} in {other.run.label}; "
                    f"compare runs that differ in {what_varies} alone"
                )
    _check_stages(reports)
    for report in reports:
        for sentence in _heads(report):
            raise UsageError(f"{report.run.label}: {sentence}; correct layout or model in its run.json")


def _check_stages(reports: Sequence[Report]) -> None:
    """A pipeline's step is one micro-batch on one stage, which says nothing of a request that passes all stages."""
    by_stages = {report.run.layout.get("pp", 1): report.run.label for report in reports}
    if len(by_stages) > 1:
        listed = ", ".join(f"pp{stages} in {label}" for stages, label in by_stages.items())
        raise UsageError(
            f"a step of a pipeline is one micro-batch on one stage, so steps of different pipelines ({listed}) do not "
            "compare; sweep a CSV of tokens_per_s, or of the time to the first token as value_ms"
        )


def check_load(rows: Sequence[tuple[Report, StepKind]], dimension: str) -> None:
    """Steps schedule as many tokens over all replicas, where the split leaves them as they are.

    Raises:
        UsageError: names the two runs that are furthest apart.
    """
    stated = sorted((row.tokens * _degree(report, "dp"), report.run.label) for report, row in rows if row.tokens)
    if dimension not in SAME_BATCH or not stated or len({_degree(report, "cp") for report, _ in rows}) > 1:
        return
    (few, there), (many, here) = stated[0], stated[-1]
    if many > few * (1 + SAME_TOKENS):
        raise UsageError(
            f"tokens a step differ, {few:,} in {there} and {many:,} in {here}; a step with more tokens is more work: "
            "send both the same load, or compare tokens a second in a CSV (tokens_per_s)"
        )


def _degree(report: Report, axis: str) -> int:
    size = report.run.layout.get(axis, 1)
    return size if isinstance(size, int) else 1


def unchecked(reports: Sequence[Report]) -> str:
    """What was not compared because a run does not say it, "" where everything was."""
    on_host = all(device == "cpu" for report in reports for device in report.run.devices)
    lacking = [
        name
        for name, is_known in (
            ("engine", lambda run: run.engine != "unknown"),
            ("version", lambda run: bool(run.versions)),
            ("model", lambda run: bool(run.model) or "model" in run.settings),
            ("precision", lambda run: any(key in run.settings for key in PRECISION)),
            ("load", lambda run: any(key in run.settings for key in LOAD)),
            ("graph mode", lambda run: on_host or any(key in run.settings for key in GRAPH)),
        )
        if not all(is_known(report.run) for report in reports)
    ]
    if not lacking or len(reports) == 1:
        return ""
    return f"not recorded in every run, so not compared: {', '.join(lacking)}; state them in run.json"


def _heads(report: Report) -> Iterator[str]:
    run = report.run
    tp = run.layout.get("tp")
    heads, kv_heads = (run.model.get(f"num_{kind}_heads") for kind in ("attention", "key_value"))
    if isinstance(tp, int):
        known = Facts(
            query_heads=heads if isinstance(heads, int) else None,
            kv_heads=kv_heads if isinstance(kv_heads, int) else None,
        )
        yield from divisions(known, tp)


def _model_name(path: float | str) -> str:
    """The last part: where it is stored may differ."""
    return str(path).rstrip("/").rpartition("/")[2]


def _experts(model: Mapping[str, int | float | str]) -> float | str:
    return next((model[key] for key in EXPERTS if key in model), 0)


def _facts(first: Report, other: Report, dimension: str) -> Iterator[tuple[str, object, object]]:
    """What must be equal, as far as both reports know it."""
    a, b = first.run, other.run
    yield "engine", a.engine, b.engine
    yield "role", a.role, b.role
    yield "device", ", ".join(a.devices), ", ".join(b.devices)
    for name in sorted(a.versions.keys() & b.versions.keys()):
        yield f"version of {name}", a.versions[name], b.versions[name]
    for name in sorted(a.model.keys() & b.model.keys()):
        yield f"{name} of the model", a.model[name], b.model[name]
    if "model" in a.settings and "model" in b.settings:
        yield "model", _model_name(a.settings["model"]), _model_name(b.settings["model"])
    if a.model and b.model:
        yield "number of experts", _experts(a.model), _experts(b.model)
    for name in SETTINGS:
        if name in a.settings and name in b.settings:
            yield f"setting {name}", a.settings[name], b.settings[name]
    if dimension == LAYOUT:
        return
    for axis in AXES:
        if axis not in (dimension, *FOLLOWING.get(dimension, ())) and axis in a.layout and axis in b.layout:
            yield f"degree of {axis}", a.layout[axis], b.layout[axis]
