"""The keys `hoodie` knows: every key of Apache Hudi 1.2.0, those of 0.15 that scripts still pass, and our own.

1. The data is `registry.tsv`, one line per key, maintained by hand. Nothing here is generated when the program runs.
2. It is read once per process, when the first key is looked up (a few milliseconds). Spark workers never need it.
3. A key that is another spelling of one concept has `alias_of`; options are kept under the canonical key only.
4. A key ending in `.*` stands for all keys that start so; `spark.hadoop.` in front of a name says nothing more.
5. Every key has an answer: it is read by some code, it has no effect for a `reason`, some of its values are refused
   (`later`), or it is a detail of another setting (`part_of`) that is refused when it is on.

It does not know what any option does: packages read options from a `Config`.
"""

from __future__ import annotations

import difflib
import functools
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from hoodie.errors import Invalid

Kind = Literal["implemented", "no_meaning_here", "not_yet"]
ValueType = Literal["flag", "integer", "number", "text", "list", "enum", "class"]
Scope = Literal["read", "write", "both"]

_FAMILY = ".*"
_HADOOP = "spark.hadoop."
_NEAR = 0.6
_SAME = 0.85
"""How like a name without Hudi's prefix must be to one of its own names to be a typing error."""

_OF_OTHERS = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "type": "hoodie.datasource.write.table.type",
    "tabletype": "hoodie.datasource.write.table.type",
    "tablename": "hoodie.table.name",
    "operation": "hoodie.datasource.write.operation",
    "replacewhere": "hoodie.datasource.write.operation",
    "partitionoverwritemode": "hoodie.datasource.write.operation",
    "querytype": "hoodie.datasource.query.type",
    "readchangefeed": "hoodie.datasource.query.incremental.format",
    "startingversion": "hoodie.datasource.read.begin.instanttime",
    "startingtimestamp": "hoodie.datasource.read.begin.instanttime",
    "endingversion": "hoodie.datasource.read.end.instanttime",
    "endingtimestamp": "hoodie.datasource.read.end.instanttime",
}
"""What Hudi's SQL, Spark and Delta call a setting, without case. Stores have no options of these names."""

_S3A = "fs.s3a."
_BUCKET = "fs.s3a.bucket."
"""Names of one bucket: that of the bucket follows, then the setting's without `fs.s3a.`."""

_FOREIGN = ("fs.", "spark.", "parquet.", "orc.", "avro.", "dfs.", "hadoop.", "mapreduce.")


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One configuration key.

    `values` are the values accepted now (or conditions like `>0` for numbers), `later` those Hudi accepts and `hoodie`
    does not yet; `*` in `later` means every value not in `values`. Both empty: every value of the type is accepted.
    A value in `later` is refused, but for options in which one of `unless` (key and value) is given, too: then it says
    what is done anyway. `part_of` is the setting that would have to be on for this one to say anything.
    """

    key: str
    kind: Kind
    type: ValueType
    hudi_default: str | None
    our_default: str | None
    difference: str | None
    reason: str | None
    values: tuple[str, ...]
    later: tuple[str, ...]
    synonyms: Mapping[str, str]
    part_of: str | None
    scope: Scope
    unless: tuple[tuple[str, str], ...]
    alias_of: str | None
    aliases: tuple[str, ...]
    since: str | None
    deprecated: str | None
    removed: str | None
    group: str
    meaning: str

    @property
    def default(self) -> str | None:
        """The value in effect when nobody sets the key; None when there is none."""
        return self.hudi_default if self.our_default is None else self.our_default

    @property
    def canonical(self) -> str:
        """The key options are kept under."""
        return self.alias_of or self.key

    @property
    def is_for_storage(self) -> bool:
        """Whether it is acted on by storage, which gets it as it was given."""
        return self.kind == "implemented" and self.key.startswith(_S3A)

    @property
    def is_family(self) -> bool:
        """Whether this entry stands for all keys with its prefix."""
        return self.key.endswith(_FAMILY)


def all_keys() -> tuple[ConfigKey, ...]:
    """Every known key, by topic."""
    return _registry().entries


def find(name: str) -> ConfigKey | None:
    """The entry of `name`, of the key it is an older name of, or of its family; None when there is none.

    Case does not matter: Spark's own option maps fold it.
    """
    registry = _registry()
    name = name.removeprefix(_HADOOP)
    folded = name.lower()
    entry = registry.by_name.get(name) or registry.by_folded_name.get(folded)
    if entry is not None:
        return entry
    if folded.startswith(_BUCKET):
        found = [entry for entry in map(find, _of_any_bucket(folded)) if entry is not None]
        # A part of a bucket's name may be called as a family that says nothing: whatever says more is meant.
        return min(found, key=lambda entry: (entry.is_family, entry.kind == "no_meaning_here"), default=None)
    return next((family for prefix, family in registry.families if folded.startswith(prefix.lower())), None)


def is_of_s3a(name: str) -> bool:
    """Whether a name is one of Hadoop's for S3, all of which are known."""
    return name.removeprefix(_HADOOP).lower().startswith(_S3A)


def lookup(name: str) -> ConfigKey:
    """The entry of `name` (see `find`).

    Raises:
        Invalid: no such key; names the nearest one.
    """
    entry = find(name)
    if entry is None:
        raise unknown_key(name)
    return entry


def spellings(entry: ConfigKey) -> tuple[str, ...]:
    """All other names of the setting `entry` belongs to: stored spellings and older names."""
    names: dict[str, None] = {}
    for other in all_keys():
        if other.canonical == entry.canonical:
            names.update(dict.fromkeys((other.key, *other.aliases)))
    names.pop(entry.key)
    return tuple(names)


def nearest(name: str) -> str | None:
    """The known key most like `name`, if any is like it."""
    names = [known for known in _registry().by_name if not known.endswith(_FAMILY)]
    close = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
    return close[0] if close else None


def meant(name: str) -> str | None:
    """The key that a name without Hudi's prefix stands for, which nobody knows; None when it may be someone else's.

    That is what others call the setting (`primaryKey`), the end of a key (`recordkey.field`), or nearly one of them.
    """
    folded = name.lower()
    own = (key for key in _registry().by_name if not key.startswith(("hoodie.", "_", *_FOREIGN)))
    names = _OF_OTHERS | {key.lower(): key for key in own}
    near = difflib.get_close_matches(folded, names, n=1, cutoff=_SAME)
    if near:
        return names[near[0]]
    if "." not in folded or folded.startswith(_FOREIGN):
        return None
    ending = [entry.canonical for entry in all_keys() if _ends_in(entry.key, folded)]
    return min(ending, key=lambda key: (not key.startswith("hoodie.datasource."), len(key)), default=None)


def _ends_in(key: str, folded: str) -> bool:
    return key.lower().endswith(f".{folded}") and not key.startswith(_FOREIGN)


def unknown_key(name: str) -> Invalid:
    """The error for a key nobody knows."""
    near = meant(name) or nearest(name)
    hint = f"Did you mean {near}?" if near else "`hoodie config` lists all keys"
    return Invalid(f"Unknown option {name}", remedy=hint, key=name, nearest=near)


def _of_any_bucket(name: str) -> Iterator[str]:
    """What a name of one bucket may be for any: names of buckets may have dots, so it is not known where they end."""
    parts = name.removeprefix(_BUCKET).split(".")
    return (_S3A + ".".join(parts[at:]) for at in range(1, len(parts)))


def differences() -> tuple[ConfigKey, ...]:
    """Keys whose default deliberately differs from Hudi's."""
    return tuple(entry for entry in all_keys() if entry.our_default is not None)


@dataclass(frozen=True, slots=True)
class _Registry:
    entries: tuple[ConfigKey, ...]
    by_name: Mapping[str, ConfigKey]
    by_folded_name: Mapping[str, ConfigKey]
    families: tuple[tuple[str, ConfigKey], ...]


@functools.cache
def _registry() -> _Registry:
    data = pkgutil.get_data("hoodie.config", "registry.tsv")
    assert data is not None, "registry.tsv is part of the package"
    head, *lines = data.decode("utf-8").splitlines()
    columns = head.split("\t")
    entries = tuple(_parse_entry(dict(zip(columns, line.split("\t"), strict=True))) for line in lines)
    by_name = {entry.key: entry for entry in entries}
    for entry in entries:
        for alias in entry.aliases:
            by_name.setdefault(alias, entry)
    families = tuple((entry.key.removesuffix("*"), entry) for entry in entries if entry.is_family)
    return _Registry(entries, by_name, {name.lower(): entry for name, entry in by_name.items()}, families)


def _parse_entry(cells: dict[str, str]) -> ConfigKey:
    default = cells["default"]
    return ConfigKey(
        key=cells["key"],
        kind=cast(Kind, cells["kind"]),
        type=cast(ValueType, cells["type"]),
        hudi_default=None if default == "(none)" else default,
        our_default=cells["ours"] or None,
        difference=cells["why"] if cells["ours"] else None,
        reason=cells["why"] if cells["kind"] == "no_meaning_here" else None,
        values=_split(cells["values"]),
        later=_split(cells["later"]),
        synonyms=dict(pair.split("=", 1) for pair in _split(cells["synonyms"])),
        part_of=cells["part_of"] or None,
        scope=cast(Scope, cells["scope"]),
        unless=tuple((key, value) for key, _, value in (pair.partition("=") for pair in _split(cells["unless"]))),
        alias_of=cells["alias_of"] or None,
        aliases=_split(cells["aliases"]),
        since=cells["since"] or None,
        deprecated=cells["deprecated"] or None,
        removed=cells["removed"] or None,
        group=cells["group"],
        meaning=cells["meaning"],
    )


def _split(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()
