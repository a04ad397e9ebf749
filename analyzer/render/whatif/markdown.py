"""What one run lets expect, as markdown for a pull request: the range, the bounds, the classes folded."""

from __future__ import annotations

from analyzer.render.compare.markdown import fold, table
from analyzer.render.formats.markdown import code, document, text
from analyzer.render.safe import safe
from analyzer.render.whatif.text import BOUNDS, SCALES, origin
from analyzer.units import duration
from analyzer.whatif.foresight import DIMENSION, Foresight


def render(foresight: Foresight) -> str:
    """The answer as GitHub's and GitLab's markdown."""
    foresight = safe(foresight)
    name = f"{DIMENSION.upper()}{foresight.expectation.degree}"
    parts = [f"**{text(foresight.expectation.sentence(name))}**", text(origin(foresight))]
    if foresight.expectation.notes:
        parts.append("\n".join(f"- {text(note)}" for note in foresight.expectation.notes))
    if foresight.marginal is not None:
        parts.append(text(foresight.marginal.sentence(f"{DIMENSION.upper()}{foresight.marginal.degree}")))
    if foresight.ceilings:
        parts.append(f"{BOUNDS}\n\n" + "\n".join(f"- {text(row.sentence)}" for row in foresight.ceilings))
    rows = [
        (code(row.name), duration(row.time_ns), duration(then_ns), text(SCALES[row.sort]))
        for row, then_ns in foresight.classes
    ]
    parts.append(fold("Classes of the step", table(("class", "now", f"at {name}", "with the degree"), rows)))
    return document(parts)
