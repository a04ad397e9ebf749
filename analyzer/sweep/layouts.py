"""Layouts in words, and whether runs are degrees of one axis or layouts of one number of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from analyzer.errors import MissingEvidenceError, UsageError
from analyzer.schema.report import Report

_ATTENTION = ("tp", "dp", "cp", "dcp")
_SPLITTING = ("tp", "pp", "dp", "cp")
"""Axes whose degrees multiply to the GPUs of a run; experts and decode context lie inside them."""


def gpus(report: Report) -> int:
    """Devices of the whole run; where nobody counted them, what its traces and axes make at least."""
    run = report.run
    degrees = (run.layout.get(axis, 1) for axis in _SPLITTING)
    return run.world_size or max(len(run.ranks), prod(degree for degree in degrees if isinstance(degree, int)))


def layout_words(report: Report) -> str:
    """'attention tp4 dp2, experts ep8': each part of the model with its own groups, never a sum of degrees.

    Raises:
        MissingEvidenceError: no axis is known.
    """
    if not any(isinstance(report.run.layout.get(axis), int) for axis in (*_ATTENTION, "ep", "pp")):
        raise MissingEvidenceError(
            f"{report.run.label}: its layout is unknown",
            'state it in run.json beside the traces: {"layout": {"tp": …, "ep": …}}',
        )
    return ", ".join(_parts(report.run.layout)) or "one GPU"


def _parts(layout: dict[str, int | str]) -> Iterator[str]:
    def used(axes: Sequence[str]) -> str:
        degrees = ((axis, layout.get(axis, 1)) for axis in axes)
        return " ".join(f"{axis}{degree}" for axis, degree in degrees if isinstance(degree, int) and degree > 1)

    if used(("pp",)):
        yield used(("pp",))
    if used(("ep",)):
        yield f"attention {used(_ATTENTION) or 'tp1'}"
        yield f"experts {used(('ep',))}"
    elif used(_ATTENTION):
        yield used(_ATTENTION)


def is_growing(runs: Sequence[tuple[int, int, str]], dimension: str) -> bool:
    """Whether more degree is more GPUs: True for degrees, False for layouts of one number of GPUs.

    Args:
        runs: degree, GPUs and label of each run, by degree.
        dimension: axis whose degree varies.

    Raises:
        UsageError: neither.
    """
    if len({size for _, size, _ in runs}) == 1:
        return len({degree for degree, _, _ in runs}) == 1
    for (below, fewer, first), (above, more, second) in pairwise(runs):
        if (above > below) != (more > fewer) or (above == below and more != fewer):
            raise UsageError(
                f"{dimension}{below} takes {fewer} GPUs in {first} and {dimension}{above} {more} in {second}; compare "
                "degrees whose GPUs grow with them, or layouts of one number of GPUs (--dimension layout)"
            )
    return True


def check_one_size(reports: Sequence[Report]) -> None:
    """All runs use as many GPUs.

    Raises:
        UsageError: names two that do not.
    """
    for other in reports[1:]:
        if gpus(other) != gpus(reports[0]):
            raise UsageError(
                f"{reports[0].run.label} takes {gpus(reports[0])} GPUs and {other.run.label} {gpus(other)}; "
                "layouts are compared on one number of GPUs, a growing number is a sweep of an axis (--dimension tp)"
            )
