"""JSON of schema 1."""

from analyzer.render.safe import quoted
from analyzer.schema.report import Report, to_json

SUFFIX = ".json"


def render(report: Report, width: int = 80, *, color: bool = False) -> str:  # noqa: ARG001 (every renderer is called alike)
    """The report as JSON; width and colour change nothing."""
    return quoted(to_json(report))
