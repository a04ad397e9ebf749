"""What one run lets expect, as markdown for a pull request: the range, the bounds, the classes folded."""

from __future__ import annotations

from analyzer.render.compare.markdown import fold, table
from analyzer.render.formats.markdown import code, document, text
from analyzer.render.safe import safe
from analyzer.render.whatif.text import BOUNDS, SCALES, origin
from analyzer.units import duration
from analyzer.whatif.foresight import DIMENSION, Foresight


def render(found: Foresight) -> str:
    """The answer as GitHub's and GitLab's markdown."""
    found = safe(found)
    name = f"{DIMENSION.upper()}{found.expectation.degree}"
    parts = [f"**{text(found.expectation.sentence(name))}**", text(origin(found))]
    if found.expectation.notes:
        parts.append("\n".join(f"- {text(note)}" for note in found.expectation.notes))
    if found.marginal is not None:
        parts.append(text(found.marginal.sentence(f"{DIMENSION.upper()}{found.marginal.degree}")))
    if found.ceilings:
        parts.append(f"{BOUNDS}\n\n" + "\n".join(f"- {text(part.sentence)}" for part in found.ceilings))
    rows = [
        (code(part.name), duration(part.time_ns), duration(then_ns), text(SCALES[part.sort]))
        for part, then_ns in found.classes
    ]
    parts.append(fold("Classes of the step", table(("class", "now", f"at {name}", "with the degree"), rows)))
    return document(parts)
