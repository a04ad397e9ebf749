"""The forms of a gate's result."""

from __future__ import annotations

from analyzer.cli.output import NARROWEST
from analyzer.gate.verdict import Result
from analyzer.render.gate import github as gate_github
from analyzer.render.gate import junit as gate_junit
from analyzer.render.gate import markdown as gate_markdown
from analyzer.render.gate import text as gate_text
from analyzer.render.gate.json import to_json
from analyzer.render.safe import quoted


def rendered(result: Result, form: str, *, strict: bool, width: int = NARROWEST, color: bool = False) -> str:
    """The result in one of the forms.

    Args:
        result: what to show.
        form: text, json, markdown, junit or github.
        strict: whether what is undecided fails.
        width: columns of the text.
        color: of the text.
    """
    forms = {
        "text": lambda: gate_text.render(result, width, color=color),
        "json": lambda: quoted(to_json(result, strict=strict)),
        "markdown": lambda: gate_markdown.render(result),
        "junit": lambda: gate_junit.render(result, strict=strict),
        "github": lambda: gate_github.render(result, strict=strict),
    }
    return forms[form]()
