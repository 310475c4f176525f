"""What is on an HTML page, for tests: its elements, and whether anything on it could load, run or lead elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"br", "meta", "input"})


@dataclass
class PageReader(HTMLParser):
    """A page that was read: `elements` with their attributes, in order; `texts` by the element they stand in."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is closed and was not opened last"

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self, *, within: str | None = None) -> str:
        """What people read, or what stands directly in elements of one name."""
        hidden = ("style", "script")
        return " ".join(text for tag, text in self.texts if (tag not in hidden if within is None else tag == within))

    def count(self, tag: str, class_: str | None = None) -> int:
        """How many elements have a name, and a class."""
        return sum(
            one == tag and (class_ is None or class_ in (said.get("class") or "").split())
            for one, said in self.elements
        )

    def links(self) -> list[str]:
        """Addresses that the page leads to."""
        return [said["href"] or "" for _, said in self.elements if "href" in said]


def read_page(page: str) -> PageReader:
    """The elements of a page; each must be closed."""
    reader = PageReader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def ensure_harmless(page: str) -> PageReader:
    """The page, after checks that it runs its own script alone and loads nothing: by what is on it, by its policy."""
    reader = read_page(page)
    assert reader.count("script") == 1
    for tag, said in reader.elements:
        assert tag not in {"img", "iframe", "object", "embed", "link", "base", "a:href", "use", "image"}, tag
        assert not [name for name in said if name.startswith("on") or name in ("src", "style", "srcset")], (tag, said)
        address = said.get("href") or said.get("action") or ""
        assert address == "" or address[0] in "/#?", address
    policy = next(said["content"] for _, said in reader.elements if said.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", text)
    return reader
