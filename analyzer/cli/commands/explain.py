"""`shardscope explain RULE`: one rule's page."""

from __future__ import annotations

import click

from analyzer.errors import UsageError


@click.command()
@click.argument("name", metavar="RULE")
def command(name: str) -> None:
    """Print the page of RULE (Q301 or exposed-all-reduce): what it measures, why it costs, what to do."""
    import rules  # noqa: PLC0415 (--help stays fast)
    from analyzer.page import rule_page  # noqa: PLC0415
    from analyzer.plugins import offers  # noqa: PLC0415

    known = sorted(offers(rules, "check").values(), key=lambda rule: rule.code)
    for rule in known:
        if name.lower() in (rule.code.lower(), rule.name):
            click.echo(rule_page(rule))
            return
    raise UsageError(f"no rule {name!r}; `shardscope rules` lists {known[0].code} to {known[-1].code}")
