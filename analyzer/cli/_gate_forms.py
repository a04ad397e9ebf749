"""The forms of a gate's result."""

from __future__ import annotations

from analyzer._gate_json import to_json
from analyzer.cli._output import NARROWEST
from analyzer.gate import Result
from analyzer.render import _gate_github, _gate_junit, _gate_markdown, _gate_text


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
        "text": lambda: _gate_text.render(result, width, color=color),
        "json": lambda: to_json(result, strict=strict),
        "markdown": lambda: _gate_markdown.render(result),
        "junit": lambda: _gate_junit.render(result, strict=strict),
        "github": lambda: _gate_github.render(result, strict=strict),
    }
    return forms[form]()
