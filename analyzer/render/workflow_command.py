"""A workflow command of GitHub's, as reports and gates write them."""

from __future__ import annotations

MOST = 10
"""Annotations of one level that GitHub shows of a step; more are dropped there without a word."""


def command(level: str, title: str, message: str) -> str:
    """`::level title=…::message`; a percent sign, line ends and, in the title, the separators are escaped.

    Source: the toolkit of GitHub's actions, packages/core/src/command.ts.
    """
    return f"::{level} title={_data(title).replace(':', '%3A').replace(',', '%2C')}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
