"""A rule's page: its docstring, its question and its drawn examples, as markdown."""

from __future__ import annotations

from textwrap import dedent, indent

from analyzer.rule import Rule


def rule_page(rule: Rule) -> str:
    """The page as `explain` prints it and `docs/rules.md` holds it."""
    title, _, body = rule.page.strip().partition("\n")
    examples = "\n\n".join(
        f"{'Found' if example.found else 'Not found'}: {example.title}\n\n{indent(_drawing(example.drawing), '    ')}"
        for example in rule.examples
    )
    return (
        f"# {rule.code} {rule.name}\n\n{title}\n\nQuestion {rule.question.value}: {rule.question.text}\n\n"
        f"{body.strip()}\n\n## Examples\n\nOne column is 10 µs.\n\n{examples}\n"
    )


def _drawing(text: str) -> str:
    return dedent(text).strip("\n").rstrip()
