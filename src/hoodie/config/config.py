"""Options of a call, checked: what the caller gave and, for the rest, the defaults in effect.

1. Known keys are kept under their canonical name with a checked value; an unknown `hoodie.*` key is an error.
2. Two spellings of one concept may both be given only with the same value.
3. A value that asks for something `hoodie` cannot do yet is refused, before anything is read or written. What has no
   effect here (keys that steer the JVM, details of what is off) is accepted and reported in one log line.
4. Options without the `hoodie.` prefix belong to storage or Spark and are passed on untouched in `passed`, but for
   those of parquet and Hadoop that would change what is stored: the registry has them, and they are refused. An error
   names what was meant by those that can only mean a setting of ours (`primaryKey`, `recordkey.field`), and by unknown
   ones that begin with `fs.s3a.`: the registry has all of Hadoop's.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hoodie.config.registry import ConfigKey, find, is_of_s3a, lookup, meant, unknown_key
from hoodie.config.secret import masked, shown
from hoodie.config.values import accepted, asks_for_later, option_text, parse_value, split_list
from hoodie.errors import Invalid, Unsupported

log = logging.getLogger(__name__)

Purpose = Literal["write", "read"]

COMMIT_METADATA_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"

_PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.")
_TYPO = 0.8


@dataclass(frozen=True, slots=True)
class Config:
    """Checked options. `explicit`: canonical key to text, as given. `passed`: options that are not Hudi's."""

    explicit: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, str] = field(default_factory=dict)

    def is_set(self, key: str) -> bool:
        """Whether the caller gave `key` or another spelling of it."""
        return lookup(key).canonical in self.explicit

    def optional(self, key: str) -> str | None:
        """The value of `key`, else its default, else None."""
        canonical = lookup(key).canonical
        given = self.explicit.get(canonical)
        return lookup(canonical).default if given is None else given

    def text(self, key: str) -> str:
        """The value of `key`, else its default, else empty text."""
        return self.optional(key) or ""

    def flag(self, key: str) -> bool:
        """Whether `key` is on; a flag without value and default is off."""
        return self.text(key) == "true"

    def integer(self, key: str) -> int:
        """The whole number `key` stands for.

        Raises:
            Invalid: it has neither value nor default.
        """
        return int(self._needed(key))

    def number(self, key: str) -> float:
        """The number `key` stands for.

        Raises:
            Invalid: it has neither value nor default.
        """
        return float(self._needed(key))

    def list(self, key: str) -> tuple[str, ...]:
        """The parts of a comma list, trimmed; empty when nothing is given."""
        return split_list(self.text(key))

    def value(self, key: str) -> object:
        """The value of `key` as the type it is registered with. Raises as `integer`."""
        match lookup(key).type:
            case "flag":
                return self.flag(key)
            case "integer":
                return self.integer(key)
            case "number":
                return self.number(key)
            case "list":
                return self.list(key)
            case _:
                return self.text(key)

    def commit_metadata(self) -> dict[str, str]:
        """Options that go into the commit as extra metadata: those that start with the commit metadata prefix.

        Raises:
            Invalid: one of them is a secret, which everybody who reads the table would see.
        """
        prefix = self.text(COMMIT_METADATA_PREFIX)
        everything = {**self.passed, **self.explicit}
        found = {key: value for key, value in everything.items() if prefix and key.startswith(prefix)}
        printable = self.masked()
        secret = next((key for key, value in found.items() if printable[key] != value), None)
        if secret is not None:
            raise Invalid(
                f"{COMMIT_METADATA_PREFIX}={prefix} would store the secret {secret} in the commit",
                remedy="Choose a prefix that only what is meant for the commit begins with",
                key=secret,
            )
        return found

    def overridden(self, by: Config) -> Config:
        """These options, with those of `by` in the place of ones of the same meaning, however either is spelled."""
        return Config({**self.explicit, **by.explicit}, {**self.passed, **by.passed})

    def masked(self) -> dict[str, str]:
        """All options as they may be printed."""
        return masked({**self.explicit, **self.passed})

    def _needed(self, key: str) -> str:
        value = self.optional(key)
        if value is None:
            raise Invalid(f"Option {key} has no value", remedy=f"Give {accepted(lookup(key))}", key=key)
        return value

    def __repr__(self) -> str:
        return f"Config({self.masked()!r})"


def resolve(options: Mapping[str, object], *, purpose: Purpose = "write") -> Config:
    """The checked form of `options`. Values may be text, booleans, numbers or lists; None means not given.

    With purpose `read`, options that only steer writes are checked for their type but never refused, as scripts often
    share one set of options.

    Raises:
        Invalid: an unknown key (names the nearest), a value of the wrong type, two spellings with different values.
        Unsupported: a value asks for something `hoodie` does not do yet.
    """
    given = {name: value for name, value in options.items() if value is not None}
    prefix = option_text(COMMIT_METADATA_PREFIX, given.get(COMMIT_METADATA_PREFIX, "_"))
    explicit: dict[str, str] = {}
    passed: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        entry = _entry_of(name, prefix)
        if entry is None or entry.is_for_storage:
            passed[name] = option_text(name, value)
            continue
        key = name if entry.is_family or is_of_s3a(name) else entry.canonical  # of a bucket, or of any
        text = parse_value(name, lookup(entry.canonical), value)
        if text is None:
            continue
        _ensure_agreement(key, text, name, explicit, spelled)
        explicit[key], spelled[key] = text, name
    _report(explicit, spelled, purpose)
    return Config(explicit, passed)


def _entry_of(name: str, prefix: str) -> ConfigKey | None:
    """The entry of `name`; None for an option that is not Hudi's or that goes into the commit metadata."""
    entry = find(name)
    if entry is not None:
        return entry
    if prefix and name.startswith(prefix):
        return None
    if name.startswith(_PREFIXES) or is_of_s3a(name) or _looks_like_hoodie(name) or meant(name) is not None:
        raise unknown_key(name)
    return None


def _looks_like_hoodie(name: str) -> bool:
    """A first word that is nearly `hoodie` is a typing error, not somebody else's option."""
    first, dot, _ = name.partition(".")
    return bool(dot) and difflib.SequenceMatcher(None, first.lower(), "hoodie").ratio() >= _TYPO


def _ensure_agreement(key: str, text: str, name: str, explicit: Mapping[str, str], spelled: Mapping[str, str]) -> None:
    before = explicit.get(key)
    if before is not None and before != text:
        raise Invalid(
            f"Options {spelled[key]}={shown(key, before)} and {name}={shown(key, text)} are two names of one setting "
            "and contradict each other",
            remedy=f"Keep one of them; {key} is the current name",
            key=key,
        )


def _report(explicit: Mapping[str, str], spelled: Mapping[str, str], purpose: Purpose) -> None:
    """Refuse what is not done yet; log, in one line each, what is accepted without effect."""
    idle: list[str] = []
    refused: list[tuple[str, str, ConfigKey]] = []
    for key, text in explicit.items():
        entry = lookup(lookup(key).canonical)
        if entry.scope not in (purpose, "both"):
            continue
        if entry.reason is not None or entry.part_of is not None:
            idle.append(spelled[key])
        elif asks_for_later(entry, text) and not any(explicit.get(other) == value for other, value in entry.unless):
            refused.append((spelled[key], text, entry))
    if refused:
        raise _not_yet(refused)
    if idle:
        log.info("accepted without effect here: %s", ", ".join(idle))


def _not_yet(refused: Iterable[tuple[str, str, ConfigKey]]) -> Unsupported:
    items = list(refused)
    remedies = []
    for name, _, entry in items:
        choice = f" or give {accepted(entry)}" if entry.values else ""
        if not choice and not name.startswith(_PREFIXES) and find(own := f"hoodie.{name}") is not None:
            choice = f" or give {own}"
        remedies.append(f"leave {name} out{choice}")
    remedy = "; ".join(remedies)
    return Unsupported(
        f"Not supported by hoodie yet: {_pairs(items)}",
        remedy=remedy[0].upper() + remedy[1:],
        key=items[0][0],
        value=shown(items[0][0], items[0][1]),
    )


def _pairs(items: Iterable[tuple[str, str, ConfigKey]]) -> str:
    return ", ".join(f"{name}={shown(name, text)}" for name, text, _ in items)
