"""Fixed, parallel and growing parts of a curve over degrees: for drawing and for shares, never for the verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEWEST_DEGREES = 4
"""Three parameters fit three degrees exactly, whatever these are."""


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """T(n) = fixed + parallel / n + growing × (n - 1), all parts at least 0.

    Attributes:
        fixed_ns: time that no degree changes.
        parallel_ns: time that is divided by the degree.
        growing_ns: time that each further rank adds.
        worst: largest relative distance from a measured point.
    """

    fixed_ns: float
    parallel_ns: float
    growing_ns: float
    worst: float


def curve(degrees: tuple[int, ...], values_ns: tuple[float, ...]) -> ScalingCurve | None:
    """The best non-negative parts by relative error; None below four degrees.

    This is the linear form of N. Gunther's universal scalability law.
    """
    if len(degrees) < FEWEST_DEGREES:
        return None
    from scipy.optimize import nnls  # noqa: PLC0415 (half a second, for sweeps only)

    n, y = np.array(degrees, np.float64), np.array(values_ns, np.float64)
    basis = np.column_stack((np.ones_like(n), 1 / n, n - 1))
    parts, _ = nnls(basis / y[:, None], np.ones_like(y))
    fixed, parallel, growing = (float(part) for part in parts)
    return ScalingCurve(fixed, parallel, growing, float(np.max(np.abs(basis @ parts / y - 1))))
