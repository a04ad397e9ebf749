"""`shardscope rules`: the rule list."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """List the rules by question."""
    import rules  # noqa: PLC0415 (--help stays fast)
    from analyzer.plugins import offers  # noqa: PLC0415
    from analyzer.rule import Question  # noqa: PLC0415

    known = sorted(offers(rules, "check").values(), key=lambda rule: rule.code)
    for question in Question:
        click.echo(f"{question.value} {question.text}")
        for rule in (rule for rule in known if rule.question == question):
            click.echo(f"  {rule.code}  {rule.name:<32} {rule.page.strip().splitlines()[0]}")
