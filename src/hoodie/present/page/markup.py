"""HTML elements from values: what is no markup already is escaped, always.

Characters that steer the direction of text, or none can see, are shown as escapes, as on the terminal: the name of a
partition reads as what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from hoodie.present.plain import visible_text

_EMPTY = frozenset({"br", "meta", "input", "rect", "line"})


class Html(str):
    """Text that is markup."""

    __slots__ = ()


Child = str | int | None
Attribute = str | int | float | bool | None


def element(name: str, /, *children: Child | Iterable[Child], **attributes: Attribute) -> Html:
    """An element. Names of attributes: `class_` is `class`, `data_x` is `data-x`; one of None or False is left out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY and not children:
        return Html(f"<{name}{said}/>")
    return Html(f"<{name}{said}>{joined(children)}</{name}>")


def joined(children: Iterable[Child | Iterable[Child]]) -> Html:
    """Children one behind the other; None is nothing."""
    return Html("".join(_content(child) for child in children))


def _content(child: Child | Iterable[Child]) -> str:
    match child:
        case None:
            return ""
        case Html():
            return child
        case str():
            return escape(visible_text(child))
        case int():
            return f"{child:,}"
        case _:
            return joined(child)


def _attribute(key: str, value: Attribute) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{escape(visible_text(shown))}"'
