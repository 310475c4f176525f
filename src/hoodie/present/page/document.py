"""The frame of a page: head, policy, style and script, all inside one file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

from hoodie.present.page.markup import Child, Html, element, joined


@cache
def _asset(name: str) -> str:
    return (files("hoodie.present.page") / name).read_text(encoding="utf-8")


@cache
def content_policy() -> str:
    """What a browser may load and run for a page: the style and the script that are in it, and nothing else."""
    style, script = (_digest(_asset(name)) for name in ("page.css", "page.js"))
    return f"default-src 'none'; style-src '{style}'; script-src '{script}'; form-action 'self'; base-uri 'none'"


def document(title: str, *content: Child | Iterable[Child]) -> str:
    """A whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=content_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Html(_asset("page.css"))),
    )
    skip = element("a", "Skip to the content", href="#content", class_="skip")
    body = element("body", skip, joined(content), element("script", Html(_asset("page.js"))))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def heading(title: str, facts: str = "") -> Html:
    """The head of a page."""
    return element("header", element("h1", title), element("p", facts, class_="facts") if facts else None)


FOOT: Final = element("footer", element("p", "Nothing here changes a table. Times are UTC."))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
