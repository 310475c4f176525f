"""A configuration key: what it means, its default, and whether it has an effect here."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from hoodie.config import Kind, accepted, lookup, spellings
from hoodie.present.forms import Form
from hoodie.present.sheet import Sheet, facts

if TYPE_CHECKING:
    from hoodie.config import ConfigKey

_WORDS: Final[dict[Kind, str]] = {
    "implemented": "implemented",
    "no_meaning_here": "accepted, without effect here",
    "not_yet": "not yet: a value that asks for it is refused",
}


def default_text(default: str | None) -> str:
    """A default as people read it."""
    return "none" if default is None else default or "(empty)"


def _json(entry: ConfigKey) -> dict[str, Any]:
    fields = dataclasses.asdict(entry)
    return {"key": fields.pop("key"), "default": entry.default, **fields}


def explained(entry: ConfigKey, name: str) -> Sheet:
    """All about the key that is called `name`; for another spelling of a key, what it stands for."""
    meant = lookup(entry.canonical)
    about = {
        "meaning": entry.meaning,
        "stands for": meant.key if meant.key != name else None,
        "here": f"a detail of {meant.part_of}, which is not there yet" if meant.part_of else _WORDS[meant.kind],
        "no effect because": meant.reason,
        "default": default_text(meant.default),
        "Hudi's default": default_text(meant.hudi_default) if meant.difference else None,
        "because": meant.difference,
        "type": meant.type,
        "accepted": accepted(meant) if meant.values else None,
        "not yet": ", ".join(meant.later) if meant.later and "*" not in meant.later else None,
        "accepted beside": ", ".join(f"{key}={value}" for key, value in meant.unless) or None,
        "also called": ", ".join(other for other in spellings(entry) if other != name) or None,
        "since": entry.since,
        "deprecated": entry.deprecated,
        "gone from Hudi in": entry.removed,
        "topic": entry.group,
    }
    return facts(name, {what: fact for what, fact in about.items() if fact is not None})


_KEY: Form[ConfigKey] = Form(_json, sheet=lambda entry: explained(entry, entry.key), noun="key")

FORMS: Final = {"ConfigKey": _KEY}
