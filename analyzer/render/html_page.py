"""The frame of every page: one file that opens offline from disk, its scripts, its policy, its escapes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from analyzer import units
from analyzer.render import words
from analyzer.render.safe import inert

LIMITS = {
    "most_ranks": 512,
    "most_waiting": 64,  # ranks of the wait matrix, and groups
    "most_step_kinds": 50,
    "most_collectives": 200,
    "most_findings": 40,
    "most_rules": 200,
    "most_words": 50,  # warnings, settings, versions, kinds of work, rungs
    "most_names": 8,
    "most_lines": 64,  # ranks of a drawing
    "longest_name": 160,
    "longest_text": 600,
    "longest_extra": 4_000,
}
"""What keeps the file under 6 MB whatever the run: the program that draws the charts has 4.8."""

MOST_GROWTH = 2
"""Bytes of a text on the page for each letter that it may have."""


def page(template: str, charts: Mapping[str, object], **fields: object) -> str:
    """A template of this package, filled.

    Every string is escaped by the template. Scripts run only if their digest is in the page's policy, which also
    forbids every connection: what slipped through an escape would still do nothing.

    Args:
        template: file name.
        charts: what `page.js.j2` draws, by the identity of its place: `chart-NAME`.
        fields: what the template names.
    """
    scripts = [_plotly(), _source("page.js.j2")]
    text: str = (
        _environment()
        .get_template(template)
        .render(
            style=Markup(_source("page.css.j2")),  # noqa: S704 (of this package)
            scripts=[Markup(script) for script in scripts],  # noqa: S704 (of this package, and plotly's)
            policy=_policy(scripts),
            data=_data(charts),
            **fields,
        )
    )
    return text


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("analyzer", "render"),
        autoescape=True,
        finalize=_lines_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(LIMITS, units=units, words=words)
    environment.filters.update(clip=clip, inert=inert)
    return environment


def _lines_inert(value: object) -> object:
    """A string on a page that goes to a log, its first line within one of the template; markup stays as it is."""
    return inert(f"<{value}")[1:] if type(value) is str else value


def _source(name: str) -> str:
    """A part of the page that holds no fields, as it stands."""
    environment = _environment()
    if environment.loader is None:
        raise LookupError("the environment of a page has a loader")
    return environment.loader.get_source(environment, name)[0]


@cache
def _plotly() -> str:
    """The program that draws the charts."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 (0.15 s that no other form needs)

    program: str = get_plotlyjs()
    return program.replace("\r\n", "\n")  # as a browser reads it, of which the digest is taken


def _policy(scripts: list[str]) -> str:
    """A content security policy: these scripts, no connection, no frame, no form."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(content: object) -> Markup:
    """JSON inside a script element: no letter of it can end the element."""
    text = msgspec.json.encode(content).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704 (nothing in it is markup any more)


def clip(text: str, longest: int) -> str:
    """The first letters of a text that would fill pages, fewer where most of them are escaped."""
    cut = text[:longest]
    while len(escape(cut).encode()) > MOST_GROWTH * longest:
        cut = cut[: len(cut) // 2]
    return text if len(cut) == len(text) else f"{cut}…"
