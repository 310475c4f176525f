"""Pages that say a sentence: what went otherwise, and that a token is needed."""

from __future__ import annotations

from hoodie.present.page.document import FOOT, document, heading
from hoodie.present.page.markup import Child, element


def message_page(title: str, *sentences: Child) -> str:
    """A page with a title and a paragraph for each sentence."""
    said = element("section", [element("p", entry) for entry in sentences])
    back = element("p", element("a", "All tables", href="/"))
    return document(title, heading(title), element("main", said, back, id="content"), FOOT)


def token_page(path: str) -> str:
    """A page that asks for the token and sends it to `path`, which must take it out of the address at once."""
    label = element(
        "label", "Token ", element("input", type="password", name="token", autocomplete="off", required=True)
    )
    form = element("form", label, element("button", "Open"), method="get", action=path)
    who = element("p", "Whoever runs this service has it: hoodie serve reads it from --token-file.")
    said = element("section", who, form)
    return document("A token is needed", heading("A token is needed"), element("main", said, id="content"))
